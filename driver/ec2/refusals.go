package ec2

import (
	"cmp"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver/kit"
)

// refusals is one error for what a fleet says of each of its candidates, none of which is to be had.
func refusals(said []types.CreateFleetError) error {
	var all []*drover.Error
	for _, s := range said {
		doing := "it"
		if o := s.LaunchTemplateAndOverrides; o != nil && o.Overrides != nil {
			doing = fmt.Sprintf("%s in %s", o.Overrides.InstanceType, cmp.Or(aws.ToString(o.Overrides.AvailabilityZone), aws.ToString(o.Overrides.SubnetId)))
		}
		all = append(all, refusal(doing, aws.ToString(s.ErrorCode), aws.ToString(s.ErrorMessage)))
	}
	if len(all) == 0 {
		return drover.Errorf(drover.KindTransient, "EC2 made nothing and does not say why")
	}
	return kit.MostSevere(all)
}
