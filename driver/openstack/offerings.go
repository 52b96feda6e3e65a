package openstack

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/availabilityzones"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"

	"drover"
	"drover/driver/kit"
	"drover/internal/logkey"
)

// The maximum ages of the cached data from which offerings are made. Each takes one call.
const (
	flavorsAge = 10 * time.Minute
	zonesAge   = time.Hour
)

// flavor is the cached part of a flavor.
type flavor struct {
	ID     string       `json:"id"`
	VCPUs  int          `json:"vcpus"`
	Memory drover.Bytes `json:"memory"`
	Disk   drover.Bytes `json:"disk"` // 0: no root disk of its own
	GPUs   int          `json:"gpus,omitempty"`
	Price  string       `json:"price,omitempty"` // from its extra spec
}

// Offerings are the cloud's flavors in the zones, and the configured types.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	zones, err := c.availableZones(ctx)
	if err != nil {
		return nil, errs.Classify("list availability zones", err)
	}
	return c.config.Offerings(ctx, kit.Catalogue{
		Cloud: c.o.Name, Zones: zones, Arch: c.config.Arch, Complete: func(o *drover.Offering) { o.DiskPrice = c.config.Rates.Disk },
		Own: func(ctx context.Context) ([]kit.Own, error) { return c.listed(ctx, zones) },
	})
}

// listed returns the cloud's own flavors in these zones. A flavor without a root disk boots only from a volume.
func (c *cloud) listed(ctx context.Context, zones []string) (all []kit.Own, err error) {
	known, err := c.flavors.Get(ctx)
	if err != nil {
		return nil, errs.Classify("list flavors", err)
	}
	for name, f := range known {
		if f.Disk > 0 || c.config.BootFrom != fromImage {
			price := func(string, drover.Market) (drover.Money, bool) { return c.price(name, f), true }
			all = append(all, kit.Own{Name: name, Resources: c.resources(f), Zones: zones, Price: price})
		}
	}
	return all, nil
}

// resources returns the resources of a flavor's instance. A volume is as large as requested.
func (c *cloud) resources(f flavor) drover.Resources {
	r := drover.Resources{CPU: drover.MilliCPU(f.VCPUs) * 1000, Memory: f.Memory, Disk: f.Disk, GPUs: f.GPUs, Arch: c.config.Arch}
	if c.config.BootFrom == fromVolume {
		r.Disk = 0
	}
	return r
}

// price returns a flavor's hourly price: from the configuration, the flavor, or its size.
func (c *cloud) price(name string, f flavor) drover.Money {
	if price, ok := c.config.FlavorPrices[name]; ok {
		return price
	}
	if price, err := drover.ParseMoney(f.Price); err == nil {
		return price
	}
	r := c.config.Rates
	return r.VCPU*drover.Money(f.VCPUs) + r.GPU*drover.Money(f.GPUs) + r.Memory/1024*drover.Money(f.Memory/drover.MiB)
}

// fetchFlavors fetches the flavors that the project may use.
func (c *cloud) fetchFlavors(ctx context.Context) (map[string]flavor, error) {
	found, err := with(ctx, c.api, func(s *session) ([]flavors.Flavor, error) {
		return collect(ctx, flavors.ListDetail(s.compute, nil), flavors.ExtractFlavors)
	})
	if err != nil {
		return nil, err
	}
	all := map[string]flavor{}
	for _, f := range found {
		if f.VCPUs <= 0 || f.RAM <= 0 || f.Name == "" {
			continue
		}
		kept := flavor{ID: f.ID, VCPUs: f.VCPUs, Memory: drover.Bytes(f.RAM) * drover.MiB, Disk: drover.Bytes(f.Disk) * drover.GiB, GPUs: c.gpus(f)}
		if kept.Price = f.ExtraSpecs[c.config.PriceSpec]; kept.Price != "" {
			if _, err := drover.ParseMoney(kept.Price); err != nil {
				c.o.Log.Warn("a flavor's price cannot be read", logkey.Type, f.Name, logkey.Error, err)
			}
		}
		all[f.Name] = kept
	}
	if len(all) == 0 { // not cached: an earlier copy is better
		return nil, drover.Errorf(drover.KindInvalid, "the cloud lists no flavors").WithHint("openstack flavor list shows the project's flavors")
	}
	return all, nil
}

// gpus returns the number of a flavor's virtual GPUs and PCI devices with a configured alias, from its extra specs
// "resources:VGPU" and "pci_passthrough:alias", a list of ALIAS:COUNT.
func (c *cloud) gpus(f flavors.Flavor) (n int) {
	n, _ = strconv.Atoi(cmp.Or(f.ExtraSpecs["resources:VGPU"], "0")) // an invalid number counts as 0
	for asked := range strings.SplitSeq(f.ExtraSpecs["pci_passthrough:alias"], ",") {
		alias, count, _ := strings.Cut(strings.TrimSpace(asked), ":")
		if slices.Contains(c.config.GPUAliases, alias) {
			devices, _ := strconv.Atoi(cmp.Or(count, "1"))
			n += devices
		}
	}
	return max(0, n)
}

// availableZones returns the configured zones, otherwise all of the cloud's, sorted.
func (c *cloud) availableZones(ctx context.Context) ([]string, error) {
	if len(c.config.Zones) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(c.config.Zones))), nil
	}
	return c.zones.Get(ctx)
}

func (c *cloud) fetchZones(ctx context.Context) (all []string, err error) {
	found, err := with(ctx, c.api, func(s *session) ([]availabilityzones.AvailabilityZone, error) {
		page, err := availabilityzones.List(s.compute).AllPages(ctx) // there is only one page, and the pager cannot read it as one of several
		if err != nil {
			return nil, err
		}
		return availabilityzones.ExtractAvailabilityZones(page)
	})
	if err != nil {
		return nil, err
	}
	for _, z := range found {
		if z.ZoneState.Available {
			all = append(all, z.ZoneName)
		}
	}
	if len(all) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "no availability zone is available").WithHint("write zones: [nova]")
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
