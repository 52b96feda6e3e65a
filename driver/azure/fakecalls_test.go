package azure

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
)

var noSuchVM = wrong{404, "ResourceNotFound", "the resource was not found", ""}

// at returns the value at a path in JSON, such as properties.priority or zones.0; nil if there is none.
func at(value any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch in := value.(type) {
		case object:
			value = in[key]
		case []any:
			n, _ := strconv.Atoi(key)
			if value = nil; n < len(in) {
				value = in[n]
			}
		default:
			return nil
		}
	}
	return value
}

// body is the JSON of a request.
func body(q *http.Request) (said object) {
	json.NewDecoder(q.Body).Decode(&said)
	return said
}

func (r *region) create(name string, q *http.Request) (int, any, error) {
	if _, there := r.vms[name]; there {
		if q.Header.Get("If-None-Match") != "*" {
			return 0, nil, wrong{409, "PropertyChangeNotAllowed", "changing it is not allowed", ""}
		}
		return 0, nil, wrong{412, "PreconditionFailed", "the precondition was not met", ""}
	}
	vm := body(q)
	size, _ := at(vm, "properties.hardwareProfile.vmSize").(string)
	zone, _ := at(vm, "zones.0").(string)
	k, known := r.kind(size)
	if !known {
		return 0, nil, wrong{400, "InvalidParameter", "the value of vmSize is invalid", ""}
	}
	m := &held{name: name, asked: vm, created: time.Now(), cores: int64(k.cores), group: quotaGroup(k.family, marketOf(vm))}
	if w, lacking := r.lacks.Of(k.name, zone, string(marketOf(vm))); lacking {
		return 0, nil, w
	}
	if w := r.count(m); w != nil {
		return 0, nil, w
	}
	m.failed, _ = r.fails.Of(k.name, zone, string(marketOf(vm)))
	r.vms[name] = m
	r.addParts(m)
	return http.StatusCreated, m.model(r), nil
}

// count refuses an instance that would exceed its quota.
func (r *region) count(m *held) error {
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

// addParts creates an instance's parts.
func (r *region) addParts(m *held) {
	add := func(kind, name string, tags, marked any) {
		r.parts[kind+" "+name] = &part{kind: kind, name: name, owner: m.name, tags: tags, made: time.Now(), stays: at(marked, "deleteOption") != "Delete"}
	}
	add(leftoverDisk, m.name+"_OsDisk", m.asked["tags"], at(m.asked, "properties.storageProfile.osDisk"))
	data, _ := at(m.asked, "properties.storageProfile.dataDisks").([]any)
	for i, d := range data {
		add(leftoverDisk, fmt.Sprint(m.name, "_disk", i), m.asked["tags"], d)
	}
	nics, _ := at(m.asked, "properties.networkProfile.networkInterfaceConfigurations").([]any)
	for _, n := range nics {
		add(leftoverInterface, m.name+"-nic", at(n, "tags"), at(n, "properties"))
		if a := at(n, "properties.ipConfigurations.0.properties.publicIPAddressConfiguration"); a != nil {
			add(leftoverAddress, m.name+"-ip", at(a, "tags"), at(a, "properties"))
		}
	}
}

func marketOf(vm object) drover.Market {
	if at(vm, "properties.priority") == "Spot" {
		return drover.Spot
	}
	return drover.OnDemand
}

// with calls a function for an existing instance.
func (r *region) with(name string, status int, do func(*held)) (int, any, error) {
	m, ok := r.vms[name]
	if !ok {
		return 0, nil, noSuchVM
	}
	do(m)
	return status, nil, nil
}

func (r *region) tag(name string, q *http.Request) (int, any, error) {
	if _, _, err := r.with(name, http.StatusOK, func(m *held) { m.asked["tags"] = body(q)["tags"] }); err != nil {
		return 0, nil, err
	}
	if !r.vms[name].ended.IsZero() {
		return 0, nil, wrong{409, "OperationNotAllowed", "the VM is marked for deletion", ""}
	}
	return http.StatusOK, r.vms[name].model(r), nil
}

func (r *region) destroy(name string, _ *http.Request) (int, any, error) {
	if _, _, err := r.with(name, http.StatusAccepted, func(m *held) {
		if m.ended.IsZero() {
			m.ended = time.Now()
		}
	}); err != nil {
		return http.StatusNoContent, nil, nil
	}
	return http.StatusAccepted, nil, nil
}

func (r *region) deallocate(name string, _ *http.Request) (int, any, error) {
	return r.with(name, http.StatusAccepted, func(m *held) { m.stopped = true })
}

func (r *region) start(name string, _ *http.Request) (int, any, error) {
	return r.with(name, http.StatusAccepted, func(m *held) { m.stopped = false })
}

// model returns an instance as a list shows it: without its user data and its state.
func (m *held) model(r *region) (vm object) {
	text, _ := json.Marshal(m.asked)
	json.Unmarshal(text, &vm)
	p := vm["properties"].(object)
	delete(p["osProfile"].(object), "customData")
	p["timeCreated"], p["provisioningState"] = m.created, m.provisioning(r)
	vm["id"], vm["name"] = resourceID("Microsoft.Compute/virtualMachines", m.name), m.name
	return vm
}

func (m *held) provisioning(r *region) string {
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

// state returns an instance as the list of states shows it, with nothing else.
func (m *held) state(r *region) object {
	code, message := "ProvisioningState/"+strings.ToLower(m.provisioning(r)), ""
	if code == "ProvisioningState/failed" {
		code, message = code+"/"+m.failed.code, m.failed.message
	}
	all := []object{{"code": code, "message": message}}
	switch {
	case m.stopped:
		all = append(all, object{"code": "PowerState/deallocated"})
	case code == "ProvisioningState/succeeded":
		all = append(all, object{"code": "PowerState/running"})
	}
	return object{
		"id": strings.ToUpper(resourceID("Microsoft.Compute/virtualMachines", m.name)), "name": m.name, "location": m.asked["location"],
		"properties": object{"instanceView": object{"statuses": all}},
	}
}

func (r *region) get(name string, _ *http.Request) (int, any, error) {
	m, ok := r.vms[name]
	if !ok {
		return 0, nil, noSuchVM
	}
	vm := m.model(r)
	vm["properties"].(object)["instanceView"] = at(m.state(r), "properties.instanceView")
	return http.StatusOK, vm, nil
}

// shown returns the instances that a list contains at the moment.
func (r *region) shown(as func(*held, *region) object) (int, any, error) {
	var all []object
	for _, name := range slices.Sorted(maps.Keys(r.vms)) {
		if m := r.vms[name]; !time.Now().Before(m.created.Add(r.lag)) {
			all = append(all, as(m, r))
		}
	}
	return paged(r, all)
}

func (r *region) list(string, *http.Request) (int, any, error) { return r.shown((*held).model) }

func (r *region) states(string, *http.Request) (int, any, error) { return r.shown((*held).state) }

// of lists the parts of a kind.
func (r *region) of(kind string) (all []*part) {
	for _, key := range slices.Sorted(maps.Keys(r.parts)) {
		if p := r.parts[key]; p.kind == kind {
			all = append(all, p)
		}
	}
	return all
}

func (r *region) disks(string, *http.Request) (int, any, error) {
	var all []object
	for _, p := range r.of(leftoverDisk) {
		d := object{"name": p.name, "tags": p.tags, "properties": object{"timeCreated": p.made, "diskState": "Unattached"}}
		if p.owner != "" {
			d["managedBy"] = resourceID("Microsoft.Compute/virtualMachines", p.owner)
			d["properties"].(object)["diskState"] = "Attached"
		}
		all = append(all, d)
	}
	return paged(r, all)
}

func (r *region) interfaces(string, *http.Request) (int, any, error) {
	var all []object
	for i, p := range r.of(leftoverInterface) {
		properties := object{"provisioningState": "Succeeded"}
		if p.owner != "" {
			at := object{"privateIPAddress": fmt.Sprintf("10.0.%d.%d", i/250, i%250+4)}
			if _, public := r.parts[leftoverAddress+" "+p.owner+"-ip"]; public {
				at["publicIPAddress"] = object{"id": resourceID("Microsoft.Network/publicIPAddresses", p.owner+"-ip")}
			}
			properties["virtualMachine"] = object{"id": strings.ToLower(resourceID("Microsoft.Compute/virtualMachines", p.owner))}
			properties["ipConfigurations"] = []object{{"name": "one", "properties": at}}
		}
		all = append(all, object{"name": p.name, "tags": p.tags, "properties": properties})
	}
	return paged(r, all)
}

func (r *region) addresses(string, *http.Request) (int, any, error) {
	var all []object
	for i, p := range r.of(leftoverAddress) {
		properties := object{"ipAddress": fmt.Sprintf("192.0.2.%d", i+1)}
		if p.owner != "" {
			properties["ipConfiguration"] = object{"id": "of " + p.owner}
		}
		id := strings.ToUpper(resourceID("Microsoft.Network/publicIPAddresses", p.name))
		all = append(all, object{"id": id, "name": p.name, "tags": p.tags, "properties": properties})
	}
	return paged(r, all)
}

// remove removes a part that nothing owns.
func (r *region) remove(kind, name string, inUse wrong) (int, any, error) {
	p := r.parts[kind+" "+name]
	switch {
	case p == nil:
		return 0, nil, noSuchVM
	case p.owner != "":
		return 0, nil, inUse
	}
	delete(r.parts, kind+" "+name)
	return http.StatusAccepted, nil, nil
}

func (r *region) deleteDisk(name string, _ *http.Request) (int, any, error) {
	return r.remove(leftoverDisk, name, wrong{409, "OperationNotAllowed", "the disk is attached to a VM", ""})
}

func (r *region) deleteInterface(name string, _ *http.Request) (int, any, error) {
	return r.remove(leftoverInterface, name, wrong{400, "NicInUse", "the interface is used", ""})
}

func (r *region) deleteAddress(name string, _ *http.Request) (int, any, error) {
	return r.remove(leftoverAddress, name, wrong{400, "PublicIPAddressCannotBeDeleted", "the address is used", ""})
}

func (r *region) listImages(string, *http.Request) (int, any, error) { return paged(r, r.images) }

func (r *region) skus(string, *http.Request) (int, any, error) {
	all := []object{{"name": "Premium_LRS", "resourceType": "disks"}}
	for _, k := range r.kinds {
		all = append(all, k.sku())
	}
	return paged(r, all)
}

func (k kind) sku() object {
	var has, bars []object
	for name, value := range map[string]string{
		"vCPUs": fmt.Sprint(k.cores), "MemoryGB": fmt.Sprint(k.gib), "CpuArchitectureType": k.arch, "HyperVGenerations": k.generations,
		"LowPriorityCapable": map[bool]string{true: "True", false: "False"}[k.spot],
	} {
		has = append(has, object{"name": name, "value": value})
	}
	if k.gpus > 0 {
		has = append(has, object{"name": "GPUs", "value": fmt.Sprint(k.gpus)})
	}
	if k.sealed {
		has = append(has, object{"name": "ConfidentialComputingType", "value": "SNP"})
	}
	if k.barred {
		bars = append(bars, object{"type": "Location"})
	}
	if k.barredIn != nil {
		bars = append(bars, object{"type": "Zone", "restrictionInfo": object{"zones": k.barredIn}})
	}
	return object{
		"name": k.name, "family": k.family, "resourceType": "virtualMachines", "locations": []string{"westeurope"}, "capabilities": has, "restrictions": bars,
		"locationInfo": []object{{"location": "WestEurope", "zones": k.zones}},
	}
}

// row returns a row of Azure Resource Graph: a type's eviction rate, or its prices, each with its date.
func row(name, evictions string, prices ...string) map[string]any {
	var steps []any
	for _, p := range prices {
		price, from, _ := strings.Cut(p, " ")
		steps = append(steps, map[string]any{"priceUSD": json.Number(price), "effectiveDate": from})
	}
	return map[string]any{"id": name, "name": name, "evictions": evictions, "prices": steps}
}

func (r *region) query(_ string, q *http.Request) (int, any, error) {
	var asked struct {
		Query         string
		Subscriptions []string
		Options       struct {
			ResultFormat string
			SkipToken    string `json:"$skipToken"`
		}
	}
	if err := json.NewDecoder(q.Body).Decode(&asked); err != nil || asked.Options.ResultFormat != "objectArray" {
		return 0, nil, wrong{400, "BadRequest", fmt.Sprintf("%+v is not a query: %v", asked, err), ""}
	}
	all := r.spots
	if len(asked.Subscriptions) > 0 || !strings.Contains(asked.Query, "location =~ 'westeurope'") {
		all = nil
	}
	r.skip, _ = strconv.Atoi(asked.Options.SkipToken)
	r.next = strconv.Itoa
	page, next := cut(r, all)
	return http.StatusOK, object{
		"count": len(page), "totalRecords": len(all), "data": page, "$skipToken": next, "resultTruncated": strconv.FormatBool(r.cutShort),
	}, nil
}

func (r *region) usages(string, *http.Request) (int, any, error) {
	var all []object
	for _, name := range slices.Sorted(maps.Keys(r.cores)) {
		all = append(all, object{"name": object{"value": strings.ToUpper(name)}, "limit": r.cores[name], "currentValue": 0, "unit": "Count"})
	}
	return paged(r, all)
}
