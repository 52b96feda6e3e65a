package ec2

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/restjson"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/smithy-go/middleware"

	"drover"
	"drover/driver/kit"
)

// Beside the bucket of its call, each instance that is asked for by its id, with neither filter nor pages, counts under a smaller one, and each
// that is to end under one of "Resource token bucket sizes".
const (
	byID       = "DescribeInstances by id"
	eachEnding = "each instance of TerminateInstances"
)

// The rates are those of "Request token bucket sizes and refill rates" in Amazon's developer guide to EC2, for each account and region:
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html; that of the price list is in Amazon's guide to
// billing: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/billing-limits.html. Each call has a bucket of its own. Of parameters
// "AWS Systems Manager endpoints and quotas" allows 40 reads a second, which is what a bucket comes to that holds the half and is filled by the
// half: https://docs.aws.amazon.com/general/latest/gr/ssm.html.
var rates = kit.Rates(map[kit.Rate][]string{
	{Burst: 50, PerSecond: 5}: {
		"CreateFleet", "CreateLaunchTemplate", "DeleteLaunchTemplate", "ImportKeyPair", "DeleteKeyPair", "StopInstances", "ModifyVolume",
	},
	{Burst: 5, PerSecond: 2}:    {"StartInstances"},
	{Burst: 100, PerSecond: 5}:  {"TerminateInstances", "DeleteVolume"},
	{Burst: 100, PerSecond: 10}: {"CreateTags", "DeleteTags"},
	{Burst: 100, PerSecond: 20}: {
		"DescribeInstances", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory", "DescribeSubnets",
		"DescribeImages", "DescribeLaunchTemplates", "DescribeKeyPairs", "DescribeVolumes",
	},
	{Burst: 50, PerSecond: 10}:          {byID},
	{Burst: mostEndings, PerSecond: 20}: {eachEnding},
	{Burst: 10, PerSecond: 5}:           {"GetProducts"},
	{Burst: 20, PerSecond: 20}:          {"GetParameter"},
})

// api calls AWS: no call is retried, every call is counted, and none exceeds the published rates. It makes clients
// anew for each call: if they were fields of a driver.Cloud, reflection could reach all their methods, some seven
// hundred calls that nobody makes, and the linker would have to keep them.
type api struct {
	config aws.Config
	gate   kit.Gate
	skew   *atomic.Int64 // by how much this host's clock is wrong
}

func (a *api) ec2() *ec2.Client { return ec2.NewFromConfig(a.config) }

func (a *api) parameters() parameters { return parameters{a} }

// prices is the price list, which only few regions serve: see "AWS Price List Query API endpoints".
func (a *api) prices() *pricing.Client {
	return pricing.NewFromConfig(a.config, func(o *pricing.Options) {
		o.Region = "us-east-1"
		if strings.HasPrefix(a.config.Region, "cn-") {
			o.Region = "cn-northwest-1"
		}
	})
}

// call makes a call, whose name is that of its input: CreateFleet has a CreateFleetInput.
func call[I, O, X any](ctx context.Context, a *api, do func(context.Context, *I, ...func(*X)) (*O, error), in *I) (out O, err error) {
	name := strings.TrimSuffix(reflect.TypeFor[I]().Name(), "Input")
	err = a.gate.Pass(ctx, name, func() error {
		answer, err := do(ctx, in)
		if err == nil {
			out = *answer
		}
		return err
	}, name)
	return out, err
}

// listAll reads all pages. As everywhere in the SDK, inputs and outputs have the token in the field NextToken; the
// list is the field of its type.
func listAll[T, I, O, X any](ctx context.Context, a *api, do func(context.Context, *I, ...func(*X)) (*O, error), in *I) ([]T, error) {
	return kit.Collect(func(after string) (some []T, next string, err error) {
		reflect.ValueOf(in).Elem().FieldByName("NextToken").Set(reflect.ValueOf(kit.Given(after)))
		out, err := call(ctx, a, do, in)
		answer := reflect.ValueOf(out)
		for i := range answer.NumField() {
			if f := answer.Field(i); f.Type() == reflect.TypeFor[[]T]() {
				some = f.Interface().([]T)
			}
		}
		token, _ := answer.FieldByName("NextToken").Interface().(*string)
		return some, kit.Value(token), err
	})
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// mostSilence is how long a connection may be silent while an answer is awaited.
const mostSilence = 2 * time.Minute

// metadataTime limits the wait for instance metadata, which says in which region the controller itself runs.
const metadataTime = 2 * time.Second

// connect finds region and credentials as the AWS tools do. It makes no call, unless only the metadata of this
// instance can name the region.
func connect(ctx context.Context, c Config, client aws.HTTPClient, gate kit.Gate) (*api, error) {
	if client == nil {
		client = awshttp.NewBuildableClient().WithReadTimeout(mostSilence)
	}
	options := []func(*config.LoadOptions) error{
		config.WithRegion(c.Region),
		config.WithSharedConfigProfile(c.Profile),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithHTTPClient(client),
	}
	if c.Endpoint != "" {
		options = append(options, config.WithBaseEndpoint(c.Endpoint))
	}
	all, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "read the AWS tools' configuration: %v", err)
	}
	if all.Region == "" {
		short, cancel := context.WithTimeout(ctx, metadataTime)
		defer cancel()
		if here, err := imds.NewFromConfig(all).GetRegion(short, nil); err == nil {
			all.Region = here.Region
		}
	}
	if all.Region == "" {
		return nil, drover.Errorf(drover.KindInvalid, "no region is configured").WithHint("write region: us-east-1, or another")
	}
	all.Credentials = credentials{all.Credentials}
	all.HTTPClient = connections{all.HTTPClient}
	var skew atomic.Int64
	all.APIOptions = append(all.APIOptions, sharedSkew(&skew))
	return &api{all, gate, &skew}, nil
}

// connections are shared by all clients. A client copies an HTTP client that it recognizes as the SDK's own, with
// connections that nobody else uses; hence this type.
type connections struct{ aws.HTTPClient }

// sharedSkew shares among clients how wrong this host's clock is, so that only the first call is refused for it.
func sharedSkew(skew *atomic.Int64) func(*middleware.Stack) error {
	return func(s *middleware.Stack) error {
		step, _ := s.Finalize.Get((*retry.Attempt)(nil).ID())
		if attempt, is := step.(*retry.Attempt); is {
			attempt.ClientSkew = skew
		}
		return nil
	}
}

// credentials adds to an error that the credentials are missing.
type credentials struct{ aws.CredentialsProvider }

// Retrieve retrieves the credentials.
func (c credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		e := drover.Errorf(drover.KindAuthentication, "no AWS credentials: %v", err)
		return found, e.WithHint("give the controller a role, or run aws configure")
	}
	return found, err
}

// mostParameter limits an answer of Systems Manager, whose parameters have at most 8 KiB.
const mostParameter = 1 << 20

// parameters calls Systems Manager. The driver needs one call; Amazon's package for it takes 10 CPU seconds to compile.
type parameters struct{ *api }

// GetParameterInput names a parameter.
type GetParameterInput struct{ Name string }

// GetParameterOutput is a parameter.
type GetParameterOutput struct{ Parameter struct{ Value string } }

// GetParameter reads a parameter. It has the signature of the SDK's calls.
func (p parameters) GetParameter(ctx context.Context, in *GetParameterInput, _ ...func(*struct{})) (*GetParameterOutput, error) {
	request, err := p.sign(ctx, in)
	if err != nil {
		return nil, err
	}
	response, err := p.config.HTTPClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body := json.NewDecoder(io.LimitReader(response.Body, mostParameter))
	if response.StatusCode != http.StatusOK {
		refused, err := restjson.GetSmithyGenericAPIError(body, "")
		if err != nil {
			return nil, fmt.Errorf("Systems Manager answered %s", response.Status)
		}
		return nil, refused
	}
	out := &GetParameterOutput{}
	return out, body.Decode(out)
}

// sign makes the signed request.
func (p parameters) sign(ctx context.Context, in *GetParameterInput) (*http.Request, error) {
	address, err := p.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.1")
	request.Header.Set("X-Amz-Target", "AmazonSSM.GetParameter")
	who, err := p.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(body)
	now := time.Now().Add(time.Duration(p.skew.Load()))
	return request, signer.NewSigner().SignHTTP(ctx, who, request, hex.EncodeToString(hash[:]), "ssm", p.config.Region, now)
}

// endpoint is the address of Systems Manager: beside EC2, in every partition and variant.
func (p parameters) endpoint(ctx context.Context) (string, error) {
	o := p.ec2().Options()
	found, err := o.EndpointResolverV2.ResolveEndpoint(ctx, ec2.EndpointParameters{
		Region: &o.Region, Endpoint: p.config.BaseEndpoint,
		UseFIPS:      aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		UseDualStack: aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
	})
	if err != nil {
		return "", err
	}
	if name, beside := strings.CutPrefix(found.URI.Host, "ec2"); beside && p.config.BaseEndpoint == nil {
		found.URI.Host = "ssm" + name
	}
	if found.URI.Path == "" {
		found.URI.Path = "/"
	}
	return found.URI.String(), nil
}
