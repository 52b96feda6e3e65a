package ec2

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/ec2query"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/restjson"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"drover"
	"drover/driver/kit"
)

// Besides its call's bucket, each instance requested by id, without filters or pages, draws on a smaller bucket, and
// each instance to terminate on one of "Resource token bucket sizes".
const (
	byID       = "DescribeInstances by id"
	eachEnding = "TerminateInstances per instance"
)

// The rates come from "Request token bucket sizes and refill rates" in Amazon's developer guide to EC2, for each
// account and region: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html; the price list's rate is
// in Amazon's guide to billing: https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/billing-limits.html. Each
// call has its own bucket. For parameters, "AWS Systems Manager endpoints and quotas" allows 40 reads a second:
// https://docs.aws.amazon.com/general/latest/gr/ssm.html. A bucket of half that size, refilled at half that rate, stays
// within it.
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

// service is one of Amazon's services.
type service struct {
	id     string // in settings: AWS_ENDPOINT_URL_EC2
	host   string // prefix of its host names
	name   string // in signatures
	target string // prefix of a call's name in the header X-Amz-Target; empty: it uses the Query API
}

// services are the services other than EC2, by their calls: Systems Manager and the price list. They use the AWS JSON
// 1.1 protocol: https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html.
var services = map[string]service{
	"GetParameter": {"SSM", "ssm", "ssm", "AmazonSSM."},
	"GetProducts":  {"Pricing", "api.pricing", "pricing", "AWSPriceListService."},
}

func serviceOf(call string) service { return cmp.Or(services[call], service{"EC2", "ec2", "ec2", ""}) }

// api calls AWS: it retries no call, counts every call, and exceeds none of the published rates. The SDK reads settings
// and credentials and signs requests, but its package for EC2 takes 100 CPU seconds to compile, so requests and answers
// are encoded and decoded here.
type api struct {
	config aws.Config
	gate   kit.Gate
	skew   atomic.Int64 // by how much this host's clock is slow
}

// params are parameters, by their names in Amazon's tools.
type params = map[string]any

// do makes a call, and decodes its answer unless out is nil.
func (a *api) do(ctx context.Context, call string, in params, out any) error {
	return a.gate.Pass(ctx, call, func() error {
		request, err := a.request(ctx, call, in)
		if err != nil {
			return err
		}
		response, err := a.config.HTTPClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if now, err := http.ParseTime(response.Header.Get("Date")); err == nil && !a.config.DisableClockSkewCorrection {
			a.skew.Store(int64(time.Until(now))) // so that only the first call is refused for a wrong clock
		}
		body, err := io.ReadAll(kit.Limited(response.Body))
		switch {
		case err != nil:
			return err
		case response.StatusCode/100 != 2:
			return refusal(call, response, body)
		}
		return decode(call, body, out)
	}, call)
}

// request is the signed request of a call.
func (a *api) request(ctx context.Context, call string, in params) (*http.Request, error) {
	s := serviceOf(call)
	address, err := a.endpoint(ctx, s)
	if err != nil {
		return nil, err
	}
	body, err := encode(call, in)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "drover")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if s.target != "" {
		request.Header.Set("Content-Type", "application/x-amz-json-1.1")
		request.Header.Set("X-Amz-Target", s.target+call)
	}
	who, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(body)
	now := time.Now().Add(time.Duration(a.skew.Load()))
	return request, signer.NewSigner().SignHTTP(ctx, who, request, hex.EncodeToString(hash[:]), s.name, a.region(s), now)
}

// region returns the region in which a service is called. Only a few regions serve the price list: see "AWS Price List
// Query API endpoints".
func (a *api) region(s service) string {
	switch {
	case s.name != "pricing":
		return a.config.Region
	case strings.HasPrefix(a.config.Region, "cn-"):
		return "cn-northwest-1"
	}
	return "us-east-1"
}

// endpoint returns the address of a service. It is derived from that of STS, which the SDK knows in every partition and
// variant.
func (a *api) endpoint(ctx context.Context, s service) (string, error) {
	base, o := a.base(ctx, s), sts.NewFromConfig(a.config).Options().EndpointOptions
	found, err := sts.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, sts.EndpointParameters{
		Region: new(a.region(s)), Endpoint: base, UseFIPS: new(o.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		UseDualStack: new(o.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
	})
	at := &url.URL{Scheme: found.URI.Scheme, Host: found.URI.Host, Path: cmp.Or(found.URI.Path, "/")}
	if base == nil {
		at.Host = s.host + strings.TrimPrefix(at.Host, "sts")
	}
	return at.String(), err
}

// base returns the configured address of a service, or nil. As with the AWS tools, AWS_ENDPOINT_URL takes precedence
// over the service's address in a configuration file.
func (a *api) base(ctx context.Context, s service) *string {
	ignored, _, _ := config.GetIgnoreConfiguredEndpoints(ctx, a.config.ConfigSources)
	_, all := os.LookupEnv("AWS_ENDPOINT_URL")
	_, its := os.LookupEnv("AWS_ENDPOINT_URL_" + strings.ToUpper(s.id))
	for _, source := range a.config.ConfigSources {
		if told, can := source.(interface {
			GetServiceBaseEndpoint(context.Context, string) (string, bool, error)
		}); can && !ignored && (its || !all) {
			if address, found, err := told.GetServiceBaseEndpoint(ctx, s.id); found && err == nil {
				return &address
			}
		}
	}
	return a.config.BaseEndpoint
}

// encode returns the body of a call. See "Query requests" in Amazon's developer guide to EC2:
// https://docs.aws.amazon.com/ec2/latest/devguide/Query-Requests.html.
func encode(call string, in params) ([]byte, error) {
	if serviceOf(call).target != "" {
		return json.Marshal(in)
	}
	form := url.Values{"Action": {call}, "Version": {"2016-11-15"}}
	fill(form, "", reflect.ValueOf(in))
	return []byte(form.Encode()), nil
}

// fill adds a value to a form. Dots precede the names of keys and the numbers of elements; nil values are omitted.
func fill(form url.Values, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			fill(form, name, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(form, fmt.Sprint(name, ".", i+1), v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			part := key.String()
			if value.Elem().Kind() == reflect.Slice {
				part = listName(name, part)
			}
			fill(form, name+"."+part, value)
		}
	case reflect.Float64:
		form.Set(name[1:], strconv.FormatFloat(v.Float(), 'f', -1, 64))
	default:
		form.Set(name[1:], fmt.Sprint(v))
	}
}

// plural matches the plural ending of a list's name. The Query API uses the singular.
var plural = regexp.MustCompile(`(ss|x)es$|s$`)

// irregular are the exceptions among the lists that the driver sends and those in a template.
var irregular = map[string]string{"Groups": "SecurityGroupId", "Ipv6Addresses": "Ipv6Addresses", "PrivateIpAddresses": "PrivateIpAddresses",
	"LaunchTemplateConfigs": "LaunchTemplateConfigs", "Overrides": "Overrides"}

// listName returns the Query API's name of a list. In secondary interfaces all names are regular.
func listName(within, name string) string {
	if other := irregular[name]; other != "" && !strings.Contains(within, ".SecondaryInterface.") {
		return other
	}
	return plural.ReplaceAllString(name, "$1")
}

// decode reads an answer.
func decode(call string, body []byte, out any) error {
	switch {
	case serviceOf(call).target != "":
		return json.Unmarshal(body, out)
	case !bytes.Contains(body, []byte("<"+call+"Response")):
		return fmt.Errorf("the response to %s did not come from EC2", call)
	case out == nil:
		return nil
	}
	return xml.Unmarshal(body, out)
}

// refusal returns the error in an answer.
func refusal(call string, answer *http.Response, body []byte) error {
	said, err := ec2query.GetErrorResponseComponents(bytes.NewReader(body))
	if serviceOf(call).target != "" {
		said.Code, said.Message, err = restjson.GetErrorInfo(json.NewDecoder(bytes.NewReader(body)))
	}
	if err != nil || said.Code == "" {
		return fmt.Errorf("the response to %s has the status %s", call, answer.Status)
	}
	id := cmp.Or(said.RequestID, answer.Header.Get("X-Amzn-Requestid"))
	return fmt.Errorf("%s, request %s: %w", call, id, &smithy.GenericAPIError{Code: said.Code, Message: said.Message})
}

// listAll reads all pages of a list; path is where its elements are in each answer.
func listAll[T any](ctx context.Context, a *api, call, path string, in params) ([]T, error) {
	page := reflect.StructOf([]reflect.StructField{
		{Name: "All", Type: reflect.TypeFor[[]T](), Tag: reflect.StructTag(fmt.Sprintf(`xml:%q json:%q`, path, path))},
		{Name: "NextToken", Type: reflect.TypeFor[string](), Tag: `xml:"nextToken"`},
	})
	return kit.Collect(func(after string) ([]T, string, error) {
		if after != "" {
			in["NextToken"] = after
		}
		out := reflect.New(page)
		err := a.do(ctx, call, in, out.Interface())
		return out.Elem().Field(0).Interface().([]T), out.Elem().Field(1).String(), err
	})
}

func filter(name string, values ...string) params { return params{"Name": name, "Values": values} }

// mostSilence is how long a connection may be silent while the driver waits for an answer.
const mostSilence = 2 * time.Minute

// metadataTime limits the wait for instance metadata, which contains the controller's own region.
const metadataTime = 2 * time.Second

// connect finds the region and the credentials the way the AWS tools do. It makes no call, unless only this instance's
// metadata can name the region.
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
	if !regions.MatchString(all.Region) {
		return nil, drover.Errorf(drover.KindInvalid, "no valid region is configured: %q", all.Region).WithHint("write region: us-east-1, or another region")
	}
	all.Credentials = credentials{all.Credentials}
	return &api{config: all, gate: gate}, nil
}

// regions matches region names that can be part of a host name.
var regions = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)

// credentials add to an error that the credentials are missing, unless the service that issues them has failed.
type credentials struct{ aws.CredentialsProvider }

// Retrieve retrieves the credentials.
func (c credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := c.CredentialsProvider.Retrieve(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
	case isOutage(err):
		err = drover.Errorf(drover.KindTransient, "retrieve AWS credentials: %v", err)
	default:
		e := drover.Errorf(drover.KindAuthentication, "no AWS credentials: %v", err)
		return found, e.WithHint("give the controller a role, or run aws configure")
	}
	return found, err
}

// isOutage reports whether the service that issues credentials has failed or cannot be reached. The metadata service is
// not an example: outside EC2, it can never be reached.
func isOutage(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	if errors.As(err, &answer) && answer.HTTPStatusCode() >= http.StatusInternalServerError {
		return true
	}
	var op *smithy.OperationError
	for inner := err; errors.As(inner, &op); inner = op.Err {
		if op.ServiceID == imds.ServiceID {
			return false
		}
	}
	var unsent interface{ ConnectionError() bool }
	return errors.As(err, &unsent) && unsent.ConnectionError()
}
