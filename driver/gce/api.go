package gce

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

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
var rates = map[string]kit.Rate{
	rateQueries: {Burst: 540, PerSecond: 16},
	rateReads:   {Burst: 540, PerSecond: 16},
	rateLists:   {Burst: 540, PerSecond: 16},
	rateWaits:   {Burst: 150, PerSecond: 10},
	rateHeavy:   {Burst: 150, PerSecond: 10},
	rateGlobal:  {Burst: 540, PerSecond: 16},
	rateSkus:    {Burst: 180, PerSecond: 2},
}

const (
	pageSize = 500 // as many as one page has at most
)

// api is all that is ever asked of Google, with nothing tried twice, every call counted and none beyond the rates. It holds the calls and not
// the clients: what a client can do beside them, some thousand calls, then is no part of the program.
type api struct {
	project string
	budget  *kit.RateLimiter
	metric  func(call string, err error)
	calls
}

type (
	op         = compute.Operation
	inInstance func(ctx context.Context, zone, name string) (*op, error)
)

type calls struct {
	insert        func(ctx context.Context, zone, requestID string, in *compute.Instance) (*op, error)
	get           func(ctx context.Context, zone, name string) (*compute.Instance, error)
	instances     func(ctx context.Context, filter, token string) (*compute.InstanceAggregatedList, error)
	delete        inInstance
	start         inInstance
	stop          inInstance
	setLabels     func(ctx context.Context, zone, name string, labels *compute.InstancesSetLabelsRequest) (*op, error)
	guest         func(ctx context.Context, zone, name, path string) (*compute.GuestAttributes, error)
	wait          inInstance
	operations    func(ctx context.Context, zone, filter, token string) (*compute.OperationList, error)
	disks         func(ctx context.Context, filter, token string) (*compute.DiskAggregatedList, error)
	deleteDisk    inInstance
	bootDisks     func(ctx context.Context, zone, name string) (*compute.Instance, error)
	resizeDisk    func(ctx context.Context, zone, name string, size *compute.DisksResizeRequest) (*op, error)
	images        func(ctx context.Context, project, filter, token string) (*compute.ImageList, error)
	zones         func(ctx context.Context, token string) (*compute.ZoneList, error)
	instanceTypes func(ctx context.Context, zone, token string) (*compute.MachineTypeList, error)
	skus          func(ctx context.Context, from, to time.Time, token string) (*cloudbilling.ListSkusResponse, error)
}

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

// connect finds project and credentials as Google's tools do. It calls nobody, unless neither configuration nor environment name the project.
func connect(ctx context.Context, c Config, client *http.Client, metric func(string, error)) (*api, error) {
	own := &credentials{}
	if client == nil {
		client = &http.Client{Transport: own}
	}
	a := &api{project: cmp.Or(c.Project, os.Getenv("GOOGLE_CLOUD_PROJECT")), budget: kit.NewRateLimiter(rates, c.CallRate), metric: metric}
	if a.project == "" {
		project, err := own.project(ctx)
		if err != nil || project == "" {
			return nil, drover.Errorf(drover.KindInvalid, "no project is configured, and the credentials name none").WithHint("write project: and the project's id")
		}
		a.project = project
	}
	computing, err := compute.NewService(ctx, option.WithHTTPClient(client))
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "open the API: %v", err)
	}
	billing, err := cloudbilling.NewService(ctx, option.WithHTTPClient(client))
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "open the price list: %v", err)
	}
	a.setInstanceCalls(computing)
	a.setCatalogueCalls(computing, billing)
	return a, nil
}

// do makes a call that counts against a rate.
func do[T any](ctx context.Context, a *api, name, rate string, call func(...googleapi.CallOption) (T, error)) (answer T, err error) {
	if err := ctx.Err(); err != nil {
		return answer, err
	}
	if err := a.budget.Take(rate, time.Now()); err != nil {
		return answer, fmt.Errorf("%s: %w", name, err)
	}
	answer, err = call()
	if a.metric != nil {
		a.metric(name, err)
	}
	return answer, err
}

func (a *api) setInstanceCalls(s *compute.Service) {
	a.insert = func(ctx context.Context, zone, requestID string, in *compute.Instance) (*op, error) {
		return do(ctx, a, "instances.insert", rateQueries, s.Instances.Insert(a.project, zone, in).RequestId(requestID).Context(ctx).Do)
	}
	a.get = func(ctx context.Context, zone, name string) (*compute.Instance, error) {
		return do(ctx, a, "instances.get", rateReads, s.Instances.Get(a.project, zone, name).Fields(instanceFields).Context(ctx).Do)
	}
	a.instances = func(ctx context.Context, filter, token string) (*compute.InstanceAggregatedList, error) {
		call := s.Instances.AggregatedList(a.project).MaxResults(pageSize).PageToken(token).Fields(instancesFields)
		if filter != "" {
			call.Filter(filter)
		}
		return do(ctx, a, "instances.aggregatedList", rateHeavy, call.Context(ctx).Do)
	}
	a.delete = func(ctx context.Context, zone, name string) (*op, error) {
		return do(ctx, a, "instances.delete", rateQueries, s.Instances.Delete(a.project, zone, name).Context(ctx).Do)
	}
	a.start = func(ctx context.Context, zone, name string) (*op, error) {
		return do(ctx, a, "instances.start", rateQueries, s.Instances.Start(a.project, zone, name).Context(ctx).Do)
	}
	a.stop = func(ctx context.Context, zone, name string) (*op, error) {
		return do(ctx, a, "instances.stop", rateQueries, s.Instances.Stop(a.project, zone, name).Context(ctx).Do)
	}
	a.setLabels = func(ctx context.Context, zone, name string, labels *compute.InstancesSetLabelsRequest) (*op, error) {
		return do(ctx, a, "instances.setLabels", rateQueries, s.Instances.SetLabels(a.project, zone, name, labels).Context(ctx).Do)
	}
	a.guest = func(ctx context.Context, zone, name, path string) (*compute.GuestAttributes, error) {
		return do(ctx, a, "instances.getGuestAttributes", rateQueries, s.Instances.GetGuestAttributes(a.project, zone, name).QueryPath(path).Context(ctx).Do)
	}
	a.wait = func(ctx context.Context, zone, name string) (*op, error) {
		return do(ctx, a, "zoneOperations.wait", rateWaits, s.ZoneOperations.Wait(a.project, zone, name).Context(ctx).Do)
	}
	a.operations = func(ctx context.Context, zone, filter, token string) (*compute.OperationList, error) {
		call := s.ZoneOperations.List(a.project, zone).Filter(filter).MaxResults(pageSize).PageToken(token)
		return do(ctx, a, "zoneOperations.list", rateLists, call.Context(ctx).Do)
	}
}

func (a *api) setCatalogueCalls(s *compute.Service, b *cloudbilling.APIService) {
	a.disks = func(ctx context.Context, filter, token string) (*compute.DiskAggregatedList, error) {
		call := s.Disks.AggregatedList(a.project).Filter(filter).MaxResults(pageSize).PageToken(token).Fields(disksFields)
		return do(ctx, a, "disks.aggregatedList", rateHeavy, call.Context(ctx).Do)
	}
	a.deleteDisk = func(ctx context.Context, zone, name string) (*op, error) {
		return do(ctx, a, "disks.delete", rateQueries, s.Disks.Delete(a.project, zone, name).Context(ctx).Do)
	}
	a.bootDisks = func(ctx context.Context, zone, name string) (*compute.Instance, error) {
		return do(ctx, a, "instances.get", rateReads, s.Instances.Get(a.project, zone, name).Fields(attachedFields).Context(ctx).Do)
	}
	a.resizeDisk = func(ctx context.Context, zone, name string, size *compute.DisksResizeRequest) (*op, error) {
		return do(ctx, a, "disks.resize", rateQueries, s.Disks.Resize(a.project, zone, name, size).Context(ctx).Do)
	}
	a.images = func(ctx context.Context, project, filter, token string) (*compute.ImageList, error) {
		call := s.Images.List(project).Filter(filter).MaxResults(pageSize).PageToken(token).Fields(imagesFields)
		return do(ctx, a, "images.list", rateGlobal, call.Context(ctx).Do)
	}
	a.zones = func(ctx context.Context, token string) (*compute.ZoneList, error) {
		return do(ctx, a, "zones.list", rateGlobal, s.Zones.List(a.project).MaxResults(pageSize).PageToken(token).Fields("nextPageToken,items(name,status)").Context(ctx).Do)
	}
	a.instanceTypes = func(ctx context.Context, zone, token string) (*compute.MachineTypeList, error) {
		call := s.MachineTypes.List(a.project, zone).MaxResults(pageSize).PageToken(token).Fields(typesFields)
		return do(ctx, a, "machineTypes.list", rateLists, call.Context(ctx).Do)
	}
	a.skus = func(ctx context.Context, from, to time.Time, token string) (*cloudbilling.ListSkusResponse, error) {
		call := b.Services.Skus.List(computeService).PageSize(5000).PageToken(token).Fields(skusFields)
		if !from.IsZero() {
			call = call.StartTime(from.Format(time.RFC3339)).EndTime(to.Format(time.RFC3339))
		}
		return do(ctx, a, "skus.list", rateSkus, call.Context(ctx).Do)
	}
}

// whole is an error for an answer that lacks what some zones have.
func whole(unreachable []string) error {
	if len(unreachable) > 0 {
		return drover.Errorf(drover.KindTransient, "Google cannot reach %v", unreachable)
	}
	return nil
}

// scope is what the credentials are asked for; what they may do is a matter of their roles.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// maxAnswer bounds an answer: a page of the price list has some 6 MiB.
const maxAnswer = 64 << 20

// credentials are those that Google's tools would use, looked for once they are needed. As a transport they sign requests, over HTTP.
type credentials struct {
	mu     sync.Mutex
	found  *auth.Credentials // guarded by mu, as is the next
	signer http.RoundTripper
}

// project is that of the credentials, empty if they are nobody's in particular.
func (c *credentials) project(ctx context.Context) (string, error) {
	if _, err := c.look(); err != nil {
		return "", err
	}
	return c.found.ProjectID(ctx)
}

// RoundTrip makes a request in the name of the credentials.
func (c *credentials) RoundTrip(r *http.Request) (*http.Response, error) {
	signer, err := c.look()
	if err != nil {
		return nil, err
	}
	return signer.RoundTrip(r)
}

// look finds the credentials. What is not there now may be there at the next call.
func (c *credentials) look() (http.RoundTripper, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signer != nil {
		return c.signer, nil
	}
	found, err := detect.DetectDefault(&detect.DetectOptions{Scopes: []string{scope}})
	if err != nil {
		return nil, drover.Errorf(drover.KindAuthentication, "no Google credentials: %v", err).
			WithHint("give the controller's host a service account, or run gcloud auth application-default login")
	}
	client, err := httptransport.NewClient(&httptransport.Options{
		Credentials: found, DisableTelemetry: true, BaseRoundTripper: bounded{http.DefaultTransport.(*http.Transport).Clone()},
	})
	if err != nil {
		return nil, drover.Errorf(drover.KindAuthentication, "Google credentials: %v", err)
	}
	c.found, c.signer = found, client.Transport
	return c.signer, nil
}

// bounded ends answers that have no end.
type bounded struct{ http.RoundTripper }

// RoundTrip makes the request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}
