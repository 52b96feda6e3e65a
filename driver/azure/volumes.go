package azure

import (
	"cmp"
	"context"
	"strings"

	"drover"
)

// The products of the price list that are managed disks, by the beginning of the kind of disk. What is sold by provisioned GiB, IOPS and throughput
// is not among them.
var diskProducts = map[string]string{
	"Premium SSD Managed Disks": "Premium", "Standard SSD Managed Disks": "StandardSSD", "Standard HDD Managed Disks": "Standard",
}

// tiers are how large the disks are that Azure sells, in GiB, by their number: P10, E10 and S10 have 128.
var tiers = map[string]int64{
	"1": 4, "2": 8, "3": 16, "4": 32, "6": 64, "10": 128, "15": 256, "20": 512, "30": 1024, "40": 2048, "50": 4096, "60": 8192, "70": 16384, "80": 32767,
}

// monthOfHours is how many hours Azure reckons a month at.
const monthOfHours = 730

// fetchDiskPrices reads what an hour of a GiB costs, by the kind of disk: the dearest of its sizes.
func (c *cloud) fetchDiskPrices(ctx context.Context) (map[string]drover.Money, error) {
	all := map[string]drover.Money{}
	return all, c.readPrices(ctx, "serviceName eq 'Storage' and contains(productName, 'Managed Disks')", func(i priceItem, price drover.Money) { i.enterDisk(all, price) })
}

// enterDisk takes in a price, if it is that of a whole disk: calls to it and mounts beyond the first are entries of their own.
func (i priceItem) enterDisk(all map[string]drover.Money, price drover.Money) {
	tier, copies, _ := strings.Cut(i.SKU, " ")
	kind, size := diskProducts[i.Product], tiers[strings.TrimLeft(tier, "PES")]
	if kind != "" && size != 0 && i.Meter == i.SKU+" Disk" && strings.ReplaceAll(i.Unit, " ", "") == "1/Month" {
		all[kind+"_"+copies] = max(all[kind+"_"+copies], price/drover.Money(size*monthOfHours))
	}
}

// hourly is what a GiB of the disk costs an hour; 0 if nothing says so.
func (v volume) hourly(listed map[string]drover.Money) drover.Money {
	if v.Price != nil {
		return *v.Price / monthOfHours
	}
	return listed[cmp.Or(v.Type, defaultVolume)]
}

// addVolumes adds to an offering what the disks cost that every instance has beside its root volume, and says what a GiB of that costs.
func (c *cloud) addVolumes(o *drover.Offering, listed map[string]drover.Money) {
	for _, v := range c.config.Volumes {
		o.Price += v.hourly(listed) * drover.Money(v.Size.WholeGiB())
	}
	o.DiskPrice = c.config.Volume.hourly(listed)
}
