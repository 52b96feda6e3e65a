package ec2

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver/kit"
)

// volumePrices are the prices of a GiB per month in us-east-1, by volume type: https://aws.amazon.com/ebs/pricing/.
// Provisioned IOPS and throughput cost extra, which is ignored.
var volumePrices = map[string]drover.Money{
	"gp3": 80 * milli, "gp2": 100 * milli, "io1": 125 * milli, "io2": 125 * milli, "st1": 45 * milli, "sc1": 15 * milli, "standard": 50 * milli,
}

const milli = drover.Dollar / 1000

// hourly is the price of a GiB per hour.
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

// volumesBy are those that the filters find.
func (c *cloud) volumesBy(ctx context.Context, filters ...types.Filter) ([]types.Volume, error) {
	in := &ec2.DescribeVolumesInput{Filters: filters, MaxResults: aws.Int32(500)}
	return listAll[types.Volume](ctx, c.api, c.api.ec2().DescribeVolumes, in)
}

// GrowDisk modifies the root volume, which EC2 allows at most once in six hours; the instance sees the new size while
// the modification is still under way.
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
	volumes, err := c.volumesBy(ctx, filter("volume-id", volume))
	if err != nil {
		return errs.Classify(doing, err)
	}
	gib := int32(size.WholeGiB())
	if len(volumes) == 1 && aws.ToInt32(volumes[0].Size) >= gib {
		return nil
	}
	_, err = call(ctx, c.api, c.api.ec2().ModifyVolume, &ec2.ModifyVolumeInput{VolumeId: &volume, Size: &gib})
	return errs.Classify(doing, err)
}

// rootOf is the root volume of an instance: its only one, or the one with the root's name. A newly accepted instance
// may not have it yet.
func rootOf(in types.Instance) (volume string, err error) {
	for _, m := range in.BlockDeviceMappings {
		if m.Ebs != nil && (len(in.BlockDeviceMappings) == 1 || aws.ToString(m.DeviceName) == aws.ToString(in.RootDeviceName)) {
			return aws.ToString(m.Ebs.VolumeId), nil
		}
	}
	if kit.Value(in.State).Name == types.InstanceStateNamePending {
		return "", drover.Errorf(drover.KindTransient, "it has no root volume yet")
	}
	return "", drover.Errorf(drover.KindUnsupported, "its root disk is not a volume")
}
