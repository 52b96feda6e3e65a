package ec2

import (
	"cmp"
	"context"
	"errors"
	"time"

	"drover"
	"drover/driver"
)

// Destroy terminates an instance with its volumes. Concurrent calls share one request.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := errs.Gone("destroy instance "+id, c.endings.Do(ctx, id))
	if err == nil {
		c.destroyed.Add(id)
	}
	return err
}

// ofOne reports whether a call to terminate several instances may have failed because of one: its id is wrong, it is
// protected from termination, or the policy protects it.
func ofOne(err error) bool {
	kind := errs.KindOf(err)
	return kind == drover.KindNotFound || kind == drover.KindInvalid || errs.CodeOf(err) == "UnauthorizedOperation"
}

// terminate terminates several instances. If EC2 refuses one, it may terminate none.
func (c *cloud) terminate(ctx context.Context, ids []string) error {
	if err := c.api.gate.Limiter.Take(time.Now(), len(ids), eachEnding); err != nil {
		return err
	}
	return c.api.do(ctx, "TerminateInstances", params{"InstanceIds": ids}, nil)
}

// Stop stops an instance; its volumes still cost money. A spot instance is KindUnsupported.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return errs.Classify("stop instance "+id, c.api.do(ctx, "StopInstances", params{"InstanceIds": []string{id}}, nil))
}

// Start starts a stopped instance.
func (c *cloud) Start(ctx context.Context, id string) error {
	return errs.Classify("start instance "+id, c.api.do(ctx, "StartInstances", params{"InstanceIds": []string{id}}, nil))
}

// resource is what the driver reads from a launch template, key pair or volume.
type resource struct {
	Template string    `xml:"launchTemplateName"`
	KeyPair  string    `xml:"keyName"`
	Volume   string    `xml:"volumeId"`
	GiB      int64     `xml:"size"`
	Tags     []tag     `xml:"tagSet>item"`
	Created  time.Time `xml:"createTime"`
}

// leftovers are the kinds of leftovers: how to list them, and how to remove one by its id.
var leftovers = []struct {
	kind, list, path, remove, id string
	shared                       bool
}{
	{"launch template", "DescribeLaunchTemplates", "launchTemplates>item", "DeleteLaunchTemplate", "LaunchTemplateName", true},
	{"key pair", "DescribeKeyPairs", "keySet>item", "DeleteKeyPair", "KeyName", true},
	{"volume", "DescribeVolumes", "volumeSet>item", "DeleteVolume", "VolumeId", false},
}

// Leftovers are the fleet's launch templates and key pairs, which its instances share, and unattached volumes.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	for _, of := range leftovers {
		in := params{"Filters": []params{filter("tag:"+driver.TagFleet, fleet)}}
		if !of.shared {
			in = params{"Filters": []params{filter("tag:"+driver.TagFleet, fleet), filter("status", "available", "error")}, "MaxResults": 500}
		}
		found, failed := listAll[resource](ctx, c.api, of.list, of.path, in)
		err = errors.Join(err, errs.Classify("list "+of.kind+"s", failed))
		for _, one := range found {
			id := cmp.Or(one.Template, one.KeyPair, one.Volume)
			all = append(all, driver.Leftover{Kind: of.kind, ID: id, Tags: fromTags(one.Tags), Created: drover.TimeOf(one.Created), Shared: of.shared})
		}
	}
	return all, err
}

// Remove removes a leftover. A volume that is attached again stays.
func (c *cloud) Remove(ctx context.Context, l driver.Leftover) error {
	for _, of := range leftovers {
		if of.kind != l.Kind {
			continue
		}
		if of.shared {
			c.made.Forget()
		}
		err := c.api.do(ctx, of.remove, params{of.id: l.ID}, nil)
		if errs.CodeOf(err) == "VolumeInUse" {
			return nil
		}
		return errs.Gone("remove "+l.Kind+" "+l.ID, err)
	}
	return drover.Errorf(drover.KindInvalid, "this driver cannot remove leftover resources of type %s", l.Kind)
}
