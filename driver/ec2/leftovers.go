package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"drover"
	"drover/driver"
)

// What can be left over.
const (
	leftoverTemplate = "launch template"
	leftoverKeyPair  = "key pair"
	leftoverVolume   = "volume"
)

// Leftovers are the fleet's launch templates and key pairs, which its instances share, and volumes that are attached to nothing.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	filters := []types.Filter{filter("tag:"+driver.TagFleet, fleet)}
	in := &ec2.DescribeLaunchTemplatesInput{Filters: filters}
	templates, err := pages(&in.NextToken, func() ([]types.LaunchTemplate, *string, error) {
		out, err := call(ctx, c.api, c.api.ec2().DescribeLaunchTemplates, in)
		return out.LaunchTemplates, out.NextToken, err
	})
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

// Remove takes a leftover away. A volume that is attached again is in use, and stays.
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
		return drover.Errorf(drover.KindInvalid, "a %s is nothing that this cloud takes away", s.Kind)
	}
	if errs.CodeOf(err) == "VolumeInUse" {
		return nil
	}
	return errs.Gone("take away "+s.Kind+" "+s.ID, err)
}
