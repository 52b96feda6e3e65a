package hetzner

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver/kit"
)

// Offerings are the server types in the locations that have them, and the configured types.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	return c.config.Offerings(ctx, kit.Catalogue{Cloud: c.o.Name, Zones: c.config.Locations, Within: c.config.Locations, Own: c.listed, Complete: setQuotaGroup})
}

// listed returns Hetzner's own types.
func (c *cloud) listed(ctx context.Context) (all []kit.Own, err error) {
	types, err := pages(func(o hcloud.ListOpts) ([]*hcloud.ServerType, *hcloud.Response, error) {
		return c.api.ServerType.List(ctx, hcloud.ServerTypeListOpts{ListOpts: o, Sort: oldestFirst})
	})
	if err != nil {
		return nil, errs.Classify("list server types", err)
	}
	for _, t := range types {
		one, err := c.offered(t, time.Now())
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// dedicated is the limit for dedicated processors, in addition to the limit for servers.
const dedicated = "dedicated cores"

// setQuotaGroup sets the quota group of offerings that have their own limit.
func setQuotaGroup(o *drover.Offering) {
	if strings.HasPrefix(o.Type.ProviderType, "ccx") {
		o.QuotaGroup = dedicated
	}
}

// offered lists a type in each location that has it, even where it is out of stock.
func (c *cloud) offered(t *hcloud.ServerType, now time.Time) (kit.Own, error) {
	prices := map[string]drover.Money{}
	for _, p := range t.Pricings {
		if p.Location == nil || withdrawn(t, p.Location.Name, now) {
			continue
		}
		price, err := c.dollars(p.Hourly.Net)
		if err != nil {
			return kit.Own{}, err
		}
		prices[p.Location.Name] = price
	}
	return kit.Own{
		Name: t.Name, Zones: slices.Collect(maps.Keys(prices)), Price: func(zone string, _ drover.Market) (drover.Money, bool) { return prices[zone], true },
		Resources: drover.Resources{
			CPU: drover.MilliCPU(t.Cores) * 1000, Memory: drover.Bytes(float64(t.Memory) * float64(drover.GiB)), Disk: drover.Bytes(t.Disk) * 1e9,
			Arch: cmp.Or(architectures[t.Architecture], "amd64"),
		},
	}, nil
}

// withdrawn reports whether a type can no longer be created in a location.
func withdrawn(t *hcloud.ServerType, location string, now time.Time) bool {
	if len(t.Locations) == 0 {
		return t.IsDeprecated() && t.UnavailableAfter().Before(now)
	}
	for _, l := range t.Locations {
		if l.Location != nil && l.Location.Name == location {
			return l.IsDeprecated() && l.UnavailableAfter().Before(now)
		}
	}
	return true
}

// dollars converts a net price from the list.
func (c *cloud) dollars(net string) (drover.Money, error) {
	price, err := kit.ReadPrice(net)
	if err != nil {
		return 0, drover.Errorf(drover.KindTransient, "list server types: %q is not a price", net)
	}
	return drover.Money(math.Round(float64(price) * float64(c.config.Rate) / float64(drover.Dollar))), nil
}

// architectures translates Hetzner's names.
var architectures = map[hcloud.Architecture]drover.Arch{hcloud.ArchitectureX86: "amd64", hcloud.ArchitectureARM: "arm64"}
