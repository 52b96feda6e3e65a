package gce

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"cloud.google.com/go/auth"
	detect "cloud.google.com/go/auth/credentials"

	"drover"
	"drover/driver/kit"
)

// rates are for groups of calls that share a quota: a project has one in each region, and one for calls without a
// region. See https://cloud.google.com/compute/docs/api-rate-limits. The rates keep the calls in every minute within a
// new project's quota. Google once published 1,500 for a group; other projects got 750 heavy calls by default; the
// price list's 300 are on its page of quotas. A project's own quotas are on its list of them.
var rates = kit.Rates(map[kit.Rate][]string{
	{Burst: 540, PerSecond: 16}: {"queries", "reads", "lists", "global lists"},
	{Burst: 150, PerSecond: 10}: {"waits for operations", "aggregated lists"},
	{Burst: 180, PerSecond: 2}:  {"price list"},
})

// call is how a call is made, and the rate that it counts against. {zone} and {name}, or {images}, in its path are
// replaced with those of its object.
type call struct{ rate, version, method, path, query string }

// computeVersion is the version of Compute Engine's API. The price list has none.
const computeVersion = "2026-09-01"

// The parts of answers that the driver requests. Without them an instance would include its whole user data.
const (
	instanceFields = "kind,name,zone,machineType,status,labels,labelFingerprint,scheduling(provisioningModel,preemptible)," +
		"networkInterfaces(networkIP,accessConfigs(natIP)),creationTimestamp,lastStartTimestamp"
	attachedFields = "kind,disks(boot,source,diskSizeGb)"

	allInstances = "kind,nextPageToken,unreachables,items/*/warning(code),items/*/instances(" + instanceFields + ")"
	allTypes     = "kind,nextPageToken,items(name,guestCpus,memoryMb,architecture,isSharedCpu,deprecated(state),bundledLocalSsds(partitionCount)," +
		"accelerators(guestAcceleratorCount,guestAcceleratorType))"
	allSkus = "nextPageToken,skus(description,serviceRegions,category(resourceFamily,usageType),pricingInfo(effectiveTime,pricingExpression(usageUnit,tieredRates(unitPrice))))"
)

// inPages requests the maximum number of entries for a page.
const inPages = "maxResults=500"

// calls are all calls to Google.
var calls = map[string]call{
	"instances.insert":             {"queries", computeVersion, "POST", "{zone}/instances", ""},
	"instances.get":                {"reads", computeVersion, "GET", "{zone}/instances/{name}", ""},
	"instances.aggregatedList":     {"aggregated lists", computeVersion, "GET", "{project}/aggregated/instances", inPages + "&fields=" + allInstances},
	"instances.delete":             {"queries", computeVersion, "DELETE", "{zone}/instances/{name}", ""},
	"instances.start":              {"queries", computeVersion, "POST", "{zone}/instances/{name}/start", ""},
	"instances.stop":               {"queries", computeVersion, "POST", "{zone}/instances/{name}/stop", ""},
	"instances.setLabels":          {"queries", computeVersion, "POST", "{zone}/instances/{name}/setLabels", ""},
	"instances.getGuestAttributes": {"queries", computeVersion, "GET", "{zone}/instances/{name}/getGuestAttributes", "queryPath=" + hostKeys},
	"zoneOperations.wait":          {"waits for operations", computeVersion, "POST", "{zone}/operations/{name}/wait", ""},
	"zoneOperations.list":          {"lists", computeVersion, "GET", "{zone}/operations", inPages},
	"disks.aggregatedList":         {"aggregated lists", computeVersion, "GET", "{project}/aggregated/disks", inPages + "&fields=kind,nextPageToken,unreachables,items/*/disks(name,zone,labels,users,creationTimestamp)"},
	"disks.delete":                 {"queries", computeVersion, "DELETE", "{zone}/disks/{name}", ""},
	"disks.resize":                 {"queries", computeVersion, "POST", "{zone}/disks/{name}/resize", ""},
	"images.list":                  {"global lists", computeVersion, "GET", "{images}", inPages + "&fields=kind,nextPageToken,items(name,architecture,creationTimestamp,diskSizeGb,deprecated(state))"},
	"zones.list":                   {"global lists", computeVersion, "GET", "{project}/zones", inPages + "&fields=kind,nextPageToken,items(name,status)"},
	"machineTypes.list":            {"lists", computeVersion, "GET", "{zone}/machineTypes", inPages + "&fields=" + allTypes},
	"projects.get":                 {"global lists", computeVersion, "GET", "{project}", "fields=kind,commonInstanceMetadata(items)"},
	"skus.list":                    {"price list", "", "GET", "{prices}", "pageSize=5000&fields=" + allSkus},
}

// api calls Google: it retries no call, counts every call, and exceeds none of the rates. It does not use Google's
// packages: they would add thousands of other calls to the program, and take 30 CPU seconds to compile.
type api struct {
	project  string
	universe string // the domain of Google's services
	network  http.RoundTripper
	gate     kit.Gate
}

// connect finds the project and the credentials the way Google's tools do, unless it gets a network that needs no
// credentials. It makes no call, unless neither the configuration nor the environment names the project.
func connect(ctx context.Context, c Config, network http.RoundTripper, metric func(string, error)) (*api, error) {
	own := &credentials{universe: cmp.Or(os.Getenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN"), "googleapis.com"), next: http.DefaultTransport.(*http.Transport).Clone()}
	if network == nil {
		network = own
	}
	a := &api{
		project: cmp.Or(c.Project, os.Getenv("GOOGLE_CLOUD_PROJECT")), universe: own.universe, network: kit.Bounded(network),
		gate: kit.Gate{Limiter: kit.NewRateLimiter(rates, c.CallRate), Metric: metric},
	}
	if a.project == "" {
		who, err := own.found.Get(ctx, "", own.detect)
		if err == nil {
			a.project, err = who.ProjectID(ctx)
		}
		if err != nil || a.project == "" {
			return nil, drover.Errorf(drover.KindInvalid, "no project is configured, and the credentials do not specify one").WithHint("write project: ID")
		}
	}
	return a, nil
}

// do makes a call about a zone, ZONE/NAME or an image's project, if any, with an optional body, and decodes the answer.
// It does not wait for operations. asks are pairs of a query parameter and its value; empty values are omitted.
func (a *api) do(ctx context.Context, call, about string, body, answer any, asks ...string) error {
	q, err := a.request(ctx, calls[call], about, body, asks)
	if err != nil {
		return err
	}
	return a.gate.Pass(ctx, call, func() error {
		response, err := a.network.RoundTrip(q)
		if err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		defer response.Body.Close()
		switch text, err := io.ReadAll(response.Body); {
		case response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices:
			return refused(response.StatusCode, response.Header, text)
		case err != nil:
			return err
		default:
			return decode(text, answer, call == "skus.list" && q.URL.Query().Has("pageToken"))
		}
	}, calls[call].rate)
}

// decode reads an answer. Every answer has a kind, or is a page of the price list, which may be empty only after another
// one. Without this check, {} would be an empty list, or an operation that succeeded.
func decode(text []byte, answer any, mayBeEmpty bool) error {
	var its struct {
		Kind string
		Skus json.RawMessage
	}
	if err := json.Unmarshal(text, &its); err != nil {
		return err
	}
	if its.Kind == "" && its.Skus == nil && !mayBeEmpty {
		return errors.New("the response did not come from Google")
	}
	return json.Unmarshal(text, answer)
}

// request builds the request of a call.
func (a *api) request(ctx context.Context, to call, about string, body any, asks []string) (q *http.Request, err error) {
	zone, name := about, ""
	if strings.Contains(to.path, "{name}") {
		if zone, name, err = split(about); err != nil {
			return nil, err
		}
	}
	projects, escape := "https://compute."+a.universe+"/compute/v1/projects/", url.QueryEscape // which escapes colons, too
	project := projects + escape(a.project)
	fill := strings.NewReplacer(
		"{project}", project, "{zone}", project+"/zones/"+escape(zone), "{name}", name, "{images}", projects+escape(about)+"/global/images",
		"{prices}", "https://cloudbilling."+a.universe+"/v1/services/6F81-5844-456A/skus", // Compute Engine's
	)
	query, _ := url.ParseQuery("alt=json&prettyPrint=false&" + to.query) // the calls' queries are valid
	for pair := range slices.Chunk(asks, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // it is JSON already
	}
	q, err = http.NewRequestWithContext(ctx, to.method, fill.Replace(to.path)+"?"+query.Encode(), bytes.NewReader(text))
	if err == nil && body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if err == nil && to.version != "" {
		q.Header.Set("X-Goog-Api-Version", to.version)
	}
	return q, err
}

// page is one page of a list.
type page[T any] struct {
	Items, Skus   T // the price list has Skus
	Unreachables  []string
	NextPageToken string
}

// list reads all pages of a list.
func list[P, T any](ctx context.Context, a *api, call, about string, read func(page[P]) ([]T, error), asks ...string) ([]T, error) {
	return kit.Collect(func(token string) ([]T, string, error) {
		var p page[P]
		if err := a.do(ctx, call, about, nil, &p, append(slices.Clone(asks), "pageToken", token)...); err != nil {
			return nil, "", err
		}
		some, err := read(p)
		return some, p.NextPageToken, err
	})
}

// items reads a page that is a plain list.
func items[T any](p page[[]T]) ([]T, error) { return append(p.Items, p.Skus...), nil }

// get reads some fields of an instance.
func (a *api) get(ctx context.Context, id, fields string) (found resource, err error) {
	err = a.do(ctx, "instances.get", id, nil, &found, "fields", fields)
	return found, err
}

// resource is what the driver reads from an instance, disk, image, type, operation or zone; each has some of the
// fields. JSON keys match in any case.
type resource struct {
	Name, Zone, Status, CreationTimestamp string

	Labels                                            map[string]string // of an instance or a disk
	MachineType, LabelFingerprint, LastStartTimestamp string
	Scheduling                                        struct {
		ProvisioningModel string
		Preemptible       bool
	}
	NetworkInterfaces []struct {
		NetworkIP     string
		AccessConfigs []struct{ NatIP string }
	}

	Warning          struct{ Code string } // of a zone in a list
	Instances, Disks []resource            // of a zone; an instance has disks, too

	DiskSizeGb int64 `json:",string"` // of a disk or an image
	Boot       bool  // of a disk
	Source     string
	Users      []string

	Architecture        string // of an image or a type
	Deprecated          struct{ State string }
	GuestCpus, MemoryMb int64 // of a type
	IsSharedCpu         bool
	BundledLocalSsds    struct{ PartitionCount int }
	Accelerators        []struct {
		GuestAcceleratorType  string
		GuestAcceleratorCount int
	}

	TargetLink, InsertTime string // of an operation
	Error                  struct {
		Code    int // of a call's error, like a reason
		Message string
		Errors  []struct {
			Reason, Code, Message string
			ErrorDetails          []struct{ QuotaInfo struct{ MetricName string } }
		}
	}
}

// old reports whether an image or a type is deprecated.
func (r resource) old() bool { return r.Deprecated.State != "" && r.Deprecated.State != "ACTIVE" }

// scope is the credentials' scope; their roles determine what they may do.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// credentials are the credentials of Google's tools, found when they are needed. As a transport they sign requests.
type credentials struct {
	universe string
	next     http.RoundTripper
	found    kit.Cache[*auth.Credentials] // one entry, with an empty name
}

// RoundTrip makes a signed request. If there are no credentials, or if they give no token, the next request looks for
// them again: a key may have been replaced.
func (c *credentials) RoundTrip(r *http.Request) (*http.Response, error) {
	who, err := c.found.Get(r.Context(), "", c.detect)
	if err != nil {
		return nil, err
	}
	token, err := who.Token(r.Context())
	if err != nil {
		c.found.Forget()
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", cmp.Or(token.Type, "Bearer")+" "+token.Value)
	if payer, _ := who.QuotaProjectID(r.Context()); payer != "" {
		r.Header.Set("X-Goog-User-Project", payer)
	}
	return c.next.RoundTrip(r)
}

// detect finds the credentials. It refuses those for another universe; the host's own are valid wherever it runs.
func (c *credentials) detect() (*auth.Credentials, error) {
	found, err := detect.DetectDefault(&detect.DetectOptions{Scopes: []string{scope}})
	if err != nil {
		return nil, drover.Errorf(drover.KindAuthentication, "no Google credentials: %v", err).
			WithHint("give the controller's host a service account, or run gcloud auth application-default login")
	}
	if theirs, _ := found.UniverseDomain(context.Background()); len(found.JSON()) > 0 && theirs != c.universe {
		return nil, drover.Errorf(drover.KindAuthentication, "the Google credentials are for universe %s, not %s", theirs, c.universe)
	}
	return found, nil
}
