package gce

import (
	"context"
	"path"

	"google.golang.org/api/compute/v1"

	"drover"
)

// GrowDisk resizes the boot disk, which the instance sees at once.
func (c *cloud) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	doing := "grow the disk of instance " + id
	zone, name, err := split(id)
	if err != nil {
		return err
	}
	in, err := c.api.bootDisks(ctx, zone, name)
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
			begun, err := c.api.resizeDisk(ctx, zone, path.Base(d.Source), &compute.DisksResizeRequest{SizeGb: gib})
			return errs.Classify(doing, c.settle(ctx, zone, begun, err))
		}
	}
	return drover.Errorf(drover.KindUnsupported, "%s: it has no boot disk", doing)
}
