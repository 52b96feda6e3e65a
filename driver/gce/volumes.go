package gce

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"drover"
	"drover/driver/kit"
)

// diskEntries are the kinds of disk by their names in the price list.
var diskEntries = map[string]string{
	"Storage PD Capacity": "pd-standard", "Balanced PD Capacity": "pd-balanced", "SSD backed PD Capacity": "pd-ssd", "Extreme PD Capacity": "pd-extreme",
	"Hyperdisk Balanced Capacity": "hyperdisk-balanced", "Hyperdisk Extreme Capacity": "hyperdisk-extreme", "Hyperdisk Throughput Capacity": "hyperdisk-throughput",
}

// takeDisk records an entry, if it is about a GiB of a disk. Additional IOPS and throughput are ignored.
func (p priceList) takeDisk(s sku) {
	about, _, _ := strings.Cut(s.Description, " in ")
	kind, known := diskEntries[about]
	price, unit := priceOf(s)
	if unit == "GiBy.mo" {
		price /= kit.MonthOfHours
	} else if unit != "GiBy.h" {
		return
	}
	if known {
		p.Disk[kind] = max(p.Disk[kind], price)
	}
}

// diskPrice is the hourly price of a GiB of an instance's boot disk; 0 if unknown.
func (c *cloud) diskPrice(providerType string, listed map[string]drover.Money) drover.Money {
	return kit.PerHour(c.config.DiskPrice, listed[c.diskType(providerType)])
}

// diskType is the kind of a type's boot disk.
func (c *cloud) diskType(providerType string) string {
	return cmp.Or(c.config.DiskType, defaultDisk(providerType))
}

// defaultDisk is a kind that the type accepts: types of the fourth generation accept only hyperdisks.
func defaultDisk(providerType string) string {
	series := strings.TrimLeft(seriesOf(providerType), "abcdefghijklmnopqrstuvwxyz")
	if series != "" && series[0] >= '4' {
		return "hyperdisk-balanced"
	}
	return "pd-balanced"
}

// GrowDisk resizes the boot disk. The instance sees the new size at once.
func (c *cloud) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	doing := "grow the disk of instance " + id
	in, err := c.api.get(ctx, id, attachedFields)
	if err != nil {
		return errs.Classify(doing, err)
	}
	gib := size.WholeGiB()
	for _, d := range in.Disks {
		switch {
		case !d.Boot:
		case d.DiskSizeGb >= gib:
			return nil
		default:
			zone, _, _ := strings.Cut(id, "/")
			return errs.Classify(doing, c.settle(ctx, "disks.resize", zone+"/"+path.Base(d.Source), object{"sizeGb": fmt.Sprint(gib)}))
		}
	}
	return drover.Errorf(drover.KindUnsupported, "%s: it has no boot disk", doing)
}
