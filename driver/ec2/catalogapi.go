package ec2

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
)

func (a *api) describeSubnets(ctx context.Context, filters []types.Filter) ([]types.Subnet, error) {
	return collect(func(token *string) ([]types.Subnet, *string, error) {
		out, err := a.calls.describeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: filters, NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		return out.Subnets, out.NextToken, nil
	})
}

func (a *api) describeInstanceTypes(ctx context.Context) ([]types.InstanceTypeInfo, error) {
	return collect(func(token *string) ([]types.InstanceTypeInfo, *string, error) {
		out, err := a.calls.describeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{NextToken: token, MaxResults: aws.Int32(100)})
		if err != nil {
			return nil, nil, err
		}
		return out.InstanceTypes, out.NextToken, nil
	})
}

func (a *api) describeInstanceTypeOfferings(ctx context.Context) ([]types.InstanceTypeOffering, error) {
	return collect(func(token *string) ([]types.InstanceTypeOffering, *string, error) {
		out, err := a.calls.describeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{NextToken: token, MaxResults: aws.Int32(1000), LocationType: types.LocationTypeAvailabilityZone})
		if err != nil {
			return nil, nil, err
		}
		return out.InstanceTypeOfferings, out.NextToken, nil
	})
}

// spotPriceHistory lists the spot prices of Linux since a moment, and those that held then; of one type and zone, or of all.
func (a *api) spotPriceHistory(ctx context.Context, instanceType, zone string, since time.Time) ([]types.SpotPrice, error) {
	in := &ec2.DescribeSpotPriceHistoryInput{ProductDescriptions: []string{"Linux/UNIX"}, MaxResults: aws.Int32(1000)}
	if !since.IsZero() {
		in.StartTime = &since
	}
	if instanceType != "" {
		in.InstanceTypes, in.AvailabilityZone = []types.InstanceType{types.InstanceType(instanceType)}, &zone
	}
	return collect(func(token *string) ([]types.SpotPrice, *string, error) {
		in.NextToken = token
		out, err := a.calls.describeSpotPriceHistory(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		return out.SpotPriceHistory, out.NextToken, nil
	})
}

// priceList lists the products of which an hour of Linux on a shared host, on demand, is bought in the region; each is a document of its own.
func (a *api) priceList(ctx context.Context) ([]string, error) {
	match := func(field, value string) pricetypes.Filter {
		return pricetypes.Filter{Field: &field, Value: &value, Type: pricetypes.FilterTypeTermMatch}
	}
	in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), FormatVersion: aws.String("aws_v1"), Filters: []pricetypes.Filter{
		match("regionCode", a.region), match("operatingSystem", "Linux"), match("tenancy", "Shared"),
		match("preInstalledSw", "NA"), match("capacitystatus", "Used"), match("marketoption", "OnDemand"),
	}}
	return collect(func(token *string) ([]string, *string, error) {
		in.NextToken = token
		out, err := a.calls.getProducts(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		return out.PriceList, out.NextToken, nil
	})
}
