package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
)

// weight orders what a fleet was refused for by how much it matters when several candidates were refused for different reasons: what is wrong
// with all of them first, and a lack of capacity before a lack of quota, since a quota speaks only of the types that it holds for.
var weight = map[drover.ErrorKind]int{
	drover.KindAuthentication: 1, drover.KindRateLimit: 2, drover.KindTransient: 3, drover.KindCapacity: 4, drover.KindQuota: 5, drover.KindUnsupported: 6, drover.KindInvalid: 7,
}

// refusals is one error for what a fleet says of each of its candidates, none of which is to be had.
func refusals(m drover.Market, said []types.CreateFleetError) error {
	var all []*drover.Error
	for _, s := range said {
		doing := "it"
		if o := s.LaunchTemplateAndOverrides; o != nil && o.Overrides != nil {
			doing = fmt.Sprintf("%s in %s", o.Overrides.InstanceType, cmp.Or(aws.ToString(o.Overrides.AvailabilityZone), aws.ToString(o.Overrides.SubnetId)))
		}
		all = append(all, refusal(doing, m, aws.ToString(s.ErrorCode), aws.ToString(s.ErrorMessage)))
	}
	if len(all) == 0 {
		return drover.Errorf(drover.KindTransient, "EC2 made nothing and does not say why")
	}
	return worst(all)
}

// worst is the error that matters most, with the words of all. Of candidates that were refused for different reasons, of which a lack of
// capacity is one, none is to be had: that is a lack of capacity of each.
func worst(all []*drover.Error) *drover.Error {
	first := slices.MinFunc(all, func(a, b *drover.Error) int { return cmp.Compare(weight[a.Kind], weight[b.Kind]) })
	e := *first
	var words []string
	for _, other := range all {
		if !slices.Contains(words, other.Message) {
			words = append(words, other.Message)
		}
		if other.Kind != e.Kind || other.Scope != e.Scope {
			e.Scope = narrower(e)
		}
		if other.Market != e.Market {
			e.Market = ""
		}
	}
	e.Message = strings.Join(words, "; ")
	return &e
}

// narrower is the scope of an error that others do not share: no wider than what was tried.
func narrower(e drover.Error) drover.Scope {
	if e.Scope == "" {
		return ""
	}
	return drover.ScopeType
}
