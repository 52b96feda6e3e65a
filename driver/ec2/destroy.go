package ec2

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
)

// Destroy terminates an instance with its volumes. Concurrent calls share one request.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := errs.Gone("destroy instance "+id, c.endings.Do(ctx, id))
	if err == nil && c.config.Wants(drover.Spot) {
		c.destroyed.Add(id)
	}
	return err
}

// terminate terminates several instances. If one id is wrong, EC2 terminates none.
func (c *cloud) terminate(ctx context.Context, ids []string) error {
	if err := c.api.gate.Limiter.Take(time.Now(), len(ids), eachEnding); err != nil {
		return err
	}
	_, err := call(ctx, c.api, c.api.ec2().TerminateInstances, &ec2.TerminateInstancesInput{InstanceIds: ids})
	return err
}

// Stop stops an instance; its volumes still cost money. A spot instance is KindUnsupported.
func (c *cloud) Stop(ctx context.Context, id string) error {
	_, err := call(ctx, c.api, c.api.ec2().StopInstances, &ec2.StopInstancesInput{InstanceIds: []string{id}})
	return errs.Classify("stop instance "+id, err)
}

// Start starts a stopped instance.
func (c *cloud) Start(ctx context.Context, id string) error {
	_, err := call(ctx, c.api, c.api.ec2().StartInstances, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	return errs.Classify("start instance "+id, err)
}

// What can be left over.
const (
	leftoverTemplate = "launch template"
	leftoverKeyPair  = "key pair"
	leftoverVolume   = "volume"
)

// Leftovers are the fleet's launch templates and key pairs, which its instances share, and unattached volumes.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	filters := []types.Filter{filter("tag:"+driver.TagFleet, fleet)}
	ofFleet := &ec2.DescribeLaunchTemplatesInput{Filters: filters}
	templates, err := listAll[types.LaunchTemplate](ctx, c.api, c.api.ec2().DescribeLaunchTemplates, ofFleet)
	if err != nil {
		return nil, errs.Classify("list launch templates", err)
	}
	for _, t := range templates {
		all = append(all, driver.Leftover{Kind: leftoverTemplate, ID: aws.ToString(t.LaunchTemplateName), Tags: fromTags(t.Tags), Created: drover.TimeOf(aws.ToTime(t.CreateTime)), Shared: true})
	}
	keys, err := call(ctx, c.api, c.api.ec2().DescribeKeyPairs, &ec2.DescribeKeyPairsInput{Filters: filters})
	if err != nil {
		return nil, errs.Classify("list key pairs", err)
	}
	for _, k := range keys.KeyPairs {
		all = append(all, driver.Leftover{Kind: leftoverKeyPair, ID: aws.ToString(k.KeyName), Tags: fromTags(k.Tags), Created: drover.TimeOf(aws.ToTime(k.CreateTime)), Shared: true})
	}
	volumes, err := c.volumesBy(ctx, append(filters, filter("status", "available", "error"))...)
	if err != nil {
		return nil, errs.Classify("list volumes", err)
	}
	for _, v := range volumes {
		all = append(all, driver.Leftover{Kind: leftoverVolume, ID: aws.ToString(v.VolumeId), Tags: fromTags(v.Tags), Created: drover.TimeOf(aws.ToTime(v.CreateTime))})
	}
	return all, nil
}

// Remove removes a leftover. A volume that is attached again stays.
func (c *cloud) Remove(ctx context.Context, s driver.Leftover) error {
	var err error
	switch s.Kind {
	case leftoverTemplate:
		c.made.Forget()
		_, err = call(ctx, c.api, c.api.ec2().DeleteLaunchTemplate, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: &s.ID})
	case leftoverKeyPair:
		c.made.Forget()
		_, err = call(ctx, c.api, c.api.ec2().DeleteKeyPair, &ec2.DeleteKeyPairInput{KeyName: &s.ID})
	case leftoverVolume:
		_, err = call(ctx, c.api, c.api.ec2().DeleteVolume, &ec2.DeleteVolumeInput{VolumeId: &s.ID})
	default:
		return drover.Errorf(drover.KindInvalid, "leftovers of kind %s cannot be removed in this cloud", s.Kind)
	}
	if errs.CodeOf(err) == "VolumeInUse" {
		return nil
	}
	return errs.Gone("remove "+s.Kind+" "+s.ID, err)
}
