package ec2

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// spotEnds are the values of StateReason.Code with which EC2 interrupts a spot instance.
var spotEnds = []string{"Server.SpotInstanceTermination", "Server.SpotInstanceShutdown", "Server.SpotInstanceStop"}

// launchFails are patterns for the values of StateReason.Code with which EC2 ends an instance that it accepted but could
// not launch, for example because it may not use the volumes' key.
var launchFails = []string{"Server.InsufficientInstanceCapacity", "Server.InternalError", "Client.InternalError", "Client.Invalid*", "Client.VolumeLimitExceeded"}

// List lists live instances, and those that failed to launch or were interrupted: EC2 lists these for about an hour, and
// the driver does so until they are destroyed.
func (c *cloud) List(ctx context.Context, tags map[string]string) ([]driver.Instance, error) {
	living := append(tagFilters(tags), filter("instance-state-name", "pending", "running", "shutting-down", "stopping", "stopped"))
	found, err := c.instances(ctx, filtered(living...))
	if err != nil {
		return nil, errs.Classify("list instances", err)
	}
	ended := append(tagFilters(tags), filter("instance-state-name", "terminated"), filter("state-reason-code", slices.Concat(launchFails, spotEnds)...))
	more, err := c.instances(ctx, filtered(ended...))
	if err != nil {
		return nil, errs.Classify("list instances that EC2 ended", err)
	}
	return kit.Each(append(found, c.unburied(more)...), instanceOf), nil
}

// tagFilters match instances with all the tags.
func tagFilters(tags map[string]string) []params {
	return kit.EachTag(tags, func(key, value string) params { return filter("tag:"+key, value) })
}

// instance is what the driver reads from an instance.
type instance struct {
	ID         string    `xml:"instanceId"`
	Type       string    `xml:"instanceType"`
	Lifecycle  string    `xml:"instanceLifecycle"`
	Zone       string    `xml:"placement>availabilityZone"`
	State      string    `xml:"instanceState>name"`
	Reason     string    `xml:"reason"`
	ReasonCode string    `xml:"stateReason>code"`
	ReasonText string    `xml:"stateReason>message"`
	Private    string    `xml:"privateIpAddress"`
	Public     string    `xml:"ipAddress"`
	Launched   time.Time `xml:"launchTime"`
	Root       string    `xml:"rootDeviceName"`
	Devices    []device  `xml:"blockDeviceMapping>item"`
	Tags       []tag     `xml:"tagSet>item"`
}

// device is a block device of an instance or image.
type device struct {
	Name   string `xml:"deviceName"`
	Volume string `xml:"ebs>volumeId"`
	GiB    int32  `xml:"ebs>volumeSize"`
}

type tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// instances returns the instances that the parameters match.
func (c *cloud) instances(ctx context.Context, in params) ([]instance, error) {
	return listAll[instance](ctx, c.api, "DescribeInstances", "reservationSet>item>instancesSet>item", in)
}

// filtered returns the parameters for instances that filters match.
func filtered(filters ...params) params { return params{"Filters": filters, "MaxResults": 1000} }

// Describe reads one instance. EC2 shows an ended instance for an hour; Describe returns it only while List does.
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
	if found[0].State == "terminated" && ((!in.Reclaimed && in.Failed == nil) || len(c.unburied(found)) == 0) {
		return driver.Instance{Ended: in.Ended}, drover.Errorf(drover.KindNotFound, "%s: it is terminated", doing)
	}
	return in, nil
}

// ofID returns the instance with an id, as long as EC2 shows it.
func (c *cloud) ofID(ctx context.Context, id string) ([]instance, error) {
	if err := c.api.gate.Limiter.Take(time.Now(), 1, byID); err != nil {
		return nil, err
	}
	return c.instances(ctx, params{"InstanceIds": []string{id}})
}

// living returns the instance with an id, unless it will never run again.
func (c *cloud) living(ctx context.Context, id string) (instance, error) {
	found, err := c.ofID(ctx, id)
	if err != nil {
		return instance{}, err
	}
	for _, i := range found {
		if i.State != "terminated" && i.State != "shutting-down" {
			return i, nil
		}
	}
	return instance{}, drover.Errorf(drover.KindNotFound, "it is gone")
}

// unburied returns the instances that EC2 ended and that have not been destroyed since.
func (c *cloud) unburied(ended []instance) []instance {
	return slices.DeleteFunc(ended, func(i instance) bool { return c.destroyed.Has(i.ID) })
}

// instanceOf translates an instance.
func instanceOf(i instance) driver.Instance {
	in := driver.Instance{
		ID:           i.ID,
		Tags:         fromTags(i.Tags),
		ProviderType: i.Type,
		Market:       drover.OnDemand,
		Zone:         i.Zone,
		State:        cmp.Or(states[i.State], driver.Stopping),
		Reclaimed:    slices.Contains(spotEnds, i.ReasonCode),
		Addresses:    driver.Addresses{Private: i.Private, Public: i.Public},
		Created:      drover.TimeOf(i.Launched),
	}
	if i.Lifecycle == "spot" {
		in.Market = drover.Spot
	}
	if in.State == driver.Stopping {
		in.Ended = endedIn(i.Reason)
		in.Failed = i.failure(in.Market)
	}
	return in
}

// failure returns why EC2 could not launch an ended instance; nil if it launched it.
func (i instance) failure(m drover.Market) *drover.Error {
	if !slices.ContainsFunc(launchFails, func(pattern string) bool { return kit.MatchGlob(pattern, i.ReasonCode) }) {
		return nil
	}
	_, code, _ := strings.Cut(i.ReasonCode, ".")
	return errs.Error("launch instance "+i.ID, m, kit.Answer{Code: code, Message: strings.TrimPrefix(i.ReasonText, i.ReasonCode+": ")})
}

// endedIn returns the time in the reason why an instance ended, such as "User initiated (2026-01-02 15:04:05 GMT)".
// From then on it is not billed. EC2's own reasons contain no time.
func endedIn(reason string) drover.Time {
	_, said, _ := strings.Cut(reason, "(")
	at, err := time.Parse("2006-01-02 15:04:05 GMT)", said)
	if err != nil {
		return 0
	}
	return drover.TimeOf(at)
}

// states are the states that do not end an instance.
var states = map[string]driver.State{"pending": driver.Pending, "running": driver.Running, "stopped": driver.Stopped}

// SetTags sets the tags and deletes all others. EC2 has no call that does both; the driver sets the new tags first, so
// that an instance always has its fleet's tag.
func (c *cloud) SetTags(ctx context.Context, id string, tags map[string]string) error {
	doing := "tag instance " + id
	found, err := c.living(ctx, id)
	if err != nil {
		return errs.Classify(doing, err)
	}
	missing, surplus := c.difference(fromTags(found.Tags), tags)
	if len(missing) > 0 {
		err = c.api.do(ctx, "CreateTags", params{"ResourceIds": []string{id}, "Tags": tagsOf(missing)}, nil)
	}
	if err == nil && len(surplus) > 0 {
		err = c.api.do(ctx, "DeleteTags", params{"ResourceIds": []string{id}, "Tags": surplus}, nil)
	}
	return errs.Classify(doing, err)
}

// difference returns the tags to set and those to delete. The name and the configured tags stay.
func (c *cloud) difference(has, wanted map[string]string) (missing map[string]string, surplus []params) {
	missing = maps.Clone(wanted)
	maps.DeleteFunc(missing, func(k, v string) bool { old, ok := has[k]; return ok && old == v })
	for k := range has {
		_, stays := wanted[k]
		_, configured := c.config.Tags[k]
		if !stays && !configured && k != nameTag {
			surplus = append(surplus, params{"Key": k}) // with any value
		}
	}
	return missing, surplus
}

// tagsOf encodes tags for the API, sorted, so that equal requests are equal.
func tagsOf(tags map[string]string) []params {
	return kit.EachTag(tags, func(key, value string) params { return params{"Key": key, "Value": value} })
}

// fromTags decodes tags. It leaves out AWS's own, which nobody else can set or delete.
func fromTags(all []tag) map[string]string {
	tags := make(map[string]string, len(all))
	for _, t := range all {
		if !strings.HasPrefix(t.Key, "aws:") {
			tags[t.Key] = t.Value
		}
	}
	return tags
}
