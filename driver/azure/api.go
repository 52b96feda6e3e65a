package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime/datetime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"drover"
	"drover/driver/kit"
)

// The rates are token buckets, and a call takes from each of its buckets. Azure Resource Manager's apply to a principal
// in a subscription and region
// (https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling),
// Microsoft.Compute's to a subscription and region
// (https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits, which gives them per minute).
// Microsoft.Network's, on the former page, are for all changes in five minutes; its 10,000 reads exceed Azure Resource
// Manager's. Azure Resource Graph's are for each caller, in five seconds
// (https://learn.microsoft.com/azure/governance/resource-graph/concepts/guidance-for-throttled-requests).
var rates = map[string]kit.Rate{
	"reads":     {Burst: 250, PerSecond: 25},
	"writes":    {Burst: 200, PerSecond: 10},
	"deletes":   {Burst: 200, PerSecond: 10},
	"put VM":    {Burst: 1500, PerSecond: 8},
	"update VM": {Burst: 1500, PerSecond: 8},
	"delete VM": {Burst: 1500, PerSecond: 8},
	"list VMs":  {Burst: 900, PerSecond: 5},

	"network deletes": {Burst: 100, PerSecond: 3}, // so at most 1,000 in any five minutes
	"queries":         {Burst: 5, PerSecond: 2},   // so at most 15 in any five seconds
}

// call is how a call is made, and the rates that it counts against.
type call struct {
	rates   []string
	version string
	method  string
	path    string // {name} is replaced with the object's name
	query   string // in addition to the version
}

// The versions of the APIs.
const (
	vmVersion      = "2026-04-01"
	diskVersion    = "2026-03-02"
	skuVersion     = "2021-07-01"
	networkVersion = "2025-05-01"
	graphVersion   = "2024-04-01"
)

// The paths of most calls.
const (
	vms        = "{group}Microsoft.Compute/virtualMachines"
	interfaces = "{group}Microsoft.Network/networkInterfaces"
	addresses  = "{group}Microsoft.Network/publicIPAddresses"
)

// calls are all calls to Azure, except for the price list, another service, which publishes no rate.
var calls = map[string]call{
	"CreateVM":        {[]string{"writes", "put VM"}, vmVersion, "PUT", vms + "/{name}", ""},
	"UpdateVM":        {[]string{"writes", "update VM"}, vmVersion, "PATCH", vms + "/{name}", ""},
	"StartVM":         {[]string{"writes", "update VM"}, vmVersion, "POST", vms + "/{name}/start", ""},
	"DeallocateVM":    {[]string{"writes", "delete VM"}, vmVersion, "POST", vms + "/{name}/deallocate", ""},
	"DeleteVM":        {[]string{"deletes", "delete VM"}, vmVersion, "DELETE", vms + "/{name}", "forceDeletion=true"},
	"GetVM":           {[]string{"reads"}, vmVersion, "GET", vms + "/{name}", "$expand=instanceView"},
	"ListVMs":         {[]string{"reads", "list VMs"}, vmVersion, "GET", vms, ""},
	"ListVMStates":    {[]string{"reads", "list VMs"}, vmVersion, "GET", "{subscription}Microsoft.Compute/virtualMachines", "statusOnly=true"},
	"ListDisks":       {[]string{"reads"}, diskVersion, "GET", "{group}Microsoft.Compute/disks", ""},
	"DeleteDisk":      {[]string{"deletes"}, diskVersion, "DELETE", "{group}Microsoft.Compute/disks/{name}", ""},
	"ListInterfaces":  {[]string{"reads"}, networkVersion, "GET", interfaces, ""},
	"DeleteInterface": {[]string{"deletes", "network deletes"}, networkVersion, "DELETE", interfaces + "/{name}", ""},
	"ListAddresses":   {[]string{"reads"}, networkVersion, "GET", addresses, ""},
	"DeleteAddress":   {[]string{"deletes", "network deletes"}, networkVersion, "DELETE", addresses + "/{name}", ""},
	"ListImages":      {[]string{"reads"}, vmVersion, "GET", "{images}Microsoft.Compute/images", ""},
	"ListTypes":       {[]string{"reads"}, skuVersion, "GET", "{subscription}Microsoft.Compute/skus", "$filter=location eq '{location}'"},
	"ListQuotas":      {[]string{"reads"}, vmVersion, "GET", "{subscription}Microsoft.Compute/locations/{location}/usages", ""},
	"Query":           {[]string{"queries"}, graphVersion, "POST", "/providers/Microsoft.ResourceGraph/resources", ""},
}

// answerTime limits the wait for an answer from the price list; the SDK has its own limits.
const answerTime = time.Minute

// api calls Azure: it retries no call, counts every call, and exceeds none of the published rates. Its calls go through
// the SDK's pipeline, which signs in and reads errors. It does not use Microsoft's packages for computing and the
// network: these take 75 CPU seconds to compile.
type api struct {
	arm    *arm.Client
	config Config
	web    policy.Transporter // for services other than Azure Resource Manager
	gate   kit.Gate
}

// connect finds credentials the way the Azure tools do. It makes no call.
func connect(c Config, world outside, metric func(string, error)) (a *api, err error) {
	a = &api{config: c, web: world.transport, gate: kit.Gate{Limiter: kit.NewRateLimiter(rates, c.CallRate), Metric: metric}}
	if a.web == nil {
		a.web = &http.Client{Timeout: answerTime}
	}
	base := azcore.ClientOptions{Cloud: environments[c.Environment], Retry: policy.RetryOptions{MaxRetries: -1}, Transport: world.transport}
	who := world.credential
	if who == nil {
		watched := base
		watched.PerCallPolicies = []policy.Policy{watch{}}
		who, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: watched, TenantID: c.Tenant})
		if err != nil {
			return nil, drover.Errorf(drover.KindAuthentication, "no Azure credentials: %v", err)
		}
	}
	a.arm, err = arm.NewClient("drover", "v1.0.0", credential{who}, &arm.ClientOptions{ClientOptions: base, DisableRPRegistration: true})
	if err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "set up the Azure client: %v", err)
	}
	return a, nil
}

// credential tells apart the errors of signing in: there are no credentials, they were refused, or the service that
// issues tokens did not answer.
type credential struct{ azcore.TokenCredential }

// GetToken retrieves a token.
func (c credential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	down := new(atomic.Bool)
	token, err := c.TokenCredential.GetToken(context.WithValue(ctx, watch{}, down), o)
	if err == nil || ctx.Err() != nil {
		return token, err
	}
	_, failed := errors.AsType[*azidentity.AuthenticationFailedError](err)
	switch {
	case failed && down.Load():
		return token, drover.Errorf(drover.KindTransient, "sign in to Azure: %v", err)
	case failed:
		return token, drover.Errorf(drover.KindAuthentication, "sign in to Azure: %v", err).WithHint(signInHint)
	}
	return token, drover.Errorf(drover.KindAuthentication, "no Azure credentials: %v", err).WithHint(signInHint)
}

const signInHint = "give the controller a managed identity, or run az login"

// metadata is where a virtual machine gets tokens. Elsewhere nothing answers there, which is no failure.
const metadata = "169.254.169.254"

// watch notes, under itself as the key of a request's context, that a service failed or did not answer. The SDK's errors
// do not tell.
type watch struct{}

// Do makes the request.
func (watch) Do(q *policy.Request) (*http.Response, error) {
	reply, err := q.Next()
	down := err != nil && q.Raw().URL.Host != metadata
	if err == nil {
		down = reply.StatusCode == http.StatusTooManyRequests || reply.StatusCode >= http.StatusInternalServerError
	}
	if noted, watched := q.Raw().Context().Value(watch{}).(*atomic.Bool); watched && down {
		noted.Store(true)
	}
	return reply, err
}

// onVM makes a call that Azure answers with the virtual machine.
func (a *api) onVM(ctx context.Context, call, name string, body any) (vm virtualMachine, err error) {
	if err = a.do(ctx, call, name, body, &vm); err == nil && vm.Name == "" {
		err = errors.New("Azure's response contains no virtual machine")
	}
	return vm, err
}

// do makes a call about a named object, if any, with an optional body, and decodes the answer. It does not wait for
// changes that Azure has accepted.
func (a *api) do(ctx context.Context, call, name string, body, answer any) error {
	return a.send(ctx, call, answer, func() (*policy.Request, error) {
		q, err := a.request(ctx, call, name)
		if err != nil || body == nil {
			return q, err
		}
		return q, runtime.MarshalAsJSON(q, body)
	})
}

// request builds the request of a call.
func (a *api) request(ctx context.Context, name, about string) (*policy.Request, error) {
	to := calls[name]
	if strings.Contains(to.path, "{name}") && about == "" {
		return nil, errors.New("the resource name is missing")
	}
	c, escape := a.config, url.PathEscape
	subscription := "/subscriptions/" + escape(c.Subscription)
	fill := strings.NewReplacer(
		"{name}", escape(about), "{location}", c.Location, "{subscription}", subscription+"/providers/",
		"{group}", subscription+"/resourceGroups/"+escape(c.ResourceGroup)+"/providers/",
		"{images}", subscription+"/resourceGroups/"+escape(c.imageGroup())+"/providers/",
	)
	q, err := runtime.NewRequest(ctx, to.method, runtime.JoinPaths(a.arm.Endpoint(), fill.Replace(to.path)))
	if err != nil {
		return nil, err
	}
	query := url.Values{"api-version": {to.version}}
	if key, value, has := strings.Cut(to.query, "="); has {
		query.Set(key, fill.Replace(value))
	}
	q.Raw().URL.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	q.Raw().Header.Set("Accept", "application/json")
	if to.method == http.MethodPut {
		q.Raw().Header.Set("If-None-Match", "*") // never replace anything
	}
	return q, nil
}

// send builds and sends a request within its rates, and counts it.
func (a *api) send(ctx context.Context, call string, answer any, request func() (*policy.Request, error)) error {
	return a.gate.Pass(ctx, call, func() error {
		q, err := request()
		if err != nil {
			return err
		}
		response, err := a.arm.Pipeline().Do(q)
		switch {
		case err != nil:
			return err
		case !runtime.HasStatusCode(response, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent):
			return runtime.NewResponseError(response)
		}
		return decode(response, answer)
	}, calls[call].rates...)
}

// decode reads the JSON of a response. The SDK's own function accepts an empty one. If no answer is wanted, the response
// may be empty, but a page of a proxy is an error, too.
func decode(response *http.Response, answer any) error {
	text, err := runtime.Payload(response)
	switch {
	case err != nil:
		return err
	case answer == nil && len(text) == 0:
		return nil
	case answer == nil:
		answer = new(any)
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), answer); err != nil {
		return fmt.Errorf("Azure's response (HTTP %d) cannot be read: %w", response.StatusCode, err)
	}
	return nil
}

// list reads all pages of a list. A page without a list, such as {}, is an error and not an empty one.
func list[T any](ctx context.Context, a *api, call string) ([]T, error) {
	return kit.Collect(func(next string) (some []T, after string, err error) {
		var page struct {
			Value    json.RawMessage
			NextLink string
		}
		err = a.send(ctx, call, &page, func() (*policy.Request, error) {
			if next != "" {
				return runtime.NewRequestForNextLink(ctx, http.MethodGet, a.arm.Endpoint(), next)
			}
			return a.request(ctx, call, "")
		})
		if err == nil && page.Value == nil {
			err = errors.New("Azure's response contains no list")
		}
		if err == nil {
			err = json.Unmarshal(page.Value, &some)
		}
		return some, page.NextLink, err
	})
}

// query reads rows from Azure Resource Graph.
func query[T any](ctx context.Context, a *api, text string) ([]T, error) {
	return kit.Collect(func(token string) ([]T, string, error) {
		options := map[string]string{"resultFormat": "objectArray"}
		if token != "" {
			options["$skipToken"] = token
		}
		var page struct {
			Data            []T
			SkipToken       string `json:"$skipToken"`
			ResultTruncated string
		}
		err := a.do(ctx, "Query", "", map[string]any{"query": text, "options": options}, &page)
		if err == nil && page.SkipToken == "" && page.ResultTruncated == "true" {
			err = errors.New("the response was cut short")
		}
		if err == nil && page.Data == nil {
			err = errors.New("the response contains no data")
		}
		return page.Data, page.SkipToken, err
	})
}

// attachment is what the driver reads from a disk, network interface or public address. JSON keys match in any case.
type attachment struct {
	ID, Name   string
	Tags       map[string]string
	ManagedBy  string // of a disk, like the state and the time
	Properties *struct {
		DiskState        string
		TimeCreated      *datetime.RFC3339
		VirtualMachine   *struct{ ID string } // of an interface
		IPConfigurations []struct {
			Properties struct {
				PrivateIPAddress string
				PublicIPAddress  struct{ ID string }
			}
		}
		IPAddress       string // of an address
		IPConfiguration *struct{ ID string }
	}
}
