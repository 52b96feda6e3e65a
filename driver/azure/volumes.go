package azure

import (
	"cmp"
	"context"
	"strings"

	"drover"
	"drover/driver/kit"
)

// The price list's products that are managed disks, by the beginning of the disk type. Disks sold by provisioned GiB,
// IOPS and throughput are not included.
var diskProducts = map[string]string{
	"Premium SSD Managed Disks": "Premium", "Standard SSD Managed Disks": "StandardSSD", "Standard HDD Managed Disks": "Standard",
}

// tiers are the sizes of the disks that Azure sells, in GiB, by number: P10, E10 and S10 have 128.
var tiers = map[string]int64{
	"1": 4, "2": 8, "3": 16, "4": 32, "6": 64, "10": 128, "15": 256, "20": 512, "30": 1024, "40": 2048, "50": 4096, "60": 8192, "70": 16384, "80": 32767,
}

// fetchDiskPrices reads the hourly price of a GiB by disk type, at its most expensive size.
func (c *cloud) fetchDiskPrices(ctx context.Context) (map[string]drover.Money, error) {
	all := map[string]drover.Money{}
	return all, c.readPrices(ctx, "serviceName eq 'Storage' and contains(productName, 'Managed Disks')", func(i priceItem, price drover.Money) { i.enterDisk(all, price) })
}

// enterDisk records the price of a whole disk; operations and additional mounts have separate entries.
func (i priceItem) enterDisk(all map[string]drover.Money, price drover.Money) {
	tier, copies, _ := strings.Cut(i.SKU, " ")
	kind, size := diskProducts[i.Product], tiers[strings.TrimLeft(tier, "PES")]
	if kind != "" && size != 0 && i.Meter == i.SKU+" Disk" && strings.ReplaceAll(i.Unit, " ", "") == "1/Month" {
		all[kind+"_"+copies] = max(all[kind+"_"+copies], price/drover.Money(size*kit.MonthOfHours))
	}
}

// hourly returns the price of a GiB per hour; 0 if unknown.
func (v volume) hourly(listed map[string]drover.Money) drover.Money {
	return kit.PerHour(v.Price, listed[cmp.Or(v.Type, defaultVolume)])
}

// addVolumes adds the price of the additional disks to an offering, and sets the price of a GiB of the root volume.
func (c *cloud) addVolumes(o *drover.Offering, listed map[string]drover.Money) {
	for _, v := range c.config.Volumes {
		o.Price += v.hourly(listed) * drover.Money(v.Size.WholeGiB())
	}
	o.DiskPrice = c.config.Volume.hourly(listed)
}
