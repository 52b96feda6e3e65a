package ec2

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// spotEnds are the values of StateReason.Code with which EC2 takes a spot instance back.
var spotEnds = []string{"Server.SpotInstanceTermination", "Server.SpotInstanceShutdown", "Server.SpotInstanceStop"}

// List asks for live instances and, where spot instances are rented, for those taken back: EC2 lists them for about
// an hour, and the driver until they are destroyed.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	living := append(tagFilters(tags), filter("instance-state-name", "pending", "running", "shutting-down", "stopping", "stopped"))
	found, err := c.instances(ctx, living)
	if err != nil {
		return nil, errs.Classify("list instances", err)
	}
	if c.config.Wants(drover.Spot) {
		taken := append(tagFilters(tags), filter("instance-state-name", "terminated"), filter("state-reason-code", spotEnds...))
		more, err := c.instances(ctx, taken)
		if err != nil {
			return nil, errs.Classify("list instances that were reclaimed", err)
		}
		found = append(found, c.unburied(more)...)
	}
	return kit.Each(found, instanceOf), nil
}

// tagFilters match instances with all the tags.
func tagFilters(tags map[string]string) []types.Filter {
	return kit.EachTag(tags, func(key, value string) types.Filter { return filter("tag:"+key, value) })
}

// instances are those that the filters find.
func (c *cloud) instances(ctx context.Context, filters []types.Filter) ([]types.Instance, error) {
	in := &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(1000)}
	found, err := listAll[types.Reservation](ctx, c.api, c.api.ec2().DescribeInstances, in)
	return instancesIn(found), err
}

// Describe asks for one instance. EC2 shows an ended one for an hour; it counts only as long as List has it as
// reclaimed.
func (c *cloud) Describe(ctx context.Context, id string) (driver.Instance, error) {
	doing := "describe instance " + id
	found, err := c.ofID(ctx, id)
	if err == nil && len(found) == 0 {
		err = drover.Errorf(drover.KindTransient, "EC2 returned neither the instance nor an error")
	}
	if err != nil {
		return driver.Instance{}, errs.Classify(doing, err)
	}
	in := instanceOf(found[0])
	if ended := kit.Value(found[0].State).Name == types.InstanceStateNameTerminated; ended && !(in.Reclaimed && c.config.Wants(drover.Spot) && len(c.unburied(found)) > 0) {
		return driver.Instance{Ended: in.Ended}, drover.Errorf(drover.KindNotFound, "%s: it is terminated", doing)
	}
	return in, nil
}

// ofID is the instance of an id, as long as EC2 knows of it.
func (c *cloud) ofID(ctx context.Context, id string) ([]types.Instance, error) {
	if err := c.api.gate.Limiter.Take(time.Now(), 1, byID); err != nil {
		return nil, err
	}
	out, err := call(ctx, c.api, c.api.ec2().DescribeInstances, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	return instancesIn(out.Reservations), err
}

// living is the instance with an id, unless it will never run again.
func (c *cloud) living(ctx context.Context, id string) (types.Instance, error) {
	found, err := c.ofID(ctx, id)
	if err != nil {
		return types.Instance{}, err
	}
	for _, i := range found {
		if s := kit.Value(i.State).Name; s != types.InstanceStateNameTerminated && s != types.InstanceStateNameShuttingDown {
			return i, nil
		}
	}
	return types.Instance{}, drover.Errorf(drover.KindNotFound, "it is gone")
}

func instancesIn(found []types.Reservation) (all []types.Instance) {
	for _, r := range found {
		all = append(all, r.Instances...)
	}
	return all
}

// unburied are the reclaimed instances that were not destroyed since.
func (c *cloud) unburied(taken []types.Instance) []types.Instance {
	return slices.DeleteFunc(taken, func(i types.Instance) bool { return c.destroyed.Has(aws.ToString(i.InstanceId)) })
}

// instanceOf translates an instance.
func instanceOf(i types.Instance) driver.Instance {
	in := driver.Instance{
		ID:           aws.ToString(i.InstanceId),
		Tags:         fromTags(i.Tags),
		ProviderType: string(i.InstanceType),
		Market:       drover.OnDemand,
		Zone:         aws.ToString(kit.Value(i.Placement).AvailabilityZone),
		State:        cmp.Or(states[kit.Value(i.State).Name], driver.Stopping),
		Reclaimed:    slices.Contains(spotEnds, aws.ToString(kit.Value(i.StateReason).Code)),
		Addresses:    driver.Addresses{Private: aws.ToString(i.PrivateIpAddress), Public: aws.ToString(i.PublicIpAddress)},
		Created:      drover.TimeOf(aws.ToTime(i.LaunchTime)),
	}
	if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
		in.Market = drover.Spot
	}
	if in.State == driver.Stopping {
		in.Ended = endedIn(aws.ToString(i.StateTransitionReason))
	}
	return in
}

// endedIn is the time in the reason why an instance ended, such as "User initiated (2026-01-02 15:04:05 GMT)". From
// then on it is not billed. EC2's own reasons have no time.
func endedIn(reason string) drover.Time {
	_, said, _ := strings.Cut(reason, "(")
	at, err := time.Parse("2006-01-02 15:04:05 GMT)", said)
	if err != nil {
		return 0
	}
	return drover.TimeOf(at)
}

// states are those of which one does not end.
var states = map[types.InstanceStateName]driver.State{
	types.InstanceStateNamePending: driver.Pending,
	types.InstanceStateNameRunning: driver.Running,
	types.InstanceStateNameStopped: driver.Stopped,
}

// SetTags gives the tags and takes away what else there is. EC2 has no call for both; the new tags come first, so that an instance is never
// without its fleet's.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	doing := "tag instance " + id
	found, err := c.living(ctx, id)
	if err != nil {
		return errs.Classify(doing, err)
	}
	missing, surplus := c.difference(fromTags(found.Tags), tags)
	if len(missing) > 0 {
		_, err = call(ctx, c.api, c.api.ec2().CreateTags, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tagsOf(missing)})
	}
	if err == nil && len(surplus) > 0 {
		_, err = call(ctx, c.api, c.api.ec2().DeleteTags, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: surplus})
	}
	return errs.Classify(doing, err)
}

// difference is the tags to set and those to delete. The name and the configured tags stay.
func (c *cloud) difference(has, wanted map[string]string) (missing map[string]string, surplus []types.Tag) {
	missing = maps.Clone(wanted)
	maps.DeleteFunc(missing, func(k, v string) bool { old, ok := has[k]; return ok && old == v })
	for k := range has {
		_, stays := wanted[k]
		_, configured := c.config.Tags[k]
		if !stays && !configured && k != nameTag {
			surplus = append(surplus, types.Tag{Key: aws.String(k)})
		}
	}
	return missing, surplus
}

// tagsOf encodes tags for the API, sorted, so that equal requests are equal.
func tagsOf(tags map[string]string) []types.Tag {
	return kit.EachTag(tags, func(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} })
}

// fromTags decodes tags, without those of AWS itself, which nobody else can set or delete.
func fromTags(all []types.Tag) map[string]string {
	tags := make(map[string]string, len(all))
	for _, t := range all {
		if k := aws.ToString(t.Key); !strings.HasPrefix(k, "aws:") {
			tags[k] = aws.ToString(t.Value)
		}
	}
	return tags
}
