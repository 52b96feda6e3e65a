package gce

import (
	"cmp"
	"context"
	"net/http"
	"os"

	"cloud.google.com/go/auth"
	detect "cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/httptransport"
	"google.golang.org/api/cloudbilling/v1"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"drover"
	"drover/driver/kit"
)

// The groups of calls that have a quota in common, for a project in a region or, where they are of no region, in all: see
// https://cloud.google.com/compute/docs/api-rate-limits.
const (
	rateQueries = "queries"
	rateReads   = "reads"
	rateLists   = "lists"
	rateWaits   = "waits for operations"
	rateHeavy   = "aggregated lists"
	rateGlobal  = "global lists"
	rateSkus    = "price list"
)

// rates are such that no minute has more calls than a new project may make. Google once published 1,500 of a group; the 750 of those that are
// heavy are what others were given by default, and the 300 of the price list are on its page of quotas. What a project may make stands in its own list.
var rates = kit.Rates(map[kit.Rate][]string{
	{Burst: 540, PerSecond: 16}: {rateQueries, rateReads, rateLists, rateGlobal},
	{Burst: 150, PerSecond: 10}: {rateWaits, rateHeavy},
	{Burst: 180, PerSecond: 2}:  {rateSkus},
})

const pageSize = 500 // as many as one page has at most

// api makes all calls to Google: none is retried, every call is counted, and none exceeds the rates. It holds the
// client but makes the services anew for each call: if they were fields, reflection could reach all their methods,
// some thousand calls, and the linker would have to keep them.
type api struct {
	project string
	gate    kit.Gate
	client  *http.Client
}

func (a *api) compute() *compute.Service {
	s, _ := compute.NewService(context.Background(), option.WithHTTPClient(a.client)) // with a client there is nothing that could be missing
	return s
}

func (a *api) billing() *cloudbilling.APIService {
	s, _ := cloudbilling.NewService(context.Background(), option.WithHTTPClient(a.client))
	return s
}

type op = compute.Operation

// The parts of answers that are read. Without them an instance would come with its whole user data.
const (
	instanceFields = "name,zone,machineType,status,labels,labelFingerprint,scheduling(provisioningModel,preemptible)," +
		"networkInterfaces(networkIP,accessConfigs(natIP)),creationTimestamp,lastStartTimestamp"
	instancesFields = "nextPageToken,unreachables,items/*/warning(code),items/*/instances(" + instanceFields + ")"
	typesFields     = "nextPageToken,items(name,guestCpus,memoryMb,architecture,isSharedCpu,deprecated(state),bundledLocalSsds(partitionCount)," +
		"accelerators(guestAcceleratorCount,guestAcceleratorType))"
	disksFields    = "nextPageToken,unreachables,items/*/disks(name,zone,labels,users,creationTimestamp)"
	attachedFields = "status,disks(boot,source,diskSizeGb)"
	imagesFields   = "nextPageToken,items(name,architecture,creationTimestamp,diskSizeGb,deprecated(state))"
	skusFields     = "nextPageToken,skus(description,serviceRegions,category(resourceFamily,usageType),pricingInfo(effectiveTime,pricingExpression(usageUnit,tieredRates(unitPrice))))"
)

// computeService is Compute Engine's name in the price list.
const computeService = "services/6F81-5844-456A"

// connect finds project and credentials as Google's tools do. It makes no call, unless neither configuration nor
// environment names the project.
func connect(ctx context.Context, c Config, client *http.Client, metric func(string, error)) (*api, error) {
	own := &credentials{}
	if client == nil {
		client = &http.Client{Transport: own}
	}
	a := &api{client: client, project: cmp.Or(c.Project, os.Getenv("GOOGLE_CLOUD_PROJECT")), gate: kit.Gate{Limiter: kit.NewRateLimiter(rates, c.CallRate), Metric: metric}}
	if a.project == "" {
		project, err := own.project(ctx)
		if err != nil || project == "" {
			return nil, drover.Errorf(drover.KindInvalid, "no project is configured, and the credentials do not specify one").WithHint("write project: ID")
		}
		a.project = project
	}
	return a, nil
}

// asking is a call of Google's SDK.
type asking[C, T any] interface {
	Context(context.Context) C
	Do(...googleapi.CallOption) (T, error)
}

// do makes a call that counts against a rate.
func do[C asking[C, T], T any](ctx context.Context, a *api, name, rate string, call C) (answer T, err error) {
	err = a.gate.Pass(ctx, name, func() error {
		answer, err = call.Context(ctx).Do()
		return err
	}, rate)
	return answer, err
}

// about makes a call about the object with an id.
func about[C asking[C, T], T any](ctx context.Context, a *api, name, rate, id string, call func(project, zone, name string) C) (answer T, err error) {
	zone, of, err := split(id)
	if err != nil {
		return answer, err
	}
	return do(ctx, a, name, rate, call(a.project, zone, of))
}

// get reads some fields of an instance.
func (a *api) get(ctx context.Context, id string, fields googleapi.Field) (*compute.Instance, error) {
	return about(ctx, a, "instances.get", rateReads, id, func(project, zone, name string) *compute.InstancesGetCall {
		return a.compute().Instances.Get(project, zone, name).Fields(fields)
	})
}

// pages is a call that is answered by pages.
type pages[C, P any] interface {
	asking[C, P]
	PageToken(string) C
}

// list reads all pages.
func list[C pages[C, P], P, T any](ctx context.Context, a *api, name, rate string, call C, read func(P) ([]T, string, error)) ([]T, error) {
	return kit.Collect(func(token string) ([]T, string, error) {
		page, err := do(ctx, a, name, rate, call.PageToken(token))
		if err != nil {
			return nil, "", err
		}
		return read(page)
	})
}

// whole is an error for an answer that lacks some zones.
func whole(unreachable []string) error {
	if len(unreachable) > 0 {
		return drover.Errorf(drover.KindTransient, "Google cannot reach %v", unreachable)
	}
	return nil
}

// scope is the credentials' scope; their roles say what they may do.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// credentials are those of Google's tools, found when they are needed. As a transport they sign requests.
type credentials struct {
	found kit.Cache[signer] // the one there is has no name
}

type signer struct {
	http.RoundTripper
	who *auth.Credentials
}

// project is the credentials' project, empty if they have none.
func (c *credentials) project(ctx context.Context) (string, error) {
	s, err := c.found.Get(ctx, "", detected)
	if err != nil {
		return "", err
	}
	return s.who.ProjectID(ctx)
}

// RoundTrip makes a signed request. If there are no credentials, the next one looks for them again.
func (c *credentials) RoundTrip(r *http.Request) (*http.Response, error) {
	s, err := c.found.Get(r.Context(), "", detected)
	if err != nil {
		return nil, err
	}
	return s.RoundTrip(r)
}

// detected finds the credentials.
func detected() (s signer, err error) {
	found, err := detect.DetectDefault(&detect.DetectOptions{Scopes: []string{scope}})
	if err != nil {
		return s, drover.Errorf(drover.KindAuthentication, "no Google credentials: %v", err).
			WithHint("give the controller's host a service account, or run gcloud auth application-default login")
	}
	client, err := httptransport.NewClient(&httptransport.Options{
		Credentials: found, DisableTelemetry: true, BaseRoundTripper: kit.Bounded(http.DefaultTransport.(*http.Transport).Clone()),
	})
	if err != nil {
		return s, drover.Errorf(drover.KindAuthentication, "Google credentials: %v", err)
	}
	return signer{client.Transport, found}, nil
}
