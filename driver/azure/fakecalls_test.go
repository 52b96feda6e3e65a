package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"drover"
	"drover/driver/kit"
)

var noSuchVM = wrong{404, "ResourceNotFound", "the resource was not found", ""}

// accept answers a call that goes on by itself: accepted, or not.
func accept[T any](w error, status int, out T) (reply azfake.PollerResponder[T], failed azfake.ErrorResponder) {
	if w != nil {
		failed.SetError(w)
		return reply, failed
	}
	reply.SetTerminalResponse(status, out, nil)
	return reply, failed
}

func (r *region) create(_ context.Context, _, name string, vm armcompute.VirtualMachine, o *armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientCreateOrUpdateResponse], azfake.ErrorResponder) {
	return accept(r.made(name, vm, o), http.StatusCreated, armcompute.VirtualMachinesClientCreateOrUpdateResponse{VirtualMachine: vm})
}

func (r *region) made(name string, vm armcompute.VirtualMachine, o *armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions) error {
	if _, there := r.vms[name]; there {
		if o == nil || kit.Value(o.IfNoneMatch) != "*" {
			return wrong{409, "PropertyChangeNotAllowed", "changing it is not allowed", ""}
		}
		return wrong{412, "PreconditionFailed", "the precondition was not met", ""}
	}
	k, known := r.kind(string(kit.Value(vm.Properties.HardwareProfile.VMSize)))
	zone := ""
	if len(vm.Zones) > 0 {
		zone = *vm.Zones[0]
	}
	if !known {
		return wrong{400, "InvalidParameter", "the value of vmSize is invalid", ""}
	}
	m := &machine{name: name, asked: vm, created: time.Now(), cores: int64(k.cores), group: quotaGroup(k.family, marketOf(vm))}
	if w, lacking := r.lacks.Of(k.name, zone, string(marketOf(vm))); lacking {
		return w
	}
	if w := r.count(m); w != nil {
		return w
	}
	m.failed, _ = r.fails.Of(k.name, zone, string(marketOf(vm)))
	r.vms[name] = m
	r.addParts(m)
	return nil
}

// count refuses what would go beyond its quota.
func (r *region) count(m *machine) error {
	used := m.cores
	for _, other := range r.vms {
		if other.group == m.group && other.ended.IsZero() {
			used += other.cores
		}
	}
	if limit, ok := r.cores[m.group]; ok && used > limit {
		return wrong{409, "OperationNotAllowed", fmt.Sprintf("it would exceed the approved %s Cores quota of %d", m.group, limit), ""}
	}
	return nil
}

// addParts makes what is made with an instance.
func (r *region) addParts(m *machine) {
	p, now := m.asked.Properties, time.Now()
	add := func(kind, name string, tags map[string]*string, goes bool) {
		r.parts[kind+" "+name] = &part{kind: kind, name: name, owner: m.name, tags: tags, made: now, stays: !goes}
	}
	add(leftoverDisk, m.name+"_OsDisk", m.asked.Tags, kit.Value(p.StorageProfile.OSDisk.DeleteOption) == armcompute.DiskDeleteOptionTypesDelete)
	for i, d := range p.StorageProfile.DataDisks {
		add(leftoverDisk, fmt.Sprint(m.name, "_disk", i), m.asked.Tags, kit.Value(d.DeleteOption) == armcompute.DiskDeleteOptionTypesDelete)
	}
	for _, n := range p.NetworkProfile.NetworkInterfaceConfigurations {
		add(leftoverInterface, m.name+"-nic", n.Tags, kit.Value(n.Properties.DeleteOption) == armcompute.DeleteOptionsDelete)
		if a := n.Properties.IPConfigurations[0].Properties.PublicIPAddressConfiguration; a != nil {
			add(leftoverAddress, m.name+"-ip", a.Tags, kit.Value(a.Properties.DeleteOption) == armcompute.DeleteOptionsDelete)
		}
	}
}

func marketOf(vm armcompute.VirtualMachine) drover.Market {
	if kit.Value(vm.Properties.Priority) == armcompute.VirtualMachinePriorityTypesSpot {
		return drover.Spot
	}
	return drover.OnDemand
}

// with does something with an instance that is there.
func (r *region) with(name string, do func(*machine)) error {
	m, ok := r.vms[name]
	if !ok {
		return noSuchVM
	}
	do(m)
	return nil
}

func (r *region) tag(_ context.Context, _, name string, in armcompute.VirtualMachineUpdate, _ *armcompute.VirtualMachinesClientBeginUpdateOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientUpdateResponse], azfake.ErrorResponder) {
	var err error
	if gone := r.with(name, func(m *machine) {
		if m.asked.Tags = in.Tags; !m.ended.IsZero() {
			err = wrong{409, "OperationNotAllowed", "the VM is marked for deletion", ""}
		}
	}); gone != nil {
		err = gone
	}
	return accept(err, http.StatusOK, armcompute.VirtualMachinesClientUpdateResponse{})
}

func (r *region) destroy(_ context.Context, _, name string, _ *armcompute.VirtualMachinesClientBeginDeleteOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientDeleteResponse], azfake.ErrorResponder) {
	status := http.StatusAccepted
	if r.with(name, func(m *machine) {
		if m.ended.IsZero() {
			m.ended = time.Now()
		}
	}) != nil {
		status = http.StatusNoContent
	}
	return accept(nil, status, armcompute.VirtualMachinesClientDeleteResponse{})
}

func (r *region) deallocate(_ context.Context, _, name string, _ *armcompute.VirtualMachinesClientBeginDeallocateOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientDeallocateResponse], azfake.ErrorResponder) {
	err := r.with(name, func(m *machine) { m.stopped = true })
	return accept(err, http.StatusAccepted, armcompute.VirtualMachinesClientDeallocateResponse{})
}

func (r *region) start(_ context.Context, _, name string, _ *armcompute.VirtualMachinesClientBeginStartOptions) (azfake.PollerResponder[armcompute.VirtualMachinesClientStartResponse], azfake.ErrorResponder) {
	err := r.with(name, func(m *machine) { m.stopped = false })
	return accept(err, http.StatusAccepted, armcompute.VirtualMachinesClientStartResponse{})
}

// model is an instance as a list shows it: without what it was given to run, and without its state.
func (m *machine) model(r *region) armcompute.VirtualMachine {
	p := *m.asked.Properties
	system := *p.OSProfile
	system.CustomData = nil
	p.OSProfile, p.TimeCreated, p.ProvisioningState = &system, &m.created, to.Ptr(m.provisioning(r))
	return armcompute.VirtualMachine{ID: to.Ptr(resourceID("Microsoft.Compute/virtualMachines", m.name)), Name: &m.name, Location: m.asked.Location, Zones: m.asked.Zones, Tags: m.asked.Tags, Properties: &p}
}

func (m *machine) provisioning(r *region) string {
	switch {
	case !m.ended.IsZero():
		return "Deleting"
	case time.Now().Before(m.created.Add(r.makeTime)):
		return "Creating"
	case m.failed.code != "":
		return "Failed"
	}
	return "Succeeded"
}

// state is an instance as the list of states shows it, with nothing else.
func (m *machine) state(r *region) armcompute.VirtualMachine {
	code, message := "ProvisioningState/"+strings.ToLower(m.provisioning(r)), ""
	if code == "ProvisioningState/failed" {
		code, message = code+"/"+m.failed.code, m.failed.message
	}
	all := []*armcompute.InstanceViewStatus{{Code: &code, Message: &message}}
	switch {
	case m.stopped:
		all = append(all, &armcompute.InstanceViewStatus{Code: to.Ptr("PowerState/deallocated")})
	case code == "ProvisioningState/succeeded":
		all = append(all, &armcompute.InstanceViewStatus{Code: to.Ptr("PowerState/running")})
	}
	return armcompute.VirtualMachine{
		ID: to.Ptr(strings.ToUpper(resourceID("Microsoft.Compute/virtualMachines", m.name))), Name: &m.name, Location: m.asked.Location,
		Properties: &armcompute.VirtualMachineProperties{InstanceView: &armcompute.VirtualMachineInstanceView{Statuses: all}},
	}
}

func (r *region) get(_ context.Context, _, name string, o *armcompute.VirtualMachinesClientGetOptions) (reply azfake.Responder[armcompute.VirtualMachinesClientGetResponse], failed azfake.ErrorResponder) {
	m, ok := r.vms[name]
	if !ok {
		failed.SetError(noSuchVM)
		return reply, failed
	}
	vm := m.model(r)
	if o != nil && kit.Value(o.Expand) == armcompute.InstanceViewTypesInstanceView {
		vm.Properties.InstanceView = m.state(r).Properties.InstanceView
	}
	reply.SetResponse(http.StatusOK, armcompute.VirtualMachinesClientGetResponse{VirtualMachine: vm}, nil)
	return reply, failed
}

// shown are the instances that a list has by now.
func (r *region) shown(as func(*machine) armcompute.VirtualMachine) (all []armcompute.VirtualMachine) {
	for _, name := range slices.Sorted(maps.Keys(r.vms)) {
		if m := r.vms[name]; !time.Now().Before(m.created.Add(r.lag)) {
			all = append(all, as(m))
		}
	}
	return all
}

func (r *region) list(string, *armcompute.VirtualMachinesClientListOptions) (reply azfake.PagerResponder[armcompute.VirtualMachinesClientListResponse]) {
	page, next := cut(r, r.shown(func(m *machine) armcompute.VirtualMachine { return m.model(r) }))
	reply.AddPage(http.StatusOK, armcompute.VirtualMachinesClientListResponse{VirtualMachineListResult: armcompute.VirtualMachineListResult{Value: page, NextLink: next}}, nil)
	return reply
}

func (r *region) states(o *armcompute.VirtualMachinesClientListAllOptions) (reply azfake.PagerResponder[armcompute.VirtualMachinesClientListAllResponse]) {
	if o == nil || kit.Value(o.StatusOnly) != "true" {
		reply.AddError(wrong{400, "BadRequest", "the fake lists states only", ""})
		return reply
	}
	page, next := cut(r, r.shown(func(m *machine) armcompute.VirtualMachine { return m.state(r) }))
	reply.AddPage(http.StatusOK, armcompute.VirtualMachinesClientListAllResponse{VirtualMachineListResult: armcompute.VirtualMachineListResult{Value: page, NextLink: next}}, nil)
	return reply
}

// of lists the parts of a kind.
func (r *region) of(kind string) (all []*part) {
	for _, key := range slices.Sorted(maps.Keys(r.parts)) {
		if p := r.parts[key]; p.kind == kind {
			all = append(all, p)
		}
	}
	return all
}

func (r *region) disks(string, *armcompute.DisksClientListByResourceGroupOptions) (reply azfake.PagerResponder[armcompute.DisksClientListByResourceGroupResponse]) {
	var all []armcompute.Disk
	for _, p := range r.of(leftoverDisk) {
		d := armcompute.Disk{Name: &p.name, Tags: p.tags, Properties: &armcompute.DiskProperties{TimeCreated: &p.made, DiskState: to.Ptr(armcompute.DiskStateUnattached)}}
		if p.owner != "" {
			d.ManagedBy, d.Properties.DiskState = to.Ptr(resourceID("Microsoft.Compute/virtualMachines", p.owner)), to.Ptr(armcompute.DiskStateAttached)
		}
		all = append(all, d)
	}
	page, next := cut(r, all)
	reply.AddPage(http.StatusOK, armcompute.DisksClientListByResourceGroupResponse{DiskList: armcompute.DiskList{Value: page, NextLink: next}}, nil)
	return reply
}

func (r *region) interfaces(*http.Request) (any, error) {
	var all []map[string]any
	for i, p := range r.of(leftoverInterface) {
		properties := map[string]any{"provisioningState": "Succeeded"}
		if p.owner != "" {
			at := map[string]any{"privateIPAddress": fmt.Sprintf("10.0.%d.%d", i/250, i%250+4)}
			if _, public := r.parts[leftoverAddress+" "+p.owner+"-ip"]; public {
				at["publicIPAddress"] = map[string]string{"id": resourceID("Microsoft.Network/publicIPAddresses", p.owner+"-ip")}
			}
			properties["virtualMachine"] = map[string]string{"id": strings.ToLower(resourceID("Microsoft.Compute/virtualMachines", p.owner))}
			properties["ipConfigurations"] = []any{map[string]any{"name": "one", "properties": at}}
		}
		all = append(all, map[string]any{"name": p.name, "tags": p.tags, "properties": properties})
	}
	page, next := cut(r, all)
	return map[string]any{"value": page, "nextLink": next}, nil
}

func (r *region) addresses(*http.Request) (any, error) {
	var all []map[string]any
	for i, p := range r.of(leftoverAddress) {
		properties := map[string]any{"ipAddress": fmt.Sprintf("192.0.2.%d", i+1)}
		if p.owner != "" {
			properties["ipConfiguration"] = map[string]string{"id": "of " + p.owner}
		}
		id := strings.ToUpper(resourceID("Microsoft.Network/publicIPAddresses", p.name))
		all = append(all, map[string]any{"id": id, "name": p.name, "tags": p.tags, "properties": properties})
	}
	page, next := cut(r, all)
	return map[string]any{"value": page, "nextLink": next}, nil
}

// remove takes a part away that nothing owns.
func (r *region) remove(kind, name string, inUse wrong) error {
	p := r.parts[kind+" "+name]
	switch {
	case p == nil:
		return noSuchVM
	case p.owner != "":
		return inUse
	}
	delete(r.parts, kind+" "+name)
	return nil
}

func (r *region) deleteDisk(_ context.Context, _, name string, _ *armcompute.DisksClientBeginDeleteOptions) (azfake.PollerResponder[armcompute.DisksClientDeleteResponse], azfake.ErrorResponder) {
	err := r.remove(leftoverDisk, name, wrong{409, "OperationNotAllowed", "the disk is attached to a VM", ""})
	return accept(err, http.StatusAccepted, armcompute.DisksClientDeleteResponse{})
}

func (r *region) deleteInterface(q *http.Request) (any, error) {
	return nil, r.remove(leftoverInterface, path.Base(q.URL.Path), wrong{400, "NicInUse", "the interface is used", ""})
}

func (r *region) deleteAddress(q *http.Request) (any, error) {
	return nil, r.remove(leftoverAddress, path.Base(q.URL.Path), wrong{400, "PublicIPAddressCannotBeDeleted", "the address is used", ""})
}

func (r *region) listImages(string, *armcompute.ImagesClientListByResourceGroupOptions) (reply azfake.PagerResponder[armcompute.ImagesClientListByResourceGroupResponse]) {
	var all []armcompute.Image
	for _, i := range r.images {
		all = append(all, *i)
	}
	page, next := cut(r, all)
	reply.AddPage(http.StatusOK, armcompute.ImagesClientListByResourceGroupResponse{ImageListResult: armcompute.ImageListResult{Value: page, NextLink: next}}, nil)
	return reply
}

func (r *region) skus(*armcompute.ResourceSKUsClientListOptions) (reply azfake.PagerResponder[armcompute.ResourceSKUsClientListResponse]) {
	all := []armcompute.ResourceSKU{{Name: to.Ptr("Premium_LRS"), ResourceType: to.Ptr("disks")}}
	for _, k := range r.kinds {
		all = append(all, k.sku())
	}
	page, next := cut(r, all)
	reply.AddPage(http.StatusOK, armcompute.ResourceSKUsClientListResponse{ResourceSKUsResult: armcompute.ResourceSKUsResult{Value: page, NextLink: next}}, nil)
	return reply
}

func (k kind) sku() armcompute.ResourceSKU {
	s := armcompute.ResourceSKU{
		Name: &k.name, Family: &k.family, ResourceType: to.Ptr("virtualMachines"), Locations: []*string{to.Ptr("westeurope")},
		LocationInfo: []*armcompute.ResourceSKULocationInfo{{Location: to.Ptr("WestEurope"), Zones: to.SliceOfPtrs(k.zones...)}},
	}
	for name, value := range map[string]string{
		"vCPUs": fmt.Sprint(k.cores), "MemoryGB": fmt.Sprint(k.gib), "CpuArchitectureType": k.arch, "HyperVGenerations": k.generations,
		"LowPriorityCapable": map[bool]string{true: "True", false: "False"}[k.spot],
	} {
		s.Capabilities = append(s.Capabilities, &armcompute.ResourceSKUCapabilities{Name: &name, Value: &value})
	}
	if k.gpus > 0 {
		s.Capabilities = append(s.Capabilities, &armcompute.ResourceSKUCapabilities{Name: to.Ptr("GPUs"), Value: to.Ptr(fmt.Sprint(k.gpus))})
	}
	if k.sealed {
		s.Capabilities = append(s.Capabilities, &armcompute.ResourceSKUCapabilities{Name: to.Ptr("ConfidentialComputingType"), Value: to.Ptr("SNP")})
	}
	if k.barred {
		s.Restrictions = append(s.Restrictions, &armcompute.ResourceSKURestrictions{Type: to.Ptr(armcompute.ResourceSKURestrictionsTypeLocation)})
	}
	if k.barredIn != nil {
		s.Restrictions = append(s.Restrictions, &armcompute.ResourceSKURestrictions{
			Type: to.Ptr(armcompute.ResourceSKURestrictionsTypeZone), RestrictionInfo: &armcompute.ResourceSKURestrictionInfo{Zones: to.SliceOfPtrs(k.barredIn...)},
		})
	}
	return s
}

// row is a row of Azure Resource Graph's: how often a type is taken back, or its prices, each with its date.
func row(name, evictions string, prices ...string) map[string]any {
	var steps []any
	for _, p := range prices {
		price, from, _ := strings.Cut(p, " ")
		steps = append(steps, map[string]any{"priceUSD": json.Number(price), "effectiveDate": from})
	}
	return map[string]any{"id": name, "name": name, "evictions": evictions, "prices": steps}
}

func (r *region) query(q *http.Request) (any, error) {
	var asked struct {
		Query         string
		Subscriptions []string
		Options       struct {
			ResultFormat string
			SkipToken    string `json:"$skipToken"`
		}
	}
	if err := json.NewDecoder(q.Body).Decode(&asked); err != nil || asked.Options.ResultFormat != "objectArray" {
		return nil, wrong{400, "BadRequest", fmt.Sprintf("%+v is no query: %v", asked, err), ""}
	}
	all := r.spots
	if len(asked.Subscriptions) > 0 || !strings.Contains(asked.Query, "location =~ 'westeurope'") {
		all = nil
	}
	r.skip, _ = strconv.Atoi(asked.Options.SkipToken)
	r.next = strconv.Itoa
	page, next := cut(r, all)
	return map[string]any{
		"count": len(page), "totalRecords": len(all), "data": page, "$skipToken": next, "resultTruncated": strconv.FormatBool(r.cutShort),
	}, nil
}

func (r *region) usages(string, *armcompute.UsageClientListOptions) (reply azfake.PagerResponder[armcompute.UsageClientListResponse]) {
	var all []armcompute.Usage
	for _, name := range slices.Sorted(maps.Keys(r.cores)) {
		all = append(all, armcompute.Usage{Name: &armcompute.UsageName{Value: to.Ptr(strings.ToUpper(name))}, Limit: to.Ptr(r.cores[name]), CurrentValue: to.Ptr(int32(0)), Unit: to.Ptr("Count")})
	}
	page, next := cut(r, all)
	reply.AddPage(http.StatusOK, armcompute.UsageClientListResponse{ListUsagesResult: armcompute.ListUsagesResult{Value: page, NextLink: next}}, nil)
	return reply
}
