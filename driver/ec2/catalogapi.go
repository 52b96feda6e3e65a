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
	in := &ec2.DescribeSubnetsInput{Filters: filters}
	return pages(ctx, a.calls.describeSubnets, in, &in.NextToken, func(out *ec2.DescribeSubnetsOutput) ([]types.Subnet, *string) { return out.Subnets, out.NextToken })
}

func (a *api) describeInstanceTypes(ctx context.Context) ([]types.InstanceTypeInfo, error) {
	in := &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100)}
	return pages(ctx, a.calls.describeInstanceTypes, in, &in.NextToken, func(out *ec2.DescribeInstanceTypesOutput) ([]types.InstanceTypeInfo, *string) {
		return out.InstanceTypes, out.NextToken
	})
}

func (a *api) describeInstanceTypeOfferings(ctx context.Context) ([]types.InstanceTypeOffering, error) {
	in := &ec2.DescribeInstanceTypeOfferingsInput{MaxResults: aws.Int32(1000), LocationType: types.LocationTypeAvailabilityZone}
	return pages(ctx, a.calls.describeInstanceTypeOfferings, in, &in.NextToken, func(out *ec2.DescribeInstanceTypeOfferingsOutput) ([]types.InstanceTypeOffering, *string) {
		return out.InstanceTypeOfferings, out.NextToken
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
	return pages(ctx, a.calls.describeSpotPriceHistory, in, &in.NextToken, func(out *ec2.DescribeSpotPriceHistoryOutput) ([]types.SpotPrice, *string) {
		return out.SpotPriceHistory, out.NextToken
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
	return pages(ctx, a.calls.getProducts, in, &in.NextToken, func(out *pricing.GetProductsOutput) ([]string, *string) { return out.PriceList, out.NextToken })
}
