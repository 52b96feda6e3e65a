package gce

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver/kit"
)

// The maximum ages of the cached data from which offerings are made. Google changes spot prices once a month at most.
const (
	typesAge  = 24 * time.Hour
	pricesAge = 24 * time.Hour
)

// typeInfo is the cached part of an instance type.
type typeInfo struct {
	Resources drover.Resources `json:"resources"`
	GPU       string           `json:"gpu,omitempty"` // its model
	Zones     []string         `json:"zones"`
}

// Offerings are Google's types with a price, and the configured types.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	zones, err := c.zonesWanted(ctx)
	if err != nil {
		return nil, errs.Classify("list zones", err)
	}
	var prices priceList
	return c.config.Offerings(ctx, kit.Catalogue{
		Cloud: c.o.Name, Zones: zones, Within: zones, Keys: c.config.MarketKeys,
		Own: func(ctx context.Context) (all []kit.Own, err error) {
			all, prices, err = c.listed(ctx)
			return all, err
		},
		Complete: func(o *drover.Offering) {
			o.DiskPrice, o.QuotaGroup = c.diskPrice(o.Type.ProviderType, prices.Disk), quotaGroup(o.Type.ProviderType, o.Market)
		},
	})
}

// listed returns Google's own types and the known prices.
func (c *cloud) listed(ctx context.Context) (all []kit.Own, prices priceList, err error) {
	known, typesErr := c.types.Get(ctx)
	prices, pricesErr := c.prices.Get(ctx)
	if err := errors.Join(typesErr, pricesErr); err != nil {
		return nil, prices, errs.Classify("list types and prices", err)
	}
	for name, t := range known {
		all = append(all, kit.Own{
			Name: name, Resources: t.Resources, Zones: t.Zones, Price: func(_ string, m drover.Market) (drover.Money, bool) { return prices.of(name, t, m) },
		})
	}
	return all, prices, nil
}

// zonesWanted returns the configured zones, or all that are up.
func (c *cloud) zonesWanted(ctx context.Context) ([]string, error) {
	if len(c.config.Zones) > 0 {
		return c.config.Zones, nil
	}
	return c.zones.Get(ctx)
}

func (c *cloud) fetchZones(ctx context.Context) (names []string, err error) {
	all, err := list(ctx, c.api, "zones.list", "", items[resource])
	for _, z := range all {
		if strings.HasPrefix(z.Name, c.config.Region+"-") && z.Status == "UP" {
			names = append(names, z.Name)
		}
	}
	if err == nil && len(names) == 0 {
		err = drover.Errorf(drover.KindInvalid, "there is no region %s, or all its zones are down", c.config.Region)
	}
	slices.Sort(names)
	return names, err
}

// fetchTypes fetches the types of each zone.
func (c *cloud) fetchTypes(ctx context.Context) (map[string]typeInfo, error) {
	zones, err := c.zonesWanted(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]typeInfo{}
	for _, zone := range zones {
		found, err := list(ctx, c.api, "machineTypes.list", zone, items[resource])
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if t, ok := typeOf(m); ok {
				t.Zones = append(all[m.Name].Zones, zone)
				all[m.Name] = t
			}
		}
	}
	return all, nil
}

// odd are types unlike their series: bare metal, which boots for many minutes, and old names of m1, whose price is
// not n1's.
var odd = regexp.MustCompile(`-metal$|^n1-(mega|ultra)mem-`)

// typeOf translates a type. It has no disk: the boot disk is as large as requested. Two kinds are left out: types with
// shared vCPUs, which provide less than they claim, and types with local disks, whose price is unknown.
func typeOf(m resource) (t typeInfo, ok bool) {
	if m.IsSharedCpu || m.old() || odd.MatchString(m.Name) || m.BundledLocalSsds.PartitionCount > 0 {
		return t, false
	}
	t.Resources = drover.Resources{
		CPU: drover.MilliCPU(m.GuestCpus) * 1000, Memory: drover.Bytes(m.MemoryMb) * drover.MiB, Arch: cmp.Or(architectures[m.Architecture], "amd64"),
	}
	for _, a := range m.Accelerators {
		t.GPU, t.Resources.GPUs = a.GuestAcceleratorType, t.Resources.GPUs+a.GuestAcceleratorCount
	}
	return t, t.Resources.CPU > 0 && t.Resources.Memory > 0
}

// The quotas of vCPUs in a region: see "VM instance quotas" in Google's guide to Compute Engine,
// https://cloud.google.com/compute/resource-usage. The oldest series share one; others have their own, such as N2_CPUS;
// any further series has one with the metric CPUS_PER_VM_FAMILY. docs/clouds/gce.md shows them.
var (
	oldestSeries = []string{"e2", "f1", "g1", "n1"}
	ownQuota     = []string{"n2", "n2d", "t2d", "t2a", "c2", "c2d", "c3", "m1", "m2", "m3", "a2"}
)

const (
	oldestMetric = "CPUS"
	spotMetric   = "PREEMPTIBLE_CPUS" // of every series
	spotGPUs     = "PREEMPTIBLE_GPUS" // stands for the quota of each model, such as PREEMPTIBLE_NVIDIA_L4_GPUS
	otherMetric  = "CPUS_PER_VM_FAMILY"
)

// withGPUs matches the series with GPUs.
var withGPUs = regexp.MustCompile(`^(a[2-9]|g[2-9])[a-z]*$`)

// quotaGroup returns the quota of a type in a market. Spot types with GPUs have their own group: projects have vCPUs for
// them long before they have GPUs, and a lack of GPUs must not block all spot types.
func quotaGroup(providerType string, m drover.Market) string {
	switch series := seriesOf(providerType); {
	case m == drover.Spot && withGPUs.MatchString(series):
		return spotGPUs + " " + strings.ToUpper(series)
	case m == drover.Spot:
		return spotMetric
	case slices.Contains(oldestSeries, series):
		return oldestMetric
	case slices.Contains(ownQuota, series):
		return strings.ToUpper(series) + "_CPUS"
	default:
		return otherMetric + " " + strings.ToUpper(series)
	}
}

// seriesOf returns what precedes the first dash: n2d in n2d-standard-4.
func seriesOf(providerType string) string {
	series, _, _ := strings.Cut(providerType, "-")
	return series
}
