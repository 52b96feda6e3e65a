package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
)

// GrowDisk modifies the root volume. EC2 does that once in six hours at most; the instance sees it while the volume is still being modified.
func (c *cloud) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	doing := "grow the volume of instance " + id
	found, err := c.api.describeInstances(ctx, []string{id}, nil)
	if err != nil {
		return classify(doing, "", err)
	}
	volume, err := rootOf(found)
	if err != nil {
		return classify(doing, "", err)
	}
	volumes, err := c.api.describeVolumes(ctx, []types.Filter{filter("volume-id", volume)})
	if err != nil {
		return classify(doing, "", err)
	}
	gib := int32(size.WholeGiB())
	if len(volumes) == 1 && aws.ToInt32(volumes[0].Size) >= gib {
		return nil
	}
	return classify(doing, "", c.api.growVolume(ctx, volume, gib))
}

// rootOf is the root volume of the one instance that was found: its only one, or that which bears the root's name. One that has only been accepted
// may not have it yet.
func rootOf(found []types.Instance) (volume string, err error) {
	if len(found) != 1 || found[0].State != nil && (found[0].State.Name == types.InstanceStateNameTerminated || found[0].State.Name == types.InstanceStateNameShuttingDown) {
		return "", drover.Errorf(drover.KindNotFound, "it is gone")
	}
	in := found[0]
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
