package digitalocean

import (
	"context"
	"strconv"
	"strings"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver/kit"
)

// Offerings are the available sizes in each of their regions, and the configured types. DigitalOcean does not list a
// size in a region where it is out of stock.
func (c *cloud) Offerings(ctx context.Context) ([]drover.Offering, error) {
	return c.config.Offerings(ctx, kit.Catalogue{Cloud: c.o.Name, Zones: c.config.Regions, Within: c.config.Regions, Own: c.listed})
}

// listed returns DigitalOcean's own sizes.
func (c *cloud) listed(ctx context.Context) (all []kit.Own, err error) {
	sizes, err := pages(ctx, c.api.Sizes.List)
	if err != nil {
		return nil, errs.Classify("list sizes", err)
	}
	seen := map[string]bool{}
	for _, size := range sizes {
		if !size.Available || seen[size.Slug] {
			continue
		}
		seen[size.Slug] = true
		price, err := priceOf(size)
		if err != nil {
			return nil, err
		}
		t := typeOf(size)
		t.Price = func(string, drover.Market) (drover.Money, bool) { return price, true }
		all = append(all, t)
	}
	return all, nil
}

// priceOf returns a size's hourly price. The API sends it with the rounding error of a 32-bit float.
func priceOf(size godo.Size) (drover.Money, error) {
	price, err := drover.ParseMoney(strconv.FormatFloat(size.PriceHourly, 'f', -1, 32))
	if err != nil || price <= 0 {
		return 0, drover.Errorf(drover.KindTransient, "list sizes: %s has an invalid price: %v", size.Slug, size.PriceHourly)
	}
	return price, nil
}

// typeOf translates a size. All sizes have processors of one architecture.
func typeOf(size godo.Size) kit.Own {
	t := kit.Own{Name: size.Slug, Zones: size.Regions, Resources: drover.Resources{
		CPU:    drover.MilliCPU(size.Vcpus) * 1000,
		Memory: drover.Bytes(size.Memory) * drover.MiB,
		Disk:   drover.Bytes(size.Disk) * drover.GiB,
		GPUs:   kit.Value(size.GPUInfo).Count,
		Arch:   "amd64",
	}}
	for _, disk := range size.DiskInfo {
		if disk.Type == "scratch" && disk.Size != nil {
			t.LocalDisk += drover.Bytes(disk.Size.Amount) * units[strings.ToLower(disk.Size.Unit)]
		}
	}
	return t
}

// units are the units of disk sizes. An unknown unit counts as 0.
var units = map[string]drover.Bytes{"gib": drover.GiB, "gb": drover.GiB, "tib": drover.TiB, "tb": drover.TiB}
