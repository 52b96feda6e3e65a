package azure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drover/driver/drivertest"
)

// region is a region of Azure in memory. It has limited capacity and quotas, rates, answers that lag, calls that are
// accepted and fail later, and parts that are deleted with their instance or, if marked, stay. It uses the clock, so it
// also works in a synctest bubble.
type region struct {
	kinds    []kind
	prices   []priceItem
	volumes  []priceItem   // disks, in the price list
	spots    []any         // Azure Resource Graph's data on spot instances
	makeTime time.Duration // until an accepted instance runs or has failed
	endTime  time.Duration // until a destroyed instance is gone
	lag      time.Duration // how late a list shows a new instance
	latency  time.Duration // of a call
	pageSize int           // 0: all
	throttle bool
	slow     string // a call that is not answered
	cutShort bool   // Azure Resource Graph's answer is truncated
	images   []object

	mu      sync.Mutex
	vms     map[string]*held       // by name; guarded by mu, like all fields below
	parts   map[string]*part       // disks, interfaces and addresses, by kind and name
	lacks   drivertest.Lack[wrong] // errors of refused requests, by "type zone market"; an empty part means any
	fails   drivertest.Lack[wrong] // errors of requests that are accepted and then fail, in the same way
	cores   map[string]int64       // quotas
	broken  map[string]wrong       // the errors of calls, by name
	cut     map[string]bool        // calls whose answers are lost, by name
	garbled map[string]string      // the answers of calls that succeed, instead of the right ones
	calls   map[string]int
	refused map[string]int
	buckets drivertest.Buckets
	skip    int // where the requested page begins
	next    func(skip int) string
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

// held is an instance.
type held struct {
	name           string
	asked          object // the body of the create call
	created, ended time.Time
	failed         wrong
	stopped        bool
	group          string // the quota
	cores          int64
}

// part is a resource that was created with an instance.
type part struct {
	kind, name, owner string
	tags              any
	made              time.Time
	stays             bool // it is not deleted with its owner
}

// wrong is an error of the API.
type wrong struct {
	status        int
	code, message string
	after         string // Retry-After
}

func (w wrong) Error() string { return w.code }

func newRegion() *region {
	return &region{
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
		vms: map[string]*held{}, parts: map[string]*part{}, lacks: drivertest.Lack[wrong]{}, fails: drivertest.Lack[wrong]{}, broken: map[string]wrong{},
		cores: map[string]int64{"standardDSv5Family": 1000000, spotQuota: 1000000, "standardDPSv5Family": 1000000},
		calls: map[string]int{}, refused: map[string]int{}, buckets: drivertest.Buckets{},
	}
}

// served is a call that the region answers: its request as in Microsoft's reference of the REST API, with the query in
// order, where {name} is the object and * is any text; and its effect.
type served struct {
	request string
	answer  func(r *region, name string, q *http.Request) (status int, out any, err error)
}

const (
	inGroup = "/subscriptions/sub/resourceGroups/group/providers/Microsoft."
	vmPath  = inGroup + "Compute/virtualMachines"
)

var answered = map[string]served{
	"CreateVM":        {"PUT " + vmPath + "/{name}?api-version=2026-04-01", (*region).create},
	"UpdateVM":        {"PATCH " + vmPath + "/{name}?api-version=2026-04-01", (*region).tag},
	"StartVM":         {"POST " + vmPath + "/{name}/start?api-version=2026-04-01", (*region).start},
	"DeallocateVM":    {"POST " + vmPath + "/{name}/deallocate?api-version=2026-04-01", (*region).deallocate},
	"DeleteVM":        {"DELETE " + vmPath + "/{name}?api-version=2026-04-01&forceDeletion=true", (*region).destroy},
	"GetVM":           {"GET " + vmPath + "/{name}?$expand=instanceView&api-version=2026-04-01", (*region).get},
	"ListVMs":         {"GET " + vmPath + "?api-version=2026-04-01", (*region).list},
	"ListVMStates":    {"GET /subscriptions/sub/providers/Microsoft.Compute/virtualMachines?api-version=2026-04-01&statusOnly=true", (*region).states},
	"ListDisks":       {"GET " + inGroup + "Compute/disks?api-version=2026-03-02", (*region).disks},
	"DeleteDisk":      {"DELETE " + inGroup + "Compute/disks/{name}?api-version=2026-03-02", (*region).deleteDisk},
	"ListInterfaces":  {"GET " + inGroup + "Network/networkInterfaces?api-version=2025-05-01", (*region).interfaces},
	"DeleteInterface": {"DELETE " + inGroup + "Network/networkInterfaces/{name}?api-version=2025-05-01", (*region).deleteInterface},
	"ListAddresses":   {"GET " + inGroup + "Network/publicIPAddresses?api-version=2025-05-01", (*region).addresses},
	"DeleteAddress":   {"DELETE " + inGroup + "Network/publicIPAddresses/{name}?api-version=2025-05-01", (*region).deleteAddress},
	"ListImages":      {"GET /subscriptions/sub/resourceGroups/*/providers/Microsoft.Compute/images?api-version=2026-04-01", (*region).listImages},
	"ListTypes":       {"GET /subscriptions/sub/providers/Microsoft.Compute/skus?$filter=location eq 'westeurope'&api-version=2021-07-01", (*region).skus},
	"ListQuotas":      {"GET /subscriptions/sub/providers/Microsoft.Compute/locations/westeurope/usages?api-version=2026-04-01", (*region).usages},
	"Query":           {"POST /providers/Microsoft.ResourceGraph/resources?api-version=2024-04-01", (*region).query},
	"ListPrices":      {"GET /api/retail/prices?*", (*region).listPrices},
}

// patterns match the requests, by the driver's names of the calls.
var patterns = func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for call, s := range answered {
		pattern := strings.NewReplacer(`\{name\}`, "([^/?]+)", `/\*/`, "/[^/?]+/", `\*`, ".*").Replace(regexp.QuoteMeta(s.request))
		all[call] = regexp.MustCompile("^" + pattern + "$")
	}
	return all
}()

// callOf returns the driver's name of the call that a request makes, and the name of its object.
func callOf(q *http.Request) (call, about string) {
	query := q.URL.Query()
	query.Del("skip")
	asked, _ := url.QueryUnescape(query.Encode())
	for call, pattern := range patterns {
		if m := pattern.FindStringSubmatch(q.Method + " " + q.URL.Path + "?" + asked); m != nil {
			return call, strings.Join(m[1:], "")
		}
	}
	return "", ""
}

// RoundTrip makes the region an http.RoundTripper, too.
func (r *region) RoundTrip(q *http.Request) (*http.Response, error) { return r.Do(q) }

// Do answers without a network, as the SDK's transport.
func (r *region) Do(q *http.Request) (*http.Response, error) {
	call, about := callOf(q)
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
	to, known := answered[call]
	if !known {
		return nil, fmt.Errorf("the reference has no such call: %s %s", q.Method, q.URL)
	}
	status, out, err := to.answer(r, about, q)
	if w, ok := errors.AsType[wrong](err); ok {
		return w.response(q), nil
	}
	reply := response(q, status, out)
	if r.cut[call] && err == nil {
		return nil, io.ErrUnexpectedEOF
	}
	if text, ok := r.garbled[call]; ok {
		reply.Body = io.NopCloser(strings.NewReader(text))
	}
	return reply, err
}

// response returns an answer; it has no body if out is nil.
func response(q *http.Request, status int, out any) *http.Response {
	var text []byte
	if out != nil {
		text, _ = json.Marshal(out)
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}}, Request: q, Body: io.NopCloser(bytes.NewReader(text))}
}

func (w wrong) response(q *http.Request) *http.Response {
	reply := response(q, w.status, map[string]any{"error": map[string]any{"code": w.code, "message": w.message}})
	if strings.HasPrefix(w.message, "<") { // a page, not an error of Azure's
		reply.Body = io.NopCloser(strings.NewReader(w.message))
	}
	if w.after != "" {
		reply.Header.Set("Retry-After", w.after)
	}
	return reply
}

// spend takes a token from each of the call's buckets, with the published rates.
func (r *region) spend(call string) bool {
	return !slices.ContainsFunc(calls[call].rates, func(name string) bool { return !r.buckets.Spend(name, rates[name], 1) })
}

// cut returns the requested page and the address of the next one; nil if there is none.
func cut[T any](r *region, all []T) (page []T, next any) {
	size := r.pageSize
	if size == 0 {
		size = max(1, len(all))
	}
	page = all[min(r.skip, len(all)):min(r.skip+size, len(all))]
	if r.skip+size < len(all) {
		next = r.next(r.skip + size)
	}
	return page, next
}

// paged answers with a page of a list.
func paged(r *region, all []object) (int, any, error) {
	page, next := cut(r, all)
	return http.StatusOK, object{"value": page, "nextLink": next}, nil
}

// listPrices answers with a page of the price list.
func (r *region) listPrices(_ string, q *http.Request) (int, any, error) {
	filter := q.URL.Query().Get("$filter")
	list := r.prices
	if strings.Contains(filter, "serviceName eq 'Storage'") {
		list = r.volumes
	}
	page, next := cut(r, list)
	if !strings.Contains(filter, "armRegionName eq 'westeurope'") {
		page = nil
	}
	return http.StatusOK, object{"Items": page, "NextPageLink": next, "Count": len(page)}, nil
}

func (r *region) kind(name string) (kind, bool) {
	at := slices.IndexFunc(r.kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		return kind{}, false
	}
	return r.kinds[at], true
}

// resourceID returns a resource's id.
func resourceID(kind, name string) string {
	return fmt.Sprintf("/subscriptions/sub/resourceGroups/GROUP/providers/%s/%s", kind, name)
}

// settle removes instances that have ended and the resources that are deleted with them.
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

// evict interrupts a spot instance.
func (r *region) evict(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vms[name].ended = time.Now()
}
