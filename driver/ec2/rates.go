package ec2

import (
	"drover/driver/kit"
)

// Beside the bucket of its call, each instance that is asked for by its id, with neither filter nor pages, counts under a smaller one, and each
// that is to end under one of "Resource token bucket sizes".
const (
	byID       = "DescribeInstances by id"
	eachEnding = "TerminateInstances, each instance"
)

// The rates are those of "Request token bucket sizes and refill rates" in Amazon's developer guide to EC2, for each account and region:
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html; that of the price list is in Amazon's guide to
// billing: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/billing-limits.html. Each call has a bucket of its own. Of parameters
// "AWS Systems Manager endpoints and quotas" allows 40 reads a second, which is what a bucket comes to that holds the half and is filled by the
// half: https://docs.aws.amazon.com/general/latest/gr/ssm.html.
var rates = map[string]kit.Rate{
	"CreateFleet":                   {Burst: 50, PerSecond: 5},
	"CreateLaunchTemplate":          {Burst: 50, PerSecond: 5},
	"DeleteLaunchTemplate":          {Burst: 50, PerSecond: 5},
	"ImportKeyPair":                 {Burst: 50, PerSecond: 5},
	"DeleteKeyPair":                 {Burst: 50, PerSecond: 5},
	"StopInstances":                 {Burst: 50, PerSecond: 5},
	"StartInstances":                {Burst: 5, PerSecond: 2},
	"TerminateInstances":            {Burst: 100, PerSecond: 5},
	"DeleteVolume":                  {Burst: 100, PerSecond: 5},
	"ModifyVolume":                  {Burst: 50, PerSecond: 5},
	"CreateTags":                    {Burst: 100, PerSecond: 10},
	"DeleteTags":                    {Burst: 100, PerSecond: 10},
	"DescribeInstances":             {Burst: 100, PerSecond: 20},
	"DescribeInstanceTypes":         {Burst: 100, PerSecond: 20},
	"DescribeInstanceTypeOfferings": {Burst: 100, PerSecond: 20},
	"DescribeSpotPriceHistory":      {Burst: 100, PerSecond: 20},
	"DescribeSubnets":               {Burst: 100, PerSecond: 20},
	"DescribeImages":                {Burst: 100, PerSecond: 20},
	"DescribeLaunchTemplates":       {Burst: 100, PerSecond: 20},
	"DescribeKeyPairs":              {Burst: 100, PerSecond: 20},
	"DescribeVolumes":               {Burst: 100, PerSecond: 20},
	byID:                            {Burst: 50, PerSecond: 10},
	eachEnding:                      {Burst: mostEndings, PerSecond: 20},
	"GetProducts":                   {Burst: 10, PerSecond: 5},
	"GetParameter":                  {Burst: 20, PerSecond: 20},
}
