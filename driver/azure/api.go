package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"drover"
	"drover/driver/kit"
)

// The rates are token buckets of two kinds, and a call takes from each that it counts under. Those of Azure Resource Manager hold for a
// principal in a subscription and region (https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling),
// those of Microsoft.Compute for a subscription and region (https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits),
// which says them by the minute. Microsoft.Network's, on the former page, are of all changes in five minutes; its 10,000 reads are beyond
// those of Azure Resource Manager. Azure Resource Graph's are of who asks, in five seconds
// (https://learn.microsoft.com/azure/governance/resource-graph/concepts/guidance-for-throttled-requests).
var rates = map[string]kit.Rate{
	"reads":     {Burst: 250, PerSecond: 25},
	"writes":    {Burst: 200, PerSecond: 10},
	"deletes":   {Burst: 200, PerSecond: 10},
	"put VM":    {Burst: 1500, PerSecond: 8},
	"update VM": {Burst: 1500, PerSecond: 8},
	"delete VM": {Burst: 1500, PerSecond: 8},
	"list VMs":  {Burst: 900, PerSecond: 5},

	"network deletes": {Burst: 100, PerSecond: 3}, // with which no five minutes have more than 1,000
	"queries":         {Burst: 5, PerSecond: 2},   // with which no five seconds have more than 15
}

// counts says what each call counts under. The price list is another service, which publishes no rate.
var counts = map[string][]string{
	"CreateVM":        {"writes", "put VM"},
	"UpdateVM":        {"writes", "update VM"},
	"StartVM":         {"writes", "update VM"},
	"DeallocateVM":    {"writes", "delete VM"},
	"DeleteVM":        {"deletes", "delete VM"},
	"DeleteDisk":      {"deletes"},
	"DeleteInterface": {"deletes", "network deletes"},
	"DeleteAddress":   {"deletes", "network deletes"},
	"GetVM":           {"reads"},
	"ListVMs":         {"reads", "list VMs"},
	"ListVMStates":    {"reads", "list VMs"},
	"ListInterfaces":  {"reads"},
	"ListAddresses":   {"reads"},
	"ListDisks":       {"reads"},
	"ListImages":      {"reads"},
	"ListTypes":       {"reads"},
	"ListQuotas":      {"reads"},
	"Query":           {"queries"},
}

// answerTime is for how long an answer of the price list is waited for; the SDK has limits of its own.
const answerTime = time.Minute

// list is all that there is of something.
type list[T any] func(ctx context.Context) ([]*T, error)

// change is something done to what is named, which Azure has accepted once it returns; how it goes on is not waited for.
type change func(ctx context.Context, name string) error

// api is all that is ever asked of Azure, with nothing tried twice, every call counted and none beyond the published rates. It holds the calls
// and not the clients, so that what a client can do beside them is no part of the program.
type api struct {
	createVM func(ctx context.Context, name string, vm armcompute.VirtualMachine) error
	tagVM    func(ctx context.Context, name string, tags map[string]*string) error
	getVM    func(ctx context.Context, name string) (*armcompute.VirtualMachine, error)

	startVM, deallocateVM, deleteVM            change
	deleteInterface, deleteAddress, deleteDisk change

	listVMs, listVMStates list[armcompute.VirtualMachine]
	listInterfaces        list[networkInterface]
	listAddresses         list[publicAddress]
	listDisks             list[armcompute.Disk]
	listImages            list[armcompute.Image]
	listTypes             list[armcompute.ResourceSKU]
	listQuotas            list[armcompute.Usage]

	query func(ctx context.Context, text string, rows any) error // of Azure Resource Graph

	web  policy.Transporter // for what is not Azure Resource Manager
	gate kit.Gate
}

// connect finds credentials as the Azure tools do. It calls nobody yet.
func connect(c Config, world outside, metric func(string, error)) (*api, error) {
	a := &api{web: world.transport, gate: kit.Gate{Limiter: kit.NewRateLimiter(rates, c.CallRate), Metric: metric}}
	if a.web == nil {
		a.web = &http.Client{Timeout: answerTime}
	}
	base := azcore.ClientOptions{Cloud: environments[c.Environment], Retry: policy.RetryOptions{MaxRetries: -1}, Transport: world.transport}
	who := world.credential
	if who == nil {
		var err error
		who, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: base, TenantID: c.Tenant})
		if err != nil {
			return nil, drover.Errorf(drover.KindAuthentication, "no Azure credentials: %v", err)
		}
	}
	who, options := credential{who}, &arm.ClientOptions{ClientOptions: base, DisableRPRegistration: true}
	compute, computeErr := armcompute.NewClientFactory(c.subscription(), who, options)
	client, clientErr := arm.NewClient("drover", "v1.0.0", who, options)
	if err := errors.Join(computeErr, clientErr); err != nil {
		return nil, drover.Errorf(drover.KindInvalid, "set up the client of Azure: %v", err)
	}
	a.setInstances(c, compute.NewVirtualMachinesClient())
	rest := rest{client, "/subscriptions/" + url.PathEscape(c.subscription()) + "/resourceGroups/" + url.PathEscape(c.ResourceGroup)}
	a.setParts(c, compute, rest)
	a.setCatalogue(c, compute, rest)
	return a, nil
}

// credential says that it is it that is missing, since the error would not.
type credential struct{ azcore.TokenCredential }

// GetToken asks whoever has the credentials.
func (c credential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := c.TokenCredential.GetToken(ctx, o)
	if err != nil && ctx.Err() == nil {
		e := drover.Errorf(drover.KindAuthentication, "no Azure credentials: %v", err)
		return token, e.WithHint("give the controller a managed identity, or run az login")
	}
	return token, err
}

func (a *api) setInstances(c Config, vms *armcompute.VirtualMachinesClient) {
	of := c.ResourceGroup
	a.createVM = func(ctx context.Context, name string, vm armcompute.VirtualMachine) error {
		return a.call(ctx, "CreateVM", func() error {
			_, err := vms.BeginCreateOrUpdate(ctx, of, name, vm, &armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")})
			return err
		})
	}
	a.tagVM = func(ctx context.Context, name string, tags map[string]*string) error {
		return a.call(ctx, "UpdateVM", func() error {
			_, err := vms.BeginUpdate(ctx, of, name, armcompute.VirtualMachineUpdate{Tags: tags}, nil)
			return err
		})
	}
	a.getVM = func(ctx context.Context, name string) (vm *armcompute.VirtualMachine, err error) {
		err = a.call(ctx, "GetVM", func() error {
			out, err := vms.Get(ctx, of, name, &armcompute.VirtualMachinesClientGetOptions{Expand: to.Ptr(armcompute.InstanceViewTypesInstanceView)})
			vm = &out.VirtualMachine
			return err
		})
		return vm, err
	}
	a.startVM = changes(a, "StartVM", of, vms.BeginStart, nil)
	a.deallocateVM = changes(a, "DeallocateVM", of, vms.BeginDeallocate, nil)
	a.deleteVM = changes(a, "DeleteVM", of, vms.BeginDelete, &armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: to.Ptr(true)})
	a.listVMs = lists(a, "ListVMs", vms.NewListPager, of, func(p armcompute.VirtualMachinesClientListResponse) []*armcompute.VirtualMachine { return p.Value })
	states := func(only string, _ *struct{}) *runtime.Pager[armcompute.VirtualMachinesClientListAllResponse] {
		return vms.NewListAllPager(&armcompute.VirtualMachinesClientListAllOptions{StatusOnly: &only})
	}
	a.listVMStates = lists(a, "ListVMStates", states, "true", func(p armcompute.VirtualMachinesClientListAllResponse) []*armcompute.VirtualMachine { return p.Value })
}

// setParts sets the calls about what instances are made with.
func (a *api) setParts(c Config, compute *armcompute.ClientFactory, rest rest) {
	of, disks, images := c.ResourceGroup, compute.NewDisksClient(), compute.NewImagesClient()
	a.deleteInterface = a.deletes("DeleteInterface", rest, "networkInterfaces")
	a.deleteAddress = a.deletes("DeleteAddress", rest, "publicIPAddresses")
	a.deleteDisk = changes(a, "DeleteDisk", of, disks.BeginDelete, nil)
	a.listInterfaces = lists(a, "ListInterfaces", pagesOf[networkInterface](rest), "networkInterfaces", func(p page[networkInterface]) []*networkInterface { return p.Value })
	a.listAddresses = lists(a, "ListAddresses", pagesOf[publicAddress](rest), "publicIPAddresses", func(p page[publicAddress]) []*publicAddress { return p.Value })
	a.listDisks = lists(a, "ListDisks", disks.NewListByResourceGroupPager, of, func(p armcompute.DisksClientListByResourceGroupResponse) []*armcompute.Disk { return p.Value })
	a.listImages = lists(a, "ListImages", images.NewListByResourceGroupPager, c.imageGroup(), func(p armcompute.ImagesClientListByResourceGroupResponse) []*armcompute.Image { return p.Value })
}

func (a *api) setCatalogue(c Config, compute *armcompute.ClientFactory, rest rest) {
	types := func(filter string, _ *struct{}) *runtime.Pager[armcompute.ResourceSKUsClientListResponse] {
		return compute.NewResourceSKUsClient().NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: &filter})
	}
	here := fmt.Sprintf("location eq '%s'", c.Location)
	a.listTypes = lists(a, "ListTypes", types, here, func(p armcompute.ResourceSKUsClientListResponse) []*armcompute.ResourceSKU { return p.Value })
	a.listQuotas = lists(a, "ListQuotas", compute.NewUsageClient().NewListPager, c.Location, func(p armcompute.UsageClientListResponse) []*armcompute.Usage { return p.Value })
	a.query = func(ctx context.Context, text string, into any) error {
		all, err := kit.Collect(func(token string) (rows []json.RawMessage, after string, err error) {
			err = a.call(ctx, "Query", func() error {
				page, err := rest.query(ctx, text, token)
				rows, after = page.Data, page.SkipToken
				return err
			})
			return rows, after, err
		})
		if err != nil {
			return err
		}
		read, err := json.Marshal(all)
		return errors.Join(err, json.Unmarshal(read, into))
	}
}

// call makes a call that is within its rates, and counts it.
func (a *api) call(ctx context.Context, name string, do func() error) error {
	return a.gate.Pass(ctx, name, do, counts[name]...)
}

func changes[O, R any](a *api, call, group string, begin func(context.Context, string, string, *O) (*runtime.Poller[R], error), o *O) change {
	return func(ctx context.Context, name string) error {
		return a.call(ctx, call, func() error {
			_, err := begin(ctx, group, name, o)
			return err
		})
	}
}

func (a *api) deletes(call string, rest rest, kind string) change {
	return func(ctx context.Context, name string) error {
		return a.call(ctx, call, func() error { return rest.delete(ctx, kind, name) })
	}
}

// lists asks for page after page. What comes to an early end is nothing.
func lists[P, O, T any](a *api, call string, begin func(string, *O) *runtime.Pager[P], in string, of func(P) []*T) list[T] {
	return func(ctx context.Context) ([]*T, error) {
		pages := begin(in, nil)
		return kit.Collect(func(string) (some []*T, after string, err error) {
			err = a.call(ctx, call, func() error {
				page, err := pages.NextPage(ctx)
				some = of(page)
				return err
			})
			if pages.More() {
				after = "more" // which the pager knows
			}
			return some, after, err
		})
	}
}

// The versions of the APIs that rest calls.
const (
	networkVersion = "2025-05-01"
	graphVersion   = "2024-04-01"
)

// rest makes the few calls to Microsoft.Network and Azure Resource Graph. They go through the SDK's own pipeline, which signs in and reads
// errors. Microsoft's package for the network would take 50 CPU seconds to compile.
type rest struct {
	*arm.Client
	group string // the path of the resource group
}

// networkInterface is what we read of a Microsoft.Network/networkInterfaces.
type networkInterface struct {
	Name       *string            `json:"name"`
	Tags       map[string]*string `json:"tags"`
	Properties *struct {
		VirtualMachine   *resource `json:"virtualMachine"`
		IPConfigurations []struct {
			Properties struct {
				PrivateIPAddress string   `json:"privateIPAddress"`
				PublicIPAddress  resource `json:"publicIPAddress"`
			} `json:"properties"`
		} `json:"ipConfigurations"`
	} `json:"properties"`
}

// publicAddress is what we read of a Microsoft.Network/publicIPAddresses.
type publicAddress struct {
	resource
	Name       *string            `json:"name"`
	Tags       map[string]*string `json:"tags"`
	Properties *struct {
		IPAddress       string    `json:"ipAddress"`
		IPConfiguration *resource `json:"ipConfiguration"`
	} `json:"properties"`
}

// resource refers to a resource.
type resource struct {
	ID *string `json:"id"`
}

// page is a part of a list.
type page[T any] struct {
	Value    []*T   `json:"value"`
	NextLink string `json:"nextLink"`
}

// pagesOf reads all resources of a kind in the resource group.
func pagesOf[T any](r rest) func(kind string, _ *struct{}) *runtime.Pager[page[T]] {
	return func(kind string, _ *struct{}) *runtime.Pager[page[T]] {
		return runtime.NewPager(runtime.PagingHandler[page[T]]{
			More: func(p page[T]) bool { return p.NextLink != "" },
			Fetcher: func(ctx context.Context, last *page[T]) (p page[T], err error) {
				first := func(ctx context.Context) (*policy.Request, error) {
					return r.request(ctx, http.MethodGet, r.networkPath(kind), networkVersion)
				}
				response, err := runtime.FetcherForNextLink(ctx, r.Pipeline(), nextLink(last), first, nil)
				if err != nil {
					return p, err
				}
				err = runtime.UnmarshalAsJSON(response, &p)
				return p, err
			},
		})
	}
}

func nextLink[T any](last *page[T]) string {
	if last == nil {
		return ""
	}
	return last.NextLink
}

// delete returns once Azure has accepted to delete a resource.
func (r rest) delete(ctx context.Context, kind, name string) error {
	if name == "" {
		return errors.New("a resource without a name cannot be deleted")
	}
	q, err := r.request(ctx, http.MethodDelete, r.networkPath(kind, name), networkVersion)
	if err != nil {
		return err
	}
	_, err = r.do(q, http.StatusOK, http.StatusAccepted, http.StatusNoContent)
	return err
}

// queryPage is a part of the answer to a query of Azure Resource Graph.
type queryPage struct {
	Data            []json.RawMessage `json:"data"`
	SkipToken       string            `json:"$skipToken"`
	ResultTruncated string            `json:"resultTruncated"`
}

// query asks Azure Resource Graph for the part of an answer that begins at a token.
func (r rest) query(ctx context.Context, text, token string) (p queryPage, err error) {
	q, err := r.request(ctx, http.MethodPost, "/providers/Microsoft.ResourceGraph/resources", graphVersion)
	if err != nil {
		return p, err
	}
	options := map[string]string{"resultFormat": "objectArray"}
	if token != "" {
		options["$skipToken"] = token
	}
	if err := runtime.MarshalAsJSON(q, map[string]any{"query": text, "options": options}); err != nil {
		return p, err
	}
	response, err := r.do(q, http.StatusOK)
	if err != nil {
		return p, err
	}
	if err := runtime.UnmarshalAsJSON(response, &p); err != nil {
		return p, err
	}
	if p.SkipToken == "" && p.ResultTruncated == "true" {
		return p, errors.New("the answer was cut short")
	}
	return p, nil
}

func (r rest) networkPath(parts ...string) string {
	path := r.group + "/providers/Microsoft.Network"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

func (r rest) request(ctx context.Context, method, path, version string) (*policy.Request, error) {
	q, err := runtime.NewRequest(ctx, method, runtime.JoinPaths(r.Endpoint(), path))
	if err != nil {
		return nil, err
	}
	q.Raw().URL.RawQuery = url.Values{"api-version": {version}}.Encode()
	q.Raw().Header.Set("Accept", "application/json")
	return q, nil
}

// do sends a request, and makes an error of any other status than those.
func (r rest) do(q *policy.Request, statuses ...int) (*http.Response, error) {
	response, err := r.Pipeline().Do(q)
	if err == nil && !runtime.HasStatusCode(response, statuses...) {
		err = runtime.NewResponseError(response)
	}
	return response, err
}
