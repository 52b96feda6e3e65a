package ec2

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"drover"
	"drover/driver"
)

// api is all that is ever asked of AWS, with nothing tried twice, every call counted and none beyond the published rates. It holds the calls and not
// the clients: what a client can do beside them, some seven hundred calls, then is no part of the program.
type api struct {
	region string
	calls  calls
	budget *driver.Budget
	metric func(call string, err error)
}

// of is a call with its input and its output.
type of[I, O any] func(context.Context, *I) (*O, error)

type calls struct {
	createFleet                   of[ec2.CreateFleetInput, ec2.CreateFleetOutput]
	describeInstances             of[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput]
	terminateInstances            of[ec2.TerminateInstancesInput, ec2.TerminateInstancesOutput]
	startInstances                of[ec2.StartInstancesInput, ec2.StartInstancesOutput]
	stopInstances                 of[ec2.StopInstancesInput, ec2.StopInstancesOutput]
	createTags                    of[ec2.CreateTagsInput, ec2.CreateTagsOutput]
	deleteTags                    of[ec2.DeleteTagsInput, ec2.DeleteTagsOutput]
	createLaunchTemplate          of[ec2.CreateLaunchTemplateInput, ec2.CreateLaunchTemplateOutput]
	describeLaunchTemplates       of[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput]
	deleteLaunchTemplate          of[ec2.DeleteLaunchTemplateInput, ec2.DeleteLaunchTemplateOutput]
	importKeyPair                 of[ec2.ImportKeyPairInput, ec2.ImportKeyPairOutput]
	describeKeyPairs              of[ec2.DescribeKeyPairsInput, ec2.DescribeKeyPairsOutput]
	deleteKeyPair                 of[ec2.DeleteKeyPairInput, ec2.DeleteKeyPairOutput]
	describeVolumes               of[ec2.DescribeVolumesInput, ec2.DescribeVolumesOutput]
	modifyVolume                  of[ec2.ModifyVolumeInput, ec2.ModifyVolumeOutput]
	deleteVolume                  of[ec2.DeleteVolumeInput, ec2.DeleteVolumeOutput]
	describeImages                of[ec2.DescribeImagesInput, ec2.DescribeImagesOutput]
	describeSubnets               of[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput]
	describeInstanceTypes         of[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput]
	describeInstanceTypeOfferings of[ec2.DescribeInstanceTypeOfferingsInput, ec2.DescribeInstanceTypeOfferingsOutput]
	describeSpotPriceHistory      of[ec2.DescribeSpotPriceHistoryInput, ec2.DescribeSpotPriceHistoryOutput]
	getParameter                  of[ssm.GetParameterInput, ssm.GetParameterOutput]
	getProducts                   of[pricing.GetProductsInput, pricing.GetProductsOutput]
}

// connect finds region and credentials as the AWS tools do. It calls nobody yet, unless the credentials come from elsewhere.
func connect(ctx context.Context, c Config, client aws.HTTPClient, metric func(string, error)) (*api, error) {
	options := []func(*config.LoadOptions) error{
		config.WithRegion(c.Region),
		config.WithSharedConfigProfile(c.Profile),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
	}
	if client != nil {
		options = append(options, config.WithHTTPClient(client))
	}
	if c.Endpoint != "" {
		options = append(options, config.WithBaseEndpoint(c.Endpoint))
	}
	all, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "read the AWS tools' configuration: %v", err)
	}
	if all.Region == "" {
		return nil, drover.Errorf(drover.KindInvalid, "no region is configured").WithHint("write region: us-east-1, or another")
	}
	all.Credentials = credentials{all.Credentials}
	a := &api{region: all.Region, budget: driver.NewBudget(rates, c.CallRate), metric: metric}
	a.setCalls(ec2.NewFromConfig(all))
	a.calls.getParameter = counted(a, "GetParameter", ssm.NewFromConfig(all).GetParameter)
	prices := pricing.NewFromConfig(all, func(o *pricing.Options) { o.Region = priceRegion(all.Region) })
	a.calls.getProducts = counted(a, "GetProducts", prices.GetProducts)
	return a, nil
}

func (a *api) setCalls(client *ec2.Client) {
	a.calls = calls{
		createFleet:                   counted(a, "CreateFleet", client.CreateFleet),
		describeInstances:             counted(a, "DescribeInstances", client.DescribeInstances),
		terminateInstances:            counted(a, "TerminateInstances", client.TerminateInstances),
		startInstances:                counted(a, "StartInstances", client.StartInstances),
		stopInstances:                 counted(a, "StopInstances", client.StopInstances),
		createTags:                    counted(a, "CreateTags", client.CreateTags),
		deleteTags:                    counted(a, "DeleteTags", client.DeleteTags),
		createLaunchTemplate:          counted(a, "CreateLaunchTemplate", client.CreateLaunchTemplate),
		describeLaunchTemplates:       counted(a, "DescribeLaunchTemplates", client.DescribeLaunchTemplates),
		deleteLaunchTemplate:          counted(a, "DeleteLaunchTemplate", client.DeleteLaunchTemplate),
		importKeyPair:                 counted(a, "ImportKeyPair", client.ImportKeyPair),
		describeKeyPairs:              counted(a, "DescribeKeyPairs", client.DescribeKeyPairs),
		deleteKeyPair:                 counted(a, "DeleteKeyPair", client.DeleteKeyPair),
		describeVolumes:               counted(a, "DescribeVolumes", client.DescribeVolumes),
		modifyVolume:                  counted(a, "ModifyVolume", client.ModifyVolume),
		deleteVolume:                  counted(a, "DeleteVolume", client.DeleteVolume),
		describeImages:                counted(a, "DescribeImages", client.DescribeImages),
		describeSubnets:               counted(a, "DescribeSubnets", client.DescribeSubnets),
		describeInstanceTypes:         counted(a, "DescribeInstanceTypes", client.DescribeInstanceTypes),
		describeInstanceTypeOfferings: counted(a, "DescribeInstanceTypeOfferings", client.DescribeInstanceTypeOfferings),
		describeSpotPriceHistory:      counted(a, "DescribeSpotPriceHistory", client.DescribeSpotPriceHistory),
	}
}

// priceRegion is where the price list of a region is told: see "AWS Price List Query API endpoints".
func priceRegion(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "cn-northwest-1"
	}
	return "us-east-1"
}

// credentials says that it is them who are missing, since the error would not.
type credentials struct{ aws.CredentialsProvider }

// Retrieve asks whoever has the credentials.
func (c credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		e := drover.Errorf(drover.KindAuthentication, "no AWS credentials: %v", err)
		return found, e.WithHint("give the controller a role, or run aws configure")
	}
	return found, err
}

// counted is a call that is made only within its rate, and counted.
func counted[I, O, X any](a *api, name string, f func(context.Context, *I, ...func(*X)) (*O, error)) of[I, O] {
	return func(ctx context.Context, in *I) (*O, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := a.budget.Take(name, time.Now()); err != nil {
			return nil, err
		}
		out, err := f(ctx, in)
		if a.metric != nil {
			a.metric(name, err)
		}
		return out, err
	}
}

// pages is what all pages of an answer have together: each call's input has the token of the page there, and read finds in its output what the
// page has, and the token of the next.
func pages[I, O, T any](ctx context.Context, call of[I, O], in *I, token **string, read func(*O) ([]T, *string)) ([]T, error) {
	return driver.Collect(func(after string) ([]T, string, error) {
		if after != "" {
			*token = &after
		}
		out, err := call(ctx, in)
		if err != nil {
			return nil, "", err
		}
		some, next := read(out)
		return some, aws.ToString(next), nil
	})
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// tagFilters find what bears all the tags.
func tagFilters(tags map[string]string) (all []types.Filter) {
	for _, t := range tagsOf(tags) {
		all = append(all, filter("tag:"+*t.Key, *t.Value))
	}
	return all
}

func (a *api) createFleet(ctx context.Context, in *ec2.CreateFleetInput) (*ec2.CreateFleetOutput, error) {
	return a.calls.createFleet(ctx, in)
}

func (a *api) describeInstances(ctx context.Context, ids []string, filters []types.Filter) ([]types.Instance, error) {
	in := &ec2.DescribeInstancesInput{InstanceIds: ids, Filters: filters}
	if len(ids) == 0 {
		in.MaxResults = aws.Int32(1000)
	} else if err := a.budget.Take(byID, time.Now()); err != nil {
		return nil, err
	}
	return pages(ctx, a.calls.describeInstances, in, &in.NextToken, func(out *ec2.DescribeInstancesOutput) (some []types.Instance, next *string) {
		for _, r := range out.Reservations {
			some = append(some, r.Instances...)
		}
		return some, out.NextToken
	})
}

func (a *api) terminateInstances(ctx context.Context, ids []string) error {
	if err := a.budget.TakeMany(eachEnding, len(ids), time.Now()); err != nil {
		return err
	}
	_, err := a.calls.terminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	return err
}

func (a *api) startInstance(ctx context.Context, id string) error {
	_, err := a.calls.startInstances(ctx, &ec2.StartInstancesInput{InstanceIds: []string{id}})
	return err
}

func (a *api) stopInstance(ctx context.Context, id string) error {
	_, err := a.calls.stopInstances(ctx, &ec2.StopInstancesInput{InstanceIds: []string{id}})
	return err
}

func (a *api) createTags(ctx context.Context, id string, tags []types.Tag) error {
	_, err := a.calls.createTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags})
	return err
}

func (a *api) deleteTags(ctx context.Context, id string, tags []types.Tag) error {
	_, err := a.calls.deleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: tags})
	return err
}

func (a *api) createLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput) error {
	_, err := a.calls.createLaunchTemplate(ctx, in)
	return err
}

func (a *api) describeLaunchTemplates(ctx context.Context, filters []types.Filter) ([]types.LaunchTemplate, error) {
	in := &ec2.DescribeLaunchTemplatesInput{Filters: filters}
	return pages(ctx, a.calls.describeLaunchTemplates, in, &in.NextToken, func(out *ec2.DescribeLaunchTemplatesOutput) ([]types.LaunchTemplate, *string) {
		return out.LaunchTemplates, out.NextToken
	})
}

func (a *api) deleteLaunchTemplate(ctx context.Context, name string) error {
	_, err := a.calls.deleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: &name})
	return err
}

func (a *api) importKeyPair(ctx context.Context, in *ec2.ImportKeyPairInput) error {
	_, err := a.calls.importKeyPair(ctx, in)
	return err
}

func (a *api) describeKeyPairs(ctx context.Context, filters []types.Filter) ([]types.KeyPairInfo, error) {
	out, err := a.calls.describeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{Filters: filters})
	if err != nil {
		return nil, err
	}
	return out.KeyPairs, nil
}

func (a *api) deleteKeyPair(ctx context.Context, name string) error {
	_, err := a.calls.deleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: &name})
	return err
}

func (a *api) describeVolumes(ctx context.Context, filters []types.Filter) ([]types.Volume, error) {
	in := &ec2.DescribeVolumesInput{Filters: filters, MaxResults: aws.Int32(500)}
	return pages(ctx, a.calls.describeVolumes, in, &in.NextToken, func(out *ec2.DescribeVolumesOutput) ([]types.Volume, *string) { return out.Volumes, out.NextToken })
}

func (a *api) deleteVolume(ctx context.Context, id string) error {
	_, err := a.calls.deleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: &id})
	return err
}

func (a *api) growVolume(ctx context.Context, id string, gib int32) error {
	_, err := a.calls.modifyVolume(ctx, &ec2.ModifyVolumeInput{VolumeId: &id, Size: &gib})
	return err
}

func (a *api) describeImages(ctx context.Context, in *ec2.DescribeImagesInput) ([]types.Image, error) {
	out, err := a.calls.describeImages(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.Images, nil
}

func (a *api) parameter(ctx context.Context, name string) (string, error) {
	out, err := a.calls.getParameter(ctx, &ssm.GetParameterInput{Name: &name})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.Parameter.Value), nil
}
