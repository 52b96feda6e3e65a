package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"

	"drover"
	"drover/driver"
)

// answerTime is for how long an answer of the price list is waited for; the SDK has limits of its own.
const answerTime = time.Minute

// api is all that is ever asked of Azure, with nothing tried twice, every call counted and none beyond the published rates. It holds the calls
// and not the clients, so that what a client can do beside them is no part of the program.
type api struct {
	createVM        func(ctx context.Context, name string, vm armcompute.VirtualMachine) error
	tagVM           func(ctx context.Context, name string, tags map[string]*string) error
	getVM           func(ctx context.Context, name string) (*armcompute.VirtualMachine, error)
	startVM         func(ctx context.Context, name string) error
	deallocateVM    func(ctx context.Context, name string) error
	deleteVM        func(ctx context.Context, name string) error
	listVMs         func(ctx context.Context) ([]*armcompute.VirtualMachine, error)
	listVMStates    func(ctx context.Context) ([]*armcompute.VirtualMachine, error)
	listInterfaces  func(ctx context.Context) ([]*armnetwork.Interface, error)
	deleteInterface func(ctx context.Context, name string) error
	listAddresses   func(ctx context.Context) ([]*armnetwork.PublicIPAddress, error)
	deleteAddress   func(ctx context.Context, name string) error
	listDisks       func(ctx context.Context) ([]*armcompute.Disk, error)
	deleteDisk      func(ctx context.Context, name string) error
	listImages      func(ctx context.Context, group string) ([]*armcompute.Image, error)
	listTypes       func(ctx context.Context) ([]*armcompute.ResourceSKU, error)
	listQuotas      func(ctx context.Context) ([]*armcompute.Usage, error)
	query           func(ctx context.Context, text string) ([]byte, error)

	web    policy.Transporter // for what is not Azure Resource Manager
	budget *driver.Budget
	metric func(call string, err error)
}

// connect finds credentials as the Azure tools do. It calls nobody yet.
func connect(c Config, world outside, metric func(string, error)) (*api, error) {
	a := &api{web: world.transport, budget: driver.NewBudget(rates, c.CallRate), metric: metric}
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
	options := &arm.ClientOptions{ClientOptions: base, DisableRPRegistration: true}
	who = credential{who}
	for _, set := range []func(*api, Config, azcore.TokenCredential, *arm.ClientOptions) error{
		(*api).setInstances, (*api).setNetwork, (*api).setDisks, (*api).setCatalogue, (*api).setGraph,
	} {
		if err := set(a, c, who, options); err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "set up the client of Azure: %v", err)
		}
	}
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

func (a *api) setInstances(c Config, who azcore.TokenCredential, o *arm.ClientOptions) error {
	vms, err := armcompute.NewVirtualMachinesClient(c.subscription(), who, o)
	if err != nil {
		return err
	}
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
			out, err := vms.Get(ctx, of, name, nil)
			vm = &out.VirtualMachine
			return err
		})
		return vm, err
	}
	a.startVM = named(a, "StartVM", of, vms.BeginStart, nil)
	a.deallocateVM = named(a, "DeallocateVM", of, vms.BeginDeallocate, nil)
	a.deleteVM = named(a, "DeleteVM", of, vms.BeginDelete, &armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: to.Ptr(true)})
	a.listVMs = func(ctx context.Context) ([]*armcompute.VirtualMachine, error) {
		return collect(ctx, a, "ListVMs", vms.NewListPager(of, nil), func(p armcompute.VirtualMachinesClientListResponse) []*armcompute.VirtualMachine { return p.Value })
	}
	a.listVMStates = func(ctx context.Context) ([]*armcompute.VirtualMachine, error) {
		pages := vms.NewListAllPager(&armcompute.VirtualMachinesClientListAllOptions{StatusOnly: to.Ptr("true")})
		return collect(ctx, a, "ListVMStates", pages, func(p armcompute.VirtualMachinesClientListAllResponse) []*armcompute.VirtualMachine { return p.Value })
	}
	return nil
}

func (a *api) setNetwork(c Config, who azcore.TokenCredential, o *arm.ClientOptions) error {
	interfaces, err := armnetwork.NewInterfacesClient(c.subscription(), who, o)
	if err != nil {
		return err
	}
	addresses, err := armnetwork.NewPublicIPAddressesClient(c.subscription(), who, o)
	if err != nil {
		return err
	}
	a.deleteInterface = named(a, "DeleteInterface", c.ResourceGroup, interfaces.BeginDelete, nil)
	a.deleteAddress = named(a, "DeleteAddress", c.ResourceGroup, addresses.BeginDelete, nil)
	a.listInterfaces = func(ctx context.Context) ([]*armnetwork.Interface, error) {
		return collect(ctx, a, "ListInterfaces", interfaces.NewListPager(c.ResourceGroup, nil), func(p armnetwork.InterfacesClientListResponse) []*armnetwork.Interface { return p.Value })
	}
	a.listAddresses = func(ctx context.Context) ([]*armnetwork.PublicIPAddress, error) {
		return collect(ctx, a, "ListAddresses", addresses.NewListPager(c.ResourceGroup, nil), func(p armnetwork.PublicIPAddressesClientListResponse) []*armnetwork.PublicIPAddress { return p.Value })
	}
	return nil
}

func (a *api) setDisks(c Config, who azcore.TokenCredential, o *arm.ClientOptions) error {
	disks, err := armcompute.NewDisksClient(c.subscription(), who, o)
	if err != nil {
		return err
	}
	images, err := armcompute.NewImagesClient(c.subscription(), who, o)
	if err != nil {
		return err
	}
	a.deleteDisk = named(a, "DeleteDisk", c.ResourceGroup, disks.BeginDelete, nil)
	a.listDisks = func(ctx context.Context) ([]*armcompute.Disk, error) {
		return collect(ctx, a, "ListDisks", disks.NewListByResourceGroupPager(c.ResourceGroup, nil), func(p armcompute.DisksClientListByResourceGroupResponse) []*armcompute.Disk { return p.Value })
	}
	a.listImages = func(ctx context.Context, group string) ([]*armcompute.Image, error) {
		return collect(ctx, a, "ListImages", images.NewListByResourceGroupPager(group, nil), func(p armcompute.ImagesClientListByResourceGroupResponse) []*armcompute.Image { return p.Value })
	}
	return nil
}

func (a *api) setCatalogue(c Config, who azcore.TokenCredential, o *arm.ClientOptions) error {
	types, err := armcompute.NewResourceSKUsClient(c.subscription(), who, o)
	if err != nil {
		return err
	}
	quotas, err := armcompute.NewUsageClient(c.subscription(), who, o)
	if err != nil {
		return err
	}
	a.listTypes = func(ctx context.Context) ([]*armcompute.ResourceSKU, error) {
		pages := types.NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: to.Ptr(fmt.Sprintf("location eq '%s'", c.Location))})
		return collect(ctx, a, "ListTypes", pages, func(p armcompute.ResourceSKUsClientListResponse) []*armcompute.ResourceSKU { return p.Value })
	}
	a.listQuotas = func(ctx context.Context) ([]*armcompute.Usage, error) {
		return collect(ctx, a, "ListQuotas", quotas.NewListPager(c.Location, nil), func(p armcompute.UsageClientListResponse) []*armcompute.Usage { return p.Value })
	}
	return nil
}

func (a *api) setGraph(_ Config, who azcore.TokenCredential, o *arm.ClientOptions) error {
	graph, err := armresourcegraph.NewClient(who, o)
	if err != nil {
		return err
	}
	a.query = func(ctx context.Context, text string) ([]byte, error) {
		rows, err := driver.Collect(func(token string) (rows []any, after string, err error) {
			options := &armresourcegraph.QueryRequestOptions{ResultFormat: to.Ptr(armresourcegraph.ResultFormatObjectArray)}
			if token != "" {
				options.SkipToken = &token
			}
			err = a.call(ctx, "Query", func() error {
				out, err := graph.Resources(ctx, armresourcegraph.QueryRequest{Query: &text, Options: options}, nil)
				rows, _ = out.Data.([]any)
				after = value(out.SkipToken)
				if err == nil && after == "" && value(out.ResultTruncated) == armresourcegraph.ResultTruncatedTrue {
					return errors.New("the answer was cut short")
				}
				return err
			})
			return rows, after, err
		})
		if err != nil {
			return nil, err
		}
		return json.Marshal(rows)
	}
	return nil
}

// call makes a call that is within its rates, and counts it.
func (a *api) call(ctx context.Context, name string, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, bucket := range counts[name] {
		if err := a.budget.Take(bucket, time.Now()); err != nil {
			return err
		}
	}
	err := do()
	if a.metric != nil {
		a.metric(name, err)
	}
	return err
}

// named is a call about something of a name, whose answer says that Azure has accepted; how it goes on is not waited for.
func named[O, R any](a *api, call, group string, begin func(context.Context, string, string, *O) (*runtime.Poller[R], error), o *O) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		return a.call(ctx, call, func() error {
			_, err := begin(ctx, group, name, o)
			return err
		})
	}
}

// collect asks for page after page. What comes to an early end is nothing.
func collect[P, T any](ctx context.Context, a *api, call string, pages *runtime.Pager[P], of func(P) []T) ([]T, error) {
	return driver.Collect(func(string) (some []T, after string, err error) {
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
