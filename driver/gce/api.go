package gce

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
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

// api is all that is ever asked of Google, with nothing tried twice, every call counted and none beyond the rates. It holds the client and not
// the services, which are made anew for each call: were they fields, reflection could find all that they can do, some thousand calls, and the linker
// would have to keep them.
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

// connect finds project and credentials as Google's tools do. It calls nobody, unless neither configuration nor environment name the project.
func connect(ctx context.Context, c Config, client *http.Client, metric func(string, error)) (*api, error) {
	own := &credentials{}
	if client == nil {
		client = &http.Client{Transport: own}
	}
	a := &api{client: client, project: cmp.Or(c.Project, os.Getenv("GOOGLE_CLOUD_PROJECT")), gate: kit.Gate{Limiter: kit.NewRateLimiter(rates, c.CallRate), Metric: metric}}
	if a.project == "" {
		project, err := own.project(ctx)
		if err != nil || project == "" {
			return nil, drover.Errorf(drover.KindInvalid, "no project is configured, and the credentials name none").WithHint("write project: and the project's id")
		}
		a.project = project
	}
	return a, nil
}

// ask is a call that is ready to be made.
type ask[T any] = func(...googleapi.CallOption) (T, error)

// do makes a call that counts against a rate.
func do[T any](ctx context.Context, a *api, name, rate string, call ask[T]) (answer T, err error) {
	err = a.gate.Pass(ctx, name, func() error {
		answer, err = call()
		return err
	}, rate)
	return answer, err
}

// list asks for page after page.
func list[P, T any](ctx context.Context, a *api, name, rate string, call func(token string) ask[P], read func(P) ([]T, string, error)) ([]T, error) {
	return kit.Collect(func(token string) ([]T, string, error) {
		page, err := do(ctx, a, name, rate, call(token))
		if err != nil {
			return nil, "", err
		}
		return read(page)
	})
}

func (a *api) insert(ctx context.Context, zone, requestID string, in *compute.Instance) (*op, error) {
	return do(ctx, a, "instances.insert", rateQueries, a.compute().Instances.Insert(a.project, zone, in).RequestId(requestID).Context(ctx).Do)
}

func (a *api) get(ctx context.Context, zone, name string) (*compute.Instance, error) {
	return do(ctx, a, "instances.get", rateReads, a.compute().Instances.Get(a.project, zone, name).Fields(instanceFields).Context(ctx).Do)
}

// instances are those of a region that a filter finds. A page that lacks a zone of it is an error.
func (a *api) instances(ctx context.Context, region, filter string) ([]*compute.Instance, error) {
	return list(ctx, a, "instances.aggregatedList", rateHeavy, func(token string) ask[*compute.InstanceAggregatedList] {
		call := a.compute().Instances.AggregatedList(a.project).MaxResults(pageSize).PageToken(token).Fields(instancesFields)
		if filter != "" {
			call.Filter(filter)
		}
		return call.Context(ctx).Do
	}, func(p *compute.InstanceAggregatedList) (some []*compute.Instance, next string, err error) {
		missing := p.Unreachables
		for place, scoped := range p.Items {
			if strings.HasPrefix(path.Base(place), region+"-") {
				some = append(some, scoped.Instances...)
			}
			if scoped.Warning != nil && scoped.Warning.Code == "UNREACHABLE" {
				missing = append(missing, place)
			}
		}
		missing = slices.DeleteFunc(missing, func(place string) bool { return !strings.HasPrefix(path.Base(place), region+"-") })
		return some, p.NextPageToken, whole(missing)
	})
}

func (a *api) delete(ctx context.Context, zone, name string) (*op, error) {
	return do(ctx, a, "instances.delete", rateQueries, a.compute().Instances.Delete(a.project, zone, name).Context(ctx).Do)
}

func (a *api) start(ctx context.Context, zone, name string) (*op, error) {
	return do(ctx, a, "instances.start", rateQueries, a.compute().Instances.Start(a.project, zone, name).Context(ctx).Do)
}

func (a *api) stop(ctx context.Context, zone, name string) (*op, error) {
	return do(ctx, a, "instances.stop", rateQueries, a.compute().Instances.Stop(a.project, zone, name).Context(ctx).Do)
}

func (a *api) setLabels(ctx context.Context, zone, name string, labels *compute.InstancesSetLabelsRequest) (*op, error) {
	return do(ctx, a, "instances.setLabels", rateQueries, a.compute().Instances.SetLabels(a.project, zone, name, labels).Context(ctx).Do)
}

func (a *api) guest(ctx context.Context, zone, name, path string) (*compute.GuestAttributes, error) {
	return do(ctx, a, "instances.getGuestAttributes", rateQueries, a.compute().Instances.GetGuestAttributes(a.project, zone, name).QueryPath(path).Context(ctx).Do)
}

func (a *api) wait(ctx context.Context, zone, name string) (*op, error) {
	return do(ctx, a, "zoneOperations.wait", rateWaits, a.compute().ZoneOperations.Wait(a.project, zone, name).Context(ctx).Do)
}

func (a *api) operations(ctx context.Context, zone, filter string) ([]*op, error) {
	return list(ctx, a, "zoneOperations.list", rateLists, func(token string) ask[*compute.OperationList] {
		return a.compute().ZoneOperations.List(a.project, zone).Filter(filter).MaxResults(pageSize).PageToken(token).Context(ctx).Do
	}, func(p *compute.OperationList) ([]*op, string, error) { return p.Items, p.NextPageToken, nil })
}

func (a *api) disks(ctx context.Context, filter string) ([]*compute.Disk, error) {
	return list(ctx, a, "disks.aggregatedList", rateHeavy, func(token string) ask[*compute.DiskAggregatedList] {
		return a.compute().Disks.AggregatedList(a.project).Filter(filter).MaxResults(pageSize).PageToken(token).Fields(disksFields).Context(ctx).Do
	}, func(p *compute.DiskAggregatedList) (some []*compute.Disk, next string, err error) {
		for _, scoped := range p.Items {
			some = append(some, scoped.Disks...)
		}
		return some, p.NextPageToken, whole(p.Unreachables)
	})
}

func (a *api) deleteDisk(ctx context.Context, zone, name string) (*op, error) {
	return do(ctx, a, "disks.delete", rateQueries, a.compute().Disks.Delete(a.project, zone, name).Context(ctx).Do)
}

func (a *api) bootDisks(ctx context.Context, zone, name string) (*compute.Instance, error) {
	return do(ctx, a, "instances.get", rateReads, a.compute().Instances.Get(a.project, zone, name).Fields(attachedFields).Context(ctx).Do)
}

func (a *api) resizeDisk(ctx context.Context, zone, name string, size *compute.DisksResizeRequest) (*op, error) {
	return do(ctx, a, "disks.resize", rateQueries, a.compute().Disks.Resize(a.project, zone, name, size).Context(ctx).Do)
}

func (a *api) images(ctx context.Context, project, filter string) ([]*compute.Image, error) {
	return list(ctx, a, "images.list", rateGlobal, func(token string) ask[*compute.ImageList] {
		return a.compute().Images.List(project).Filter(filter).MaxResults(pageSize).PageToken(token).Fields(imagesFields).Context(ctx).Do
	}, func(p *compute.ImageList) ([]*compute.Image, string, error) { return p.Items, p.NextPageToken, nil })
}

func (a *api) zones(ctx context.Context) ([]*compute.Zone, error) {
	return list(ctx, a, "zones.list", rateGlobal, func(token string) ask[*compute.ZoneList] {
		return a.compute().Zones.List(a.project).MaxResults(pageSize).PageToken(token).Fields("nextPageToken,items(name,status)").Context(ctx).Do
	}, func(p *compute.ZoneList) ([]*compute.Zone, string, error) { return p.Items, p.NextPageToken, nil })
}

func (a *api) instanceTypes(ctx context.Context, zone string) ([]*compute.MachineType, error) {
	return list(ctx, a, "machineTypes.list", rateLists, func(token string) ask[*compute.MachineTypeList] {
		return a.compute().MachineTypes.List(a.project, zone).MaxResults(pageSize).PageToken(token).Fields(typesFields).Context(ctx).Do
	}, func(p *compute.MachineTypeList) ([]*compute.MachineType, string, error) {
		return p.Items, p.NextPageToken, nil
	})
}

// skus is the price list, as it was in a stretch of time, or as it is.
func (a *api) skus(ctx context.Context, from, to time.Time) ([]*cloudbilling.Sku, error) {
	return list(ctx, a, "skus.list", rateSkus, func(token string) ask[*cloudbilling.ListSkusResponse] {
		call := a.billing().Services.Skus.List(computeService).PageSize(5000).PageToken(token).Fields(skusFields)
		if !from.IsZero() {
			call = call.StartTime(from.Format(time.RFC3339)).EndTime(to.Format(time.RFC3339))
		}
		return call.Context(ctx).Do
	}, func(p *cloudbilling.ListSkusResponse) ([]*cloudbilling.Sku, string, error) {
		return p.Skus, p.NextPageToken, nil
	})
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
		Credentials: found, DisableTelemetry: true, BaseRoundTripper: kit.Bounded(http.DefaultTransport.(*http.Transport).Clone()),
	})
	if err != nil {
		return nil, drover.Errorf(drover.KindAuthentication, "Google credentials: %v", err)
	}
	c.found, c.signer = found, client.Transport
	return c.signer, nil
}
