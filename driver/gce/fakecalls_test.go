package gce

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
)

// begin begins an operation.
func (f *fake) begin(in request, kind, target string, err thing) *operation {
	f.last++
	o := &operation{
		name: "operation-" + strconv.Itoa(f.last), kind: kind, zone: in.path["zone"], target: target, begun: time.Now(), done: time.Now().Add(f.opTime), err: err,
	}
	f.ops[o.name] = o
	if id := in.query.Get("requestId"); id != "" {
		f.requests[id] = o.name
	}
	return o
}

func (f *fake) show(o *operation) thing {
	t := thing{
		"name": o.name, "operationType": o.kind, "zone": prefix + "zones/" + o.zone, "targetLink": prefix + "zones/" + o.zone + "/instances/" + o.target,
		"insertTime": stamp(o.begun), "status": "RUNNING",
	}
	if !time.Now().Before(o.done) {
		t["status"] = "DONE"
		if o.err != nil {
			t["error"] = thing{"errors": []any{o.err}}
		}
	}
	return t
}

// insert accepts an instance; its operation reports whether it is available.
func (f *fake) insert(in request) (any, *wrong) {
	if before, again := f.requests[in.query.Get("requestId")]; again {
		return f.show(f.ops[before]), nil
	}
	name, zone := in.body["name"].(string), in.path["zone"]
	k, known := f.kind(path.Base(in.body["machineType"].(string)))
	boot := in.body["disks"].([]any)[0].(thing)["initializeParams"].(thing)
	switch {
	case !slices.Contains(f.zones, zone):
		return nil, notFound("zones/%s", zone)
	case f.exists(zone + "/" + name):
		return nil, &wrong{409, "alreadyExists", "The resource '" + name + "' already exists", 0}
	case !known:
		return nil, &wrong{400, "invalid", "Invalid value for field 'resource.machineType': The referenced resource does not exist.", 0}
	case f.image(path.Base(boot["sourceImage"].(string))) == nil:
		return nil, notFound("%v", boot["sourceImage"])
	}
	err := f.refusal(in, k)
	if err != nil {
		return f.show(f.begin(in, "insert", name, err)), nil
	}
	f.last++
	h := &held{thing: in.body, kind: k, created: time.Now(), started: time.Now()}
	h.thing["id"] = strconv.Itoa(f.last)
	f.instances[zone+"/"+name] = h
	return f.show(f.begin(in, "insert", name, nil)), nil
}

// model is how an instance is bought.
func model(body thing) string {
	s, _ := body["scheduling"].(thing)
	m, _ := s["provisioningModel"].(string)
	return cmp.Or(m, "STANDARD")
}

// refusal returns why an instance is not available.
func (f *fake) refusal(in request, k kind) thing {
	zone, word := in.path["zone"], model(in.body)
	if code, lacking := f.out.Of(k.name, zone, word); lacking {
		return thing{"code": code, "message": fmt.Sprintf("A %s VM instance is currently unavailable in the %s zone.", k.name, zone)}
	}
	metric := quotaGroup(k.name, map[bool]drover.Market{true: drover.Spot, false: drover.OnDemand}[word == "SPOT"])
	left, limited := f.cpus[metric]
	if limited && left < k.cpus {
		return thing{"code": "QUOTA_EXCEEDED", "message": fmt.Sprintf("Quota '%s' exceeded.  Limit: 24.0 in region us-central1.", metric), "errorDetails": []any{
			thing{"quotaInfo": thing{"metricName": "compute.googleapis.com/" + strings.ToLower(metric), "limitName": metric + "-per-project-region", "limit": 24}},
		}}
	}
	if limited {
		f.cpus[metric] = left - k.cpus
	}
	return nil
}

// status returns an instance's current status; empty once it no longer exists.
func (f *fake) status(h *held) string {
	now := time.Now()
	switch {
	case !h.ended.IsZero() && now.Sub(h.ended) >= f.bootTime:
		return ""
	case !h.ended.IsZero():
		return "STOPPING"
	case !h.stopped.IsZero() && now.Sub(h.stopped) < f.bootTime:
		return "STOPPING"
	case !h.stopped.IsZero():
		return "TERMINATED"
	case now.Sub(h.started) < f.bootTime/2:
		return "PROVISIONING"
	case now.Sub(h.started) < f.bootTime:
		return "STAGING"
	}
	return "RUNNING"
}

func (f *fake) exists(id string) bool {
	h, ok := f.instances[id]
	return ok && f.status(h) != ""
}

// shown returns an instance as a reader sees it.
func (f *fake) shown(id string) thing {
	h := f.instances[id]
	zone, _, _ := strings.Cut(id, "/")
	t := thing{}
	for k, v := range h.thing {
		t[k] = v
	}
	t["zone"], t["status"] = prefix+"zones/"+zone, f.status(h)
	t["machineType"] = prefix + h.thing["machineType"].(string)
	t["creationTimestamp"], t["lastStartTimestamp"], t["labelFingerprint"] = stamp(h.created), stamp(h.started), fingerprint(h.print)
	if t["status"] == "RUNNING" {
		nic := thing{"networkIP": "10.0.0.7"}
		if first, ok := h.thing["networkInterfaces"].([]any)[0].(thing); ok && first["accessConfigs"] != nil {
			nic["accessConfigs"] = []any{thing{"natIP": "192.0.2.7"}}
		}
		t["networkInterfaces"] = []any{nic}
	}
	_, zone, _ = strings.Cut(t["zone"].(string), prefix)
	t["disks"] = []any{thing{"boot": true, "source": prefix + zone + "/disks/" + path.Base(id), "diskSizeGb": strconv.Itoa(bootSize(h))}}
	return t
}

// fingerprint returns a fingerprint in base64.
func fingerprint(n int) string { return fmt.Sprintf("%011d=", n) }

func (f *fake) find(in request) (string, *held, *wrong) {
	id := in.path["zone"] + "/" + in.path["instance"]
	if !f.exists(id) {
		return id, nil, notFound("%s", id)
	}
	return id, f.instances[id], nil
}

func (f *fake) get(in request) (any, *wrong) {
	id, _, bad := f.find(in)
	if bad != nil {
		return nil, bad
	}
	return f.shown(id), nil
}

func (f *fake) aggregated(in request) (any, *wrong) {
	var all []thing
	for _, id := range sortedKeys(f.instances) {
		h := f.instances[id]
		if f.status(h) != "" && (time.Since(h.created) >= f.lag || !h.ended.IsZero()) {
			all = append(all, f.shown(id))
		}
	}
	return f.scoped(in, all, "instances")
}

// scoped returns a page of a list by zone.
func (f *fake) scoped(in request, all []thing, what string) (any, *wrong) {
	some, bad := filtered(in, all)
	if bad != nil {
		return nil, bad
	}
	some, after := cut(f, in, some)
	byZone := thing{"regions/us-central1": thing{"warning": thing{"code": "NO_RESULTS_ON_PAGE"}}}
	for _, t := range some {
		zone := "zones/" + path.Base(t["zone"].(string))
		in, _ := byZone[zone].(thing)
		if in == nil {
			in = thing{what: []any{}}
			byZone[zone] = in
		}
		in[what] = append(in[what].([]any), t)
	}
	page := listing(byZone, after)
	if f.unreached != "" {
		page["unreachables"] = []any{"projects/lab-1/zones/" + f.unreached}
	}
	if f.warned != "" {
		byZone["zones/"+f.warned] = thing{"warning": thing{"code": "UNREACHABLE"}}
	}
	return page, nil
}

func (f *fake) remove(in request) (any, *wrong) {
	_, h, bad := f.find(in)
	if bad != nil {
		return nil, bad
	}
	f.end(h)
	return f.show(f.begin(in, "delete", in.path["instance"], nil)), nil
}

// end ends an instance and returns its vCPUs to the quota.
func (f *fake) end(h *held) {
	if !h.ended.IsZero() {
		return
	}
	h.ended = time.Now()
	metric := quotaGroup(h.kind.name, map[bool]drover.Market{true: drover.Spot, false: drover.OnDemand}[model(h.thing) == "SPOT"])
	if left, limited := f.cpus[metric]; limited {
		f.cpus[metric] = left + h.kind.cpus
	}
}

// preempt interrupts a spot instance.
func (f *fake) preempt(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	zone, name, _ := strings.Cut(id, "/")
	h := f.instances[id]
	f.begin(request{path: map[string]string{"zone": zone}}, preemption, name, nil)
	if h.thing["scheduling"].(thing)["instanceTerminationAction"] == "DELETE" {
		f.end(h)
		return
	}
	h.stopped = time.Now()
}

// powerOff makes an instance power itself off.
func (f *fake) powerOff(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instances[id].stopped = time.Now()
}

func (f *fake) stop(in request) (any, *wrong) {
	_, h, bad := f.find(in)
	if bad != nil {
		return nil, bad
	}
	if h.stopped.IsZero() {
		h.stopped = time.Now()
	}
	return f.show(f.begin(in, "stop", in.path["instance"], nil)), nil
}

func (f *fake) start(in request) (any, *wrong) {
	_, h, bad := f.find(in)
	switch {
	case bad != nil:
		return nil, bad
	case f.status(h) == "STOPPING":
		return nil, &wrong{400, "resourceNotReady", "The resource is not ready", 0}
	}
	if code := f.out["start"]; code != "" {
		return f.show(f.begin(in, "start", in.path["instance"], thing{"code": code, "message": "not now"})), nil
	}
	if !h.stopped.IsZero() {
		h.stopped, h.started = time.Time{}, time.Now()
	}
	return f.show(f.begin(in, "start", in.path["instance"], nil)), nil
}

func (f *fake) setLabels(in request) (any, *wrong) {
	_, h, bad := f.find(in)
	if bad != nil {
		return nil, bad
	}
	if in.body["labelFingerprint"] != fingerprint(h.print) {
		return nil, &wrong{412, "conditionNotMet", "Labels fingerprint either invalid or resource labels have changed", 0}
	}
	h.thing["labels"] = in.body["labels"]
	h.print++
	return f.show(f.begin(in, "setLabels", in.path["instance"], nil)), nil
}

func (f *fake) guestAttributes(in request) (any, *wrong) {
	id, _, bad := f.find(in)
	if bad != nil {
		return nil, bad
	}
	keys, known := f.guest[id]
	if !known || in.query.Get("queryPath") != "hostkeys/" {
		return nil, notFound("%s", in.query.Get("queryPath"))
	}
	var items []any
	for _, kind := range sortedKeys(keys) {
		items = append(items, thing{"namespace": "hostkeys", "key": kind, "value": keys[kind]})
	}
	return thing{"queryPath": "hostkeys/", "queryValue": thing{"items": items}}, nil
}

// project returns the project's metadata.
func (f *fake) project(in request) (any, *wrong) {
	if f.attributes == nil {
		return thing{"name": in.path["project"]}, nil
	}
	var items []any
	for _, key := range sortedKeys(f.attributes) {
		items = append(items, thing{"key": key, "value": f.attributes[key]})
	}
	return thing{"name": in.path["project"], "commonInstanceMetadata": thing{"items": items}}, nil
}

// wait answers when the operation is done, or after two minutes; if the fake is hurried, at once.
func (f *fake) wait(in request) (any, *wrong) {
	o, ok := f.ops[in.path["operation"]]
	if !ok || o.zone != in.path["zone"] {
		return nil, notFound("%s", in.path["operation"])
	}
	if f.hurried {
		return f.show(o), nil
	}
	f.mu.Unlock()
	select {
	case <-time.After(min(time.Until(o.done), 2*time.Minute)):
	case <-in.over:
	}
	f.mu.Lock()
	return f.show(o), nil
}

func (f *fake) operations(in request) (any, *wrong) {
	var all []thing
	for _, o := range sortedValues(f.ops) {
		if o.zone == in.path["zone"] {
			all = append(all, f.show(o))
		}
	}
	some, bad := filtered(in, all)
	if bad != nil {
		return nil, bad
	}
	some, after := cut(f, in, some)
	return listing(some, after), nil
}

func (f *fake) aggregatedDisks(in request) (any, *wrong) {
	return f.scoped(in, sortedValues(f.disks), "disks")
}

func (f *fake) removeDisk(in request) (any, *wrong) {
	id := in.path["zone"] + "/" + in.path["disk"]
	d, there := f.disks[id]
	switch {
	case !there:
		return nil, notFound("%s", id)
	case d["users"] != nil:
		return nil, &wrong{400, "resourceInUseByAnotherResource", "The disk resource is already being used", 0}
	}
	delete(f.disks, id)
	return f.show(f.begin(in, "delete", in.path["disk"], nil)), nil
}

// resizeDisk grows a boot disk, which has its instance's name.
func (f *fake) resizeDisk(in request) (any, *wrong) {
	h, there := f.instances[in.path["zone"]+"/"+in.path["disk"]]
	size, _ := strconv.Atoi(in.body["sizeGb"].(string))
	switch {
	case !there:
		return nil, notFound("%s", in.path["disk"])
	case size <= bootSize(h):
		return nil, &wrong{400, "invalid", "Invalid value for field 'sizeGb': it must be larger than the disk's current size", 0}
	}
	h.grown = size
	return f.show(f.begin(in, "resizeDisk", in.path["disk"], nil)), nil
}

// bootSize returns the size of an instance's boot disk in GiB.
func bootSize(h *held) int {
	boot := h.thing["disks"].([]any)[0].(thing)["initializeParams"].(thing)
	asked, _ := strconv.Atoi(fmt.Sprint(boot["diskSizeGb"]))
	return max(asked, h.grown)
}

// image returns one of debian-cloud's images; nil if there is none with this name.
func (f *fake) image(name string) thing {
	for _, i := range f.allImages() {
		if i["name"] == name {
			return i
		}
	}
	return nil
}

func (f *fake) allImages() []thing {
	image := func(name, family, arch, created string) thing {
		return thing{"name": name, "family": family, "architecture": arch, "creationTimestamp": created + "T00:00:00.000-08:00", "diskSizeGb": "10"}
	}
	old := image("debian-12-bookworm-v20250101", "debian-12", "X86_64", "2025-01-01")
	old["deprecated"] = thing{"state": "DEPRECATED"}
	return []thing{
		old, image("debian-12-bookworm-v20260201", "debian-12", "X86_64", "2026-02-01"), image("debian-12-bookworm-v20260101", "debian-12", "X86_64", "2026-01-01"),
		image("debian-12-bookworm-arm64-v20260101", "debian-12-arm64", "ARM64", "2026-01-01"),
	}
}

func (f *fake) images(in request) (any, *wrong) {
	if in.path["project"] != "debian-cloud" {
		return listing([]any{}, ""), nil
	}
	some, bad := filtered(in, f.allImages())
	if bad != nil {
		return nil, bad
	}
	some, after := cut(f, in, some)
	return listing(some, after), nil
}

func (f *fake) listZones(in request) (any, *wrong) {
	all := []thing{{"name": "us-central1-f", "status": "DOWN"}, {"name": "us-east1-b", "status": "UP"}}
	for _, zone := range f.zones {
		all = append(all, thing{"name": zone, "status": "UP"})
	}
	some, after := cut(f, in, all)
	return listing(some, after), nil
}

func (f *fake) kindsOf(in request) (any, *wrong) {
	some, after := cut(f, in, f.kinds)
	var all []any
	for _, k := range some {
		t := thing{"name": k.name, "guestCpus": k.cpus, "memoryMb": k.mib, "architecture": cmp.Or(k.arch, "ARCHITECTURE_UNSPECIFIED"), "isSharedCpu": k.shared}
		if k.gpus > 0 {
			t["accelerators"] = []any{thing{"guestAcceleratorType": k.gpu, "guestAcceleratorCount": k.gpus}}
		}
		if k.ssds {
			t["bundledLocalSsds"] = thing{"partitionCount": 1}
		}
		all = append(all, t)
	}
	return listing(all, after), nil
}

// entries are the price list: each has its description, usage type, unit, price in billionths of a dollar, and regions.
var entries = []struct {
	about, bought, unit string
	nanos               int
	regions             string
}{
	{"N2 Instance Core running in Americas", "OnDemand", "h", 31_611_000, "us-central1 us-east1"},
	{"N2 Instance Ram running in Americas", "OnDemand", "GiBy.h", 4_237_000, "us-central1 us-east1"},
	{"Spot Preemptible N2 Instance Core running in Americas", "Preemptible", "h", 7_650_000, "us-central1"},
	{"Spot Preemptible N2 Instance Ram running in Americas", "Preemptible", "GiBy.h", 1_030_000, "us-central1"},
	{"N2 Custom Instance Core running in Americas", "OnDemand", "h", 99_000_000, "us-central1"},
	{"N2 Instance Core running in Zurich", "OnDemand", "h", 44_000_000, "europe-west6"},
	{"N2 Sole Tenancy Instance Core running in Americas", "OnDemand", "h", 98_000_000, "us-central1"},
	{"Commitment v1: N2 Cpu in Americas for 1 Year", "Commit1Yr", "h", 1_000_000, "us-central1"},
	{"E2 Instance Core running in Americas", "OnDemand", "h", 21_811_590, "us-central1"},
	{"E2 Instance Ram running in Americas", "OnDemand", "GiBy.h", 2_923_530, "us-central1"},
	{"C4A Arm Instance Core running in Iowa", "OnDemand", "h", 33_000_000, "us-central1"},
	{"C4A Arm Instance Ram running in Iowa", "OnDemand", "GiBy.h", 4_000_000, "us-central1"},
	{"G2 Instance Core running in Americas", "OnDemand", "h", 24_988_000, "us-central1"},
	{"G2 Instance Ram running in Americas", "OnDemand", "GiBy.h", 2_927_000, "us-central1"},
	{"Nvidia L4 GPU running in Americas", "OnDemand", "h", 560_040_000, "us-central1"},
	{"Spot Preemptible G2 Instance Core running in Americas", "Preemptible", "h", 9_990_000, "us-central1"},
	{"Spot Preemptible G2 Instance Ram running in Americas", "Preemptible", "GiBy.h", 1_170_000, "us-central1"},
	{"Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas", "Preemptible", "h", 224_000_000, "us-central1"},
	{"C4 Instance Core running in Americas", "OnDemand", "h", 34_000_000, "us-central1"},
	{"C4 Instance Ram running in Americas", "OnDemand", "GiBy.h", 3_900_000, "us-central1"},
	{"X9 Instance Core running in Americas", "OnDemand", "h", 10_000_000, "us-central1"}, // the list has no price for its memory
	{"Balanced PD Capacity", "OnDemand", "GiBy.mo", 100_000_000, "us-central1"},
	{"Balanced PD Capacity in Sao Paulo", "OnDemand", "GiBy.mo", 150_000_000, "southamerica-east1"},
	{"Regional Balanced PD Capacity", "OnDemand", "GiBy.mo", 200_000_000, "us-central1"},
	{"Hyperdisk Balanced Capacity in Iowa", "OnDemand", "GiBy.h", 109_589, "us-central1"},
	{"Hyperdisk Balanced IOPS in Iowa", "OnDemand", "mo", 5_000_000, "us-central1"},
}

// halved is how long ago all prices fell to half.
const halved = 6 * time.Hour

// pricing returns an entry's prices in the requested period, which must be in the past and within one month of Los
// Angeles time.
func pricingInfo(in request, expression func(times int) thing) ([]any, *wrong) {
	if in.query.Get("startTime") == "" && in.query.Get("endTime") == "" {
		return []any{thing{"effectiveTime": time.Now().UTC().Format(time.RFC3339), "pricingExpression": expression(1)}}, nil
	}
	from, fromErr := time.Parse(time.RFC3339, in.query.Get("startTime"))
	to, toErr := time.Parse(time.RFC3339, in.query.Get("endTime"))
	there, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic(err)
	}
	last := to.Add(-1).In(there)
	if fromErr != nil || toErr != nil || !from.Before(to) || to.After(time.Now()) || from.In(there).Month() != last.Month() || from.In(there).Year() != last.Year() {
		return nil, &wrong{400, "badRequest", "Request contains an invalid argument.", 0}
	}
	fell := time.Now().Add(-halved)
	var all []any
	if from.Before(fell) {
		all = append(all, thing{"effectiveTime": from.UTC().Format(time.RFC3339), "pricingExpression": expression(2)})
	}
	if fell.Before(to) {
		at := fell
		if at.Before(from) {
			at = from
		}
		all = append(all, thing{"effectiveTime": at.UTC().Format(time.RFC3339Nano), "pricingExpression": expression(1)})
	}
	return all, nil
}

func (f *fake) skus(in request) (any, *wrong) {
	if in.path["parent"] != "services/6F81-5844-456A" {
		return nil, notFound("%s", in.path["parent"])
	}
	some, after := cut(f, in, entries)
	if after == "" && len(some) > 0 {
		after = strconv.Itoa(len(entries)) // Google leaves out an empty list, so the last page is {}
	} else if len(some) == 0 {
		return thing{}, nil
	}
	var all []any
	for _, e := range some {
		family := "Compute"
		if strings.Contains(e.about, "PD") || strings.Contains(e.about, "disk") {
			family = "Storage"
		}
		info, wrong := pricingInfo(in, func(times int) thing {
			rate := thing{"unitPrice": thing{"currencyCode": "USD", "units": "0", "nanos": e.nanos * times}}
			return thing{"usageUnit": e.unit, "tieredRates": []any{rate}}
		})
		if wrong != nil {
			return nil, wrong
		}
		all = append(all, thing{
			"description": e.about, "serviceRegions": strings.Fields(e.regions), "category": thing{"resourceFamily": family, "usageType": e.bought},
			"pricingInfo": info,
		})
	}
	return thing{"skus": all, "nextPageToken": after}, nil
}
