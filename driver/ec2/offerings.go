package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver/kit"
	"drover/internal/logkey"
)

// The maximum ages of the cached data from which offerings are made.
const (
	typesAge   = 24 * time.Hour
	pricesAge  = 24 * time.Hour
	spotAge    = 10 * time.Minute
	subnetsAge = 10 * time.Minute
)

// typeInfo is the cached part of an instance type.
type typeInfo struct {
	Resources drover.Resources `json:"resources"`
	Markets   []drover.Market  `json:"markets"`
	Zones     []string         `json:"zones"`
	Metal     bool             `json:"metal,omitempty"`
}

// subnet is the part of a subnet that the driver reads and caches.
type subnet struct {
	ID   string `json:"id" xml:"subnetId"`
	Zone string `json:"zone" xml:"availabilityZone"`
}

// Offerings are EC2's types with a price in the zones that have a subnet, and the configured types.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	zones, err := c.zones(ctx)
	if err != nil {
		return nil, errs.Classify("list subnets", err)
	}
	return c.config.Offerings(ctx, kit.Catalogue{
		Cloud: c.o.Name, Zones: zones, Within: zones, Keys: c.config.MarketKeys, Own: c.listed,
		Complete: func(o *drover.Offering) {
			c.addVolumes(o)
			o.QuotaGroup = quotaGroup(o.Type.ProviderType, o.Market)
		},
	})
}

// listed returns EC2's own types.
func (c *cloud) listed(ctx context.Context) (all []kit.Own, err error) {
	known, typesErr := c.types.Get(ctx)
	prices, pricesErr := c.prices(ctx)
	if err := errors.Join(typesErr, pricesErr); err != nil {
		return nil, errs.Classify("list types and prices", err)
	}
	for name, t := range known {
		if t.Metal && !c.config.BareMetal {
			continue
		}
		all = append(all, kit.Own{Name: name, Resources: t.Resources, Zones: t.Zones, Price: func(zone string, m drover.Market) (drover.Money, bool) {
			price, ok := prices.of(name, zone, m)
			return price, ok && slices.Contains(t.Markets, m)
		}})
	}
	return all, nil
}

// fetchTypes fetches the types and the zones that have them.
func (c *cloud) fetchTypes(ctx context.Context) (map[string]typeInfo, error) {
	types, err := listAll[instanceType](ctx, c.api, "DescribeInstanceTypes", "instanceTypeSet>item", params{"MaxResults": 100})
	if err != nil {
		return nil, err
	}
	byZone := params{"MaxResults": 1000, "LocationType": "availability-zone"}
	offered, err := listAll[instanceType](ctx, c.api, "DescribeInstanceTypeOfferings", "instanceTypeOfferingSet>item", byZone)
	if err != nil {
		return nil, err
	}
	all := map[string]typeInfo{}
	for _, i := range types {
		if t, ok := typeOf(i); ok {
			all[i.Name] = t
		}
	}
	for _, o := range offered {
		if t, ok := all[o.Name]; ok {
			t.Zones = append(t.Zones, o.Zone)
			all[o.Name] = t
		}
	}
	return all, nil
}

// instanceType is what the driver reads from an instance type, or from a type in a zone.
type instanceType struct {
	Name    string   `xml:"instanceType"`
	CPUs    int32    `xml:"vCpuInfo>defaultVCpus"`
	MiB     int64    `xml:"memoryInfo>sizeInMiB"`
	Arches  []string `xml:"processorInfo>supportedArchitectures>item"`
	GPUs    []int    `xml:"gpuInfo>gpus>item>count"`
	Markets []string `xml:"supportedUsageClasses>item"`
	Metal   bool     `xml:"bareMetal"`
	Zone    string   `xml:"location"`
}

// typeOf translates a type, if its architecture is known. It has no disk: the volume is as large as requested.
func typeOf(i instanceType) (t typeInfo, ok bool) {
	r := drover.Resources{CPU: drover.MilliCPU(i.CPUs) * 1000, Memory: drover.Bytes(i.MiB) * drover.MiB}
	for _, a := range i.Arches {
		r.Arch = max(r.Arch, architectures[a])
	}
	for _, n := range i.GPUs {
		r.GPUs += n
	}
	for _, u := range i.Markets {
		if market, ours := markets[u]; ours {
			t.Markets = append(t.Markets, market)
		}
	}
	t.Resources, t.Metal = r, i.Metal
	return t, r.Arch != "" && r.CPU > 0 && r.Memory > 0
}

// markets are the known markets.
var markets = map[string]drover.Market{"on-demand": drover.OnDemand, "spot": drover.Spot}

// architectures are the architectures of Drover's runners.
var architectures = map[string]drover.Arch{"x86_64": "amd64", "arm64": "arm64"}

// fetchSubnets fetches the configured subnets, or else the default one of each zone.
func (c *cloud) fetchSubnets(ctx context.Context) (all []subnet, err error) {
	wanted := filter("default-for-az", "true")
	if len(c.config.Subnets) > 0 {
		wanted = filter("subnet-id", c.config.Subnets...) // if requested by id, a wrong one would hide the others
	}
	found, err := listAll[subnet](ctx, c.api, "DescribeSubnets", "subnetSet>item", params{"Filters": []params{wanted}})
	if err != nil {
		return nil, err
	}
	if missing := len(c.config.Subnets) - len(found); missing > 0 {
		c.o.Log.Warn("some of the configured subnets do not exist", logkey.Note, fmt.Sprintf("%d of %d", missing, len(c.config.Subnets)))
	}
	for _, s := range found {
		if len(c.config.Zones) == 0 || slices.Contains(c.config.Zones, s.Zone) {
			all = append(all, s)
		}
	}
	switch {
	case len(all) > 0:
	case len(c.config.Subnets) > 0:
		return nil, drover.Errorf(drover.KindInvalid, "region %s has none of the configured subnets in the configured zones", c.api.config.Region).
			WithHint("compare region, zones and subnets with the AWS console")
	case len(c.config.Zones) > 0:
		return nil, drover.Errorf(drover.KindInvalid, "region %s has no default subnet in the configured zones", c.api.config.Region).
			WithHint("correct region or zones, or write subnets: [subnet-…]")
	default:
		return nil, drover.Errorf(drover.KindInvalid, "region %s has no default subnet", c.api.config.Region).WithHint("write subnets: [subnet-…]")
	}
	return all, nil
}

// zones returns the zones with a subnet, sorted.
func (c *cloud) zones(ctx context.Context) (zones []string, err error) {
	all, err := c.subnets.Get(ctx)
	zones = kit.Each(all, func(s subnet) string { return s.Zone })
	slices.Sort(zones)
	return slices.Compact(zones), err
}

// family is a set of types that share a quota of vCPUs. The codes come from Service Quotas; see "Amazon EC2 instance
// type quotas" in Amazon's guide to instance types:
// https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html.
type family struct {
	name     string
	series   []string // prefixes of its types' names, with or without the generation
	onDemand string   // the quota's code
	spot     string
}

// families are shown in docs/clouds/ec2.md. The first one that matches a type counts.
var families = []family{
	{"standard", []string{"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"}, "L-1216C47A", "L-34B43A08"},
	{"f", []string{"f"}, "L-74FC7D96", "L-88CF9481"},
	{"g", []string{"g", "gr", "vt"}, "L-DB2E81BA", "L-3819A6DF"},
	{"p5", []string{"p5"}, "L-417A185B", "L-C4BD4855"}, // its own quota only for spot
	{"p", []string{"p"}, "L-417A185B", "L-7212CCBC"},
	{"x", []string{"x"}, "L-7295265B", "L-E3A00192"},
	{"inf", []string{"inf"}, "L-1945791B", "L-B5D1601B"},
	{"trn", []string{"trn"}, "L-2C3B7624", "L-6B0D517C"},
	{"dl", []string{"dl"}, "L-6E869C2A", "L-85EED4F7"},
	{"hpc", []string{"hpc"}, "L-F7808C92", ""},
	{"u", []string{"u", "u-"}, "L-43DA4232", ""},
}

// quotaGroup returns the quota of a type in a market. An unknown series has its own, named after it.
func quotaGroup(providerType string, m drover.Market) string {
	series := seriesOf(providerType)
	generation := providerType[:min(len(series)+1, len(providerType))]
	for _, f := range families {
		switch {
		case !slices.Contains(f.series, series) && !slices.Contains(f.series, generation):
		case m == drover.Spot && f.spot != "":
			return f.spot
		case m == drover.Spot:
			return f.name + "-spot"
		default:
			return f.onDemand
		}
	}
	return series + "-" + string(m)
}

// seriesOf returns what precedes the generation: c in c7g.large, and u- in u-6tb1.metal.
func seriesOf(providerType string) string {
	return providerType[:max(0, strings.IndexAny(providerType+"0", "0123456789"))]
}
