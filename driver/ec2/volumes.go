package ec2

import (
	"cmp"
	"context"

	"drover"
	"drover/driver/kit"
)

// volumePrices are the prices of a GiB per month in us-east-1, by volume type: https://aws.amazon.com/ebs/pricing/.
// They exclude the extra cost of provisioned IOPS and throughput.
var volumePrices = map[string]drover.Money{
	"gp3": 80 * milli, "gp2": 100 * milli, "io1": 125 * milli, "io2": 125 * milli, "st1": 45 * milli, "sc1": 15 * milli, "standard": 50 * milli,
}

const milli = drover.Dollar / 1000

// hourly returns the price of a GiB per hour.
func (v volume) hourly() drover.Money {
	return kit.PerHour(v.Price, volumePrices[cmp.Or(v.Type, defaultVolume)]/kit.MonthOfHours)
}

// addVolumes adds the price of the additional volumes to an offering, and sets the price of a GiB of the root volume.
func (c *cloud) addVolumes(o *drover.Offering) {
	for _, v := range c.config.Volumes {
		o.Price += v.hourly() * drover.Money(v.Size.WholeGiB())
	}
	o.DiskPrice = c.config.Volume.hourly()
}

// GrowDisk modifies the root volume, which EC2 allows at most once in six hours; the instance sees the new size before
// the modification has ended.
func (c *cloud) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	doing := "grow the volume of instance " + id
	in, err := c.living(ctx, id)
	if err != nil {
		return errs.Classify(doing, err)
	}
	volume, err := rootOf(in)
	if err != nil {
		return errs.Classify(doing, err)
	}
	volumes, err := listAll[resource](ctx, c.api, "DescribeVolumes", "volumeSet>item", params{"Filters": []params{filter("volume-id", volume)}, "MaxResults": 500})
	if err != nil {
		return errs.Classify(doing, err)
	}
	gib := size.WholeGiB()
	if len(volumes) == 1 && volumes[0].GiB >= gib {
		return nil
	}
	return errs.Classify(doing, c.api.do(ctx, "ModifyVolume", params{"VolumeId": volume, "Size": gib}, nil))
}

// rootOf returns the root volume of an instance: its only one, or the one with the root's name. A newly accepted
// instance may not have it yet.
func rootOf(in instance) (volume string, err error) {
	for _, d := range in.Devices {
		if d.Volume != "" && (len(in.Devices) == 1 || d.Name == in.Root) {
			return d.Volume, nil
		}
	}
	if in.State == "pending" {
		return "", drover.Errorf(drover.KindTransient, "it has no root volume yet")
	}
	return "", drover.Errorf(drover.KindUnsupported, "its root disk is not an EBS volume")
}
