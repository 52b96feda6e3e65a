package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
)

// GrowDisk modifies the root volume. EC2 does that once in six hours at most; the instance sees it while the volume is still being modified.
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

// rootOf is the root volume of an instance: its only one, or that which bears the root's name. One that has only been accepted may not have it
// yet.
func rootOf(in types.Instance) (volume string, err error) {
	for _, m := range in.BlockDeviceMappings {
		if m.Ebs != nil && (len(in.BlockDeviceMappings) == 1 || aws.ToString(m.DeviceName) == aws.ToString(in.RootDeviceName)) {
			return aws.ToString(m.Ebs.VolumeId), nil
		}
	}
	if in.State != nil && in.State.Name == types.InstanceStateNamePending {
		return "", drover.Errorf(drover.KindTransient, "it has no root volume yet")
	}
	return "", drover.Errorf(drover.KindUnsupported, "its root is no volume")
}
