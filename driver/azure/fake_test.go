package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	compute "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8/fake"

	"drover/driver/drivertest"
)

// region is a region of Azure in memory, behind Microsoft's own fake servers, which speak for it. It has what they leave to whoever uses them:
// capacity and quotas that end, rates, answers that are behind, calls that are accepted and fail later, and parts that go with their instance
// or stay, as they are marked. Its times are the clock's, so it works in a bubble of synctest as well.
type region struct {
	kinds    []kind
	prices   []priceItem
	volumes  []priceItem   // disks, in the price list
	spots    []any         // what Azure Resource Graph has of spot instances
	makeTime time.Duration // until what was accepted runs, or has failed
	endTime  time.Duration // until what was destroyed is gone
	lag      time.Duration // how late a list shows a new instance
	latency  time.Duration // of a call
	pageSize int           // 0: all
	throttle bool
	slow     string // a call that is not answered
	cutShort bool   // what Azure Resource Graph answers is not all
	images   []*armcompute.Image

	mu      sync.Mutex
	vms     map[string]*machine    // by name; guarded by mu, as is all below
	parts   map[string]*part       // disks, interfaces and addresses, by kind and name
	lacks   drivertest.Lack[wrong] // what is refused at once, by "type zone market"; an empty part means any
	fails   drivertest.Lack[wrong] // what is accepted and then fails, in the same way
	cores   map[string]int64       // quotas
	broken  map[string]wrong       // what calls of a name end with
	calls   map[string]int
	refused map[string]int
	buckets drivertest.Buckets
	skip    int // where the page that is asked for begins
	next    func(skip int) string

	compute *compute.ServerFactoryTransport
}

// kind is an instance type.
type kind struct {
	name, family, arch, generations string
	cores, gib                      float64
	gpus                            int
	zones                           []string
	spot, barred, sealed            bool
	barredIn                        []string
}

// machine is an instance.
type machine struct {
	name           string
	asked          armcompute.VirtualMachine
	created, ended time.Time
	failed         wrong
	stopped        bool
	group          string // the quota
	cores          int64
}

// part is what was made with an instance.
type part struct {
	kind, name, owner string
	tags              map[string]*string
	made              time.Time
	stays             bool // it does not go with its owner
}

// wrong is an error of the API's.
type wrong struct {
	status        int
	code, message string
	after         string // Retry-After
}

func (w wrong) Error() string { return w.code }

func newRegion() *region {
	r := &region{
		kinds: []kind{
			{name: "Standard_D2s_v5", family: "standardDSv5Family", arch: "x64", generations: "V1,V2", cores: 2, gib: 8, zones: []string{"1", "2"}, spot: true},
			{name: "Standard_D16s_v5", family: "standardDSv5Family", arch: "x64", generations: "V1,V2", cores: 16, gib: 64, zones: []string{"1", "2", "3"}, barredIn: []string{"3"}, spot: true},
			{name: "Standard_D2ps_v5", family: "standardDPSv5Family", arch: "Arm64", generations: "V2", cores: 2, gib: 8, zones: []string{"1"}, spot: true},
			{name: "Standard_NC4as_T4_v3", family: "Standard NCASv3_T4 Family", arch: "x64", generations: "V1,V2", cores: 4, gib: 28, gpus: 1},
			{name: "Standard_A1_v2", family: "standardAv2Family", arch: "x64", generations: "V1", cores: 1, gib: 2},
			{name: "Standard_DC2as_v5", family: "standardDCASv5Family", arch: "x64", generations: "V2", cores: 2, gib: 8, sealed: true},
			{name: "Standard_M8ms", family: "standardMSFamily", arch: "x64", generations: "V1,V2", cores: 8, gib: 218.75, barred: true},
		},
		prices: []priceItem{
			{"Standard_D2s_v5", "Virtual Machines Dsv5 Series", "Standard_D2s_v5", "1 Hour", 0.115, time.Time{}, ""},
			{"Standard_D2s_v5", "Virtual Machines Dsv5 Series Windows", "Standard_D2s_v5", "1 Hour", 0.207, time.Time{}, ""},
			{"Standard_D2s_v5", "Virtual Machines Dsv5 Series", "Standard_D2s_v5 Spot", "1 Hour", 0.0216, time.Time{}, ""},
			{"Standard_D2s_v5", "Virtual Machines Dsv5 Series", "Standard_D2s_v5 Low Priority", "1 Hour", 0.023, time.Time{}, ""},
			{"Standard_D16s_v5", "Virtual Machines Dsv5 Series", "Standard_D16s_v5", "1 Hour", 0.92, time.Time{}, ""},
			{"Standard_D16s_v5", "Virtual Machines Dsv5 Series", "Standard_D16s_v5", "1 Hour", 99, time.Now().AddDate(30, 0, 0), ""},
			{"Standard_D2ps_v5", "Virtual Machines Dpsv5 Series", "D2ps v5", "1 Hour", 0.0924, time.Time{}, ""},
			{"Standard_D2ps_v5", "Virtual Machines Dpsv5 Series", "D2ps v5 Spot", "1 Hour", 0.0174, time.Time{}, ""},
			{"Standard_NC4as_T4_v3", "Virtual Machines NCasT4 v3 Series", "NC4as T4 v3", "1 Hour", 0.605, time.Time{}, ""},
			{"Standard_A1_v2", "Virtual Machines Av2 Series", "A1 v2", "1 Hour", 0.043, time.Time{}, ""},
			{"Standard_DC2as_v5", "Virtual Machines DCasv5 Series", "DC2as v5", "1 Hour", 0.103, time.Time{}, ""},
			{"Standard_M8ms", "Virtual Machines MS Series", "M8ms", "1 Hour", 2.6, time.Time{}, ""},
		},
		volumes: []priceItem{
			{"", "Standard SSD Managed Disks", "E4 LRS", "1/Month", 2.4, time.Time{}, "E4 LRS Disk"},
			{"", "Standard SSD Managed Disks", "E10 LRS", "1/Month", 11, time.Time{}, "E10 LRS Disk"},
			{"", "Standard SSD Managed Disks", "E10 LRS", "1/Month", 99, time.Now().AddDate(30, 0, 0), "E10 LRS Disk"},
			{"", "Standard SSD Managed Disks", "E10 LRS", "1/Month", 99, time.Time{}, "E10 LRS Disk Mount"},
			{"", "Standard SSD Managed Disks", "E10 LRS", "10K", 99, time.Time{}, "E10 LRS Disk Operations"},
			{"", "Standard SSD Managed Disks", "E10 ZRS", "1/Month", 14.4, time.Time{}, "E10 ZRS Disk"},
			{"", "Premium SSD Managed Disks", "P10 LRS", "1/Month", 19.71, time.Time{}, "P10 LRS Disk"},
			{"", "Azure Premium SSD v2", "Premium LRS", "1 GiB/Hour", 0.0001, time.Time{}, "Premium LRS Provisioned Capacity"},
		},
		spots: []any{
			row("standard_d2s_v5", "0-5"), row("standard_d2s_v5", "", "0.0216 2026-03-01T00:00:00Z", "0.0216 2026-02-01T00:00:00Z", "0.03 2026-01-01T00:00:00"),
			row("standard_d2ps_v5", "20+"), row("standard_d2ps_v5", "", "0.0174 2026-02-01T00:00:00Z", "0.0174 2026-01-15T00:00:00Z", "0.02 2026-01-01T00:00:00Z"), row("standard_b1s", "5-10"), row("standard_b1s", "", "0.004 2026-01-01T00:00:00Z"),
		},
		vms: map[string]*machine{}, parts: map[string]*part{}, lacks: drivertest.Lack[wrong]{}, fails: drivertest.Lack[wrong]{}, broken: map[string]wrong{},
		cores: map[string]int64{"standardDSv5Family": 1000000, spotQuota: 1000000, "standardDPSv5Family": 1000000},
		calls: map[string]int{}, refused: map[string]int{}, buckets: drivertest.Buckets{},
	}
	r.compute = compute.NewServerFactoryTransport(&compute.ServerFactory{
		VirtualMachinesServer: compute.VirtualMachinesServer{
			BeginCreateOrUpdate: r.create, BeginUpdate: r.tag, BeginDelete: r.destroy, BeginStart: r.start, BeginDeallocate: r.deallocate,
			Get: r.get, NewListPager: r.list, NewListAllPager: r.states,
		},
		DisksServer:        compute.DisksServer{NewListByResourceGroupPager: r.disks, BeginDelete: r.deleteDisk},
		ImagesServer:       compute.ImagesServer{NewListByResourceGroupPager: r.listImages},
		ResourceSKUsServer: compute.ResourceSKUsServer{NewListPager: r.skus},
		UsageServer:        compute.UsageServer{NewListPager: r.usages},
	})
	return r
}

// made are requests as Microsoft's package makes them, by our names of the calls.
var made = func() map[string]model {
	ctx, group, all := context.Background(), "group", map[string]model{}
	var last *http.Request
	note := transporter(func(q *http.Request) (*http.Response, error) {
		last = q
		return nil, errors.New("noted")
	})
	base := azcore.ClientOptions{Transport: note, Retry: policy.RetryOptions{MaxRetries: -1}}
	sdk, _ := armcompute.NewClientFactory("sub", &azfake.TokenCredential{}, &arm.ClientOptions{ClientOptions: base, DisableRPRegistration: true})
	vms, states := sdk.NewVirtualMachinesClient(), &armcompute.VirtualMachinesClientListAllOptions{StatusOnly: to.Ptr("true")}
	view := &armcompute.VirtualMachinesClientGetOptions{Expand: to.Ptr(armcompute.InstanceViewTypesInstanceView)}
	here := &armcompute.ResourceSKUsClientListOptions{Filter: to.Ptr("location eq 'westeurope'")}
	for call, ask := range map[string]func(){
		"CreateVM":     func() { vms.BeginCreateOrUpdate(ctx, group, "NAME", armcompute.VirtualMachine{}, nil) },
		"UpdateVM":     func() { vms.BeginUpdate(ctx, group, "NAME", armcompute.VirtualMachineUpdate{}, nil) },
		"StartVM":      func() { vms.BeginStart(ctx, group, "NAME", nil) },
		"DeallocateVM": func() { vms.BeginDeallocate(ctx, group, "NAME", nil) },
		"DeleteVM": func() {
			vms.BeginDelete(ctx, group, "NAME", &armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: to.Ptr(true)})
		},
		"GetVM":        func() { vms.Get(ctx, group, "NAME", view) },
		"ListVMs":      func() { vms.NewListPager(group, nil).NextPage(ctx) },
		"ListVMStates": func() { vms.NewListAllPager(states).NextPage(ctx) },
		"ListDisks":    func() { sdk.NewDisksClient().NewListByResourceGroupPager(group, nil).NextPage(ctx) },
		"DeleteDisk":   func() { sdk.NewDisksClient().BeginDelete(ctx, group, "NAME", nil) },
		"ListImages":   func() { sdk.NewImagesClient().NewListByResourceGroupPager(group, nil).NextPage(ctx) },
		"ListTypes":    func() { sdk.NewResourceSKUsClient().NewListPager(here).NextPage(ctx) },
		"ListQuotas":   func() { sdk.NewUsageClient().NewListPager("westeurope", nil).NextPage(ctx) },
	} {
		ask()
		path := strings.NewReplacer("/NAME", "/[^/]+", "/group/", "/[^/]+/").Replace(last.URL.Path)
		all[call] = model{last.Context(), last.Method, last.URL.Query().Encode(), regexp.MustCompile("^" + path + "$")}
	}
	return all
}()

// transporter is a function as the SDK's transport.
type transporter func(*http.Request) (*http.Response, error)

func (t transporter) Do(q *http.Request) (*http.Response, error) { return t(q) }

// model is a request of Microsoft's package, with any name of what it is about and of the group.
type model struct {
	context.Context
	method, query string
	path          *regexp.Regexp
}

// byHand are the calls that no package of Microsoft's makes or answers: what they do, and whether a request is one.
var byHand = map[string]struct {
	answer  func(*region, *http.Request) (any, error)
	request *regexp.Regexp
}{
	"ListInterfaces":  {(*region).interfaces, network("GET", "networkInterfaces")},
	"DeleteInterface": {(*region).deleteInterface, network("DELETE", "networkInterfaces/[^/]+")},
	"ListAddresses":   {(*region).addresses, network("GET", "publicIPAddresses")},
	"DeleteAddress":   {(*region).deleteAddress, network("DELETE", "publicIPAddresses/[^/]+")},
	"Query":           {(*region).query, regexp.MustCompile(`^POST /providers/Microsoft\.ResourceGraph/resources\?api-version=2024-04-01$`)},
	"ListPrices":      {(*region).listPrices, regexp.MustCompile(`^GET /api/retail/prices\?`)},
}

func network(method, path string) *regexp.Regexp {
	return regexp.MustCompile("^" + method + ` /subscriptions/sub/resourceGroups/group/providers/Microsoft\.Network/` + path + `\?api-version=2025-05-01(&skip=\d+)?$`)
}

// callOf is our name of the call that a request makes.
func callOf(q *http.Request) string {
	for name, call := range byHand {
		if call.request.MatchString(q.Method + " " + q.URL.RequestURI()) {
			return name
		}
	}
	query := q.URL.Query()
	query.Del("skip")
	asked := query.Encode()
	for name, m := range made {
		if q.Method == m.method && asked == m.query && m.path.MatchString(q.URL.Path) {
			return name
		}
	}
	return ""
}

// RoundTrip does what Do does.
func (r *region) RoundTrip(q *http.Request) (*http.Response, error) { return r.Do(q) }

// Do answers without a network, as the SDK's transport.
func (r *region) Do(q *http.Request) (*http.Response, error) {
	call := callOf(q)
	if call != "" && call == r.slow {
		<-q.Context().Done()
	}
	select {
	case <-time.After(r.latency):
	case <-q.Context().Done():
		return nil, q.Context().Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	r.calls[call]++
	if w, ok := r.broken[call]; ok {
		return w.response(q), nil
	}
	if r.throttle && !r.spend(call) {
		r.refused[call]++
		return wrong{429, "OperationNotAllowed", "too many requests for this subscription", "7"}.response(q), nil
	}
	r.skip, _ = strconv.Atoi(q.URL.Query().Get("skip"))
	r.next = func(skip int) string {
		next := *q.URL
		query := next.Query()
		query.Set("skip", strconv.Itoa(skip))
		next.RawQuery = query.Encode()
		return next.String()
	}
	return r.dispatch(call, q.WithContext(context.WithoutCancel(q.Context())))
}

// dispatch answers a call. Microsoft's fakes take requests apart and put answers together where there are any.
func (r *region) dispatch(call string, q *http.Request) (reply *http.Response, err error) {
	if own, is := byHand[call]; is {
		var out any
		if out, err = own.answer(r, q); err == nil {
			return response(q, http.StatusOK, out), nil
		}
	} else if m, known := made[call]; !known {
		return nil, fmt.Errorf("Microsoft's package makes no such call: %s %s", q.Method, q.URL)
	} else {
		name := runtime.CtxAPINameKey{} // by which Microsoft's fakes know a call
		reply, err = r.compute.Do(q.WithContext(context.WithValue(q.Context(), name, m.Value(name))))
	}
	var w wrong
	if errors.As(err, &w) {
		return w.response(q), nil
	}
	return reply, err
}

func response(q *http.Request, status int, out any) *http.Response {
	text, _ := json.Marshal(out)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}}, Request: q, Body: io.NopCloser(bytes.NewReader(text))}
}

func (w wrong) response(q *http.Request) *http.Response {
	reply := response(q, w.status, map[string]any{"error": map[string]any{"code": w.code, "message": w.message}})
	if w.after != "" {
		reply.Header.Set("Retry-After", w.after)
	}
	return reply
}

// spend takes a token of each of the call's buckets, as they are published.
func (r *region) spend(call string) bool {
	return !slices.ContainsFunc(calls[call].rates, func(name string) bool { return !r.buckets.Spend(name, rates[name], 1) })
}

// cut is the page that is asked for, and where the next one is.
func cut[T any](r *region, all []T) ([]*T, *string) {
	size := r.pageSize
	if size == 0 {
		size = max(1, len(all))
	}
	var page []*T
	for i := min(r.skip, len(all)); i < min(r.skip+size, len(all)); i++ {
		page = append(page, &all[i])
	}
	if r.skip+size >= len(all) {
		return page, nil
	}
	return page, to.Ptr(r.next(r.skip + size))
}

// listPrices is the price list, a page at a time.
func (r *region) listPrices(q *http.Request) (any, error) {
	filter := q.URL.Query().Get("$filter")
	list := r.prices
	if strings.Contains(filter, "serviceName eq 'Storage'") {
		list = r.volumes
	}
	page, next := cut(r, list)
	if !strings.Contains(filter, "armRegionName eq 'westeurope'") {
		page = nil
	}
	return map[string]any{"Items": page, "NextPageLink": next, "Count": len(page)}, nil
}

func (r *region) kind(name string) (kind, bool) {
	at := slices.IndexFunc(r.kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		return kind{}, false
	}
	return r.kinds[at], true
}

// resourceID is a resource's id.
func resourceID(kind, name string) string {
	return fmt.Sprintf("/subscriptions/sub/resourceGroups/GROUP/providers/%s/%s", kind, name)
}

// settle brings the region up to date: what has ended is gone, with what goes with it.
func (r *region) settle() {
	now := time.Now()
	for name, m := range r.vms {
		if m.ended.IsZero() || now.Before(m.ended.Add(r.endTime)) {
			continue
		}
		delete(r.vms, name)
		for key, p := range r.parts {
			switch {
			case p.owner != name:
			case p.stays:
				p.owner = ""
			default:
				delete(r.parts, key)
			}
		}
	}
}

// evict takes a spot instance back.
func (r *region) evict(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vms[name].ended = time.Now()
}
