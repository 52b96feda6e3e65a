package openstack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// allowed are the keys of a server in Nova's schema, and the versions that added them.
var allowed = map[string]int{
	"name": 1, "imageRef": 1, "flavorRef": 1, "availability_zone": 1, "metadata": 1, "user_data": 1, "key_name": 1, "config_drive": 1, "networks": 1,
	"security_groups": 1, "block_device_mapping_v2": 1, "OS-DCF:diskConfig": 1, "tags": 52,
}

func (f *fake) createServer(r *http.Request, version int) *answer {
	var request map[string]any
	json.NewDecoder(r.Body).Decode(&request)
	body, _ := request["server"].(map[string]any)
	if wrong := f.checkRequest(body, version); wrong != nil {
		return wrong
	}
	i := slices.IndexFunc(f.flavors, func(x fakeFlavor) bool { return x.id == body["flavorRef"] })
	if i < 0 {
		return wrong(http.StatusBadRequest, "Invalid flavorRef provided.")
	}
	s := &fakeServer{flavor: f.flavors[i], body: request, created: time.Now().UTC().Truncate(time.Second), metadata: map[string]string{}}
	if over := f.overQuota(s.flavor); over != nil {
		return over
	}
	f.last++
	s.id = fmt.Sprintf("%08d-0000-4000-8000-000000000000", f.last)
	s.body = body
	s.zone, _ = body["availability_zone"].(string)
	if hints, has := request["os:scheduler_hints"]; has {
		s.body["os:scheduler_hints"] = hints
	}
	for k, v := range body["metadata"].(map[string]any) {
		s.metadata[k] = v.(string)
	}
	f.schedule(s)
	f.servers[s.id] = s
	if devices, _ := body["block_device_mapping_v2"].([]any); len(devices) > 0 {
		f.attach(s.id, int(devices[0].(map[string]any)["volume_size"].(float64)), "true")
	}
	return &answer{status: http.StatusAccepted, body: map[string]any{"server": map[string]any{"id": s.id, "adminPass": "x"}}}
}

// checkRequest returns the errors that Nova finds in a request before anything else.
func (f *fake) checkRequest(body map[string]any, version int) *answer {
	for key := range body {
		if since, known := allowed[key]; !known || version < since {
			return wrong(http.StatusBadRequest, "Invalid input for field/attribute server. Additional properties are not allowed (%q was unexpected)", key)
		}
	}
	networks, has := body["networks"]
	switch word, isWord := networks.(string); {
	case !has && version >= 37, isWord && version < 37:
		return wrong(http.StatusBadRequest, "Invalid input for field/attribute networks.")
	case (word == "auto" || !has) && f.networks > 1:
		return wrong(http.StatusConflict, "Multiple possible networks found, use a Network ID to be more specific.")
	}
	if zone, has := body["availability_zone"].(string); has && !slices.Contains(f.zones, zone) {
		return wrong(http.StatusBadRequest, "The requested availability zone is not available")
	}
	if ref := body["imageRef"]; ref != "" && !slices.ContainsFunc(f.images, func(i map[string]any) bool { return i["id"] == ref }) {
		return wrong(http.StatusBadRequest, "Invalid imageRef provided.")
	}
	return nil
}

// overQuota returns Nova's refusal if a quota is exceeded. Servers in the state ERROR count, too.
func (f *fake) overQuota(x fakeFlavor) *answer {
	n, cores := 0, 0
	for _, s := range f.servers {
		if !f.gone(s) {
			n++
			cores += s.flavor.vcpus
		}
	}
	switch {
	case n+1 > f.instances:
		return wrong(http.StatusForbidden, "Quota exceeded for instances: Requested 1, but already used %d of %d instances", n, f.instances)
	case cores+x.vcpus > f.cores:
		return wrong(http.StatusForbidden, "Quota exceeded for cores: Requested %d, but already used %d of %d cores", x.vcpus, cores, f.cores)
	}
	return nil
}

// schedule finds a host, or the reason why there is none.
func (f *fake) schedule(s *fakeServer) {
	room, ends := f.room[s.zone]
	switch {
	case f.faults[s.flavor.name] != "":
		s.fault = f.faults[s.flavor.name]
	case ends && room < s.flavor.vcpus:
		s.fault = "No valid host was found. There are not enough hosts available."
	case ends:
		f.room[s.zone] -= s.flavor.vcpus
	}
}

func (f *fake) building(s *fakeServer) bool { return time.Since(s.created) < f.buildTime }

func (f *fake) gone(s *fakeServer) bool {
	return !s.ended.IsZero() && time.Since(s.ended) >= f.endTime
}

// show returns a server as Nova lists it: without its fault.
func (f *fake) show(s *fakeServer, version int) map[string]any {
	if f.down[s.id] {
		return map[string]any{"id": s.id, "status": "UNKNOWN", "tenant_id": "p", "created": s.created.Format(time.RFC3339)}
	}
	status, task, power := "ACTIVE", any(nil), 1
	launched := any(s.created.Add(f.buildTime).Format("2006-01-02T15:04:05.000000"))
	addresses := map[string]any{
		"net": []any{
			map[string]any{"addr": "fd00::7", "version": 6, "OS-EXT-IPS:type": "fixed"},
			map[string]any{"addr": "10.0.0.7", "version": 4, "OS-EXT-IPS:type": "fixed"},
			map[string]any{"addr": "192.0.2.7", "version": 4, "OS-EXT-IPS:type": "floating"},
		},
	}
	switch {
	case s.fault != "" && !s.launched:
		status, power, launched, addresses = "ERROR", 0, nil, map[string]any{}
	case f.building(s):
		status, task, power, launched, addresses = "BUILD", "spawning", 0, nil, map[string]any{}
	case s.fault != "":
		status = "ERROR"
	case s.stopped:
		status, power = "SHUTOFF", 4
	}
	if !s.ended.IsZero() {
		task = "deleting"
	}
	shown := map[string]any{
		"id": s.id, "name": s.body["name"], "status": status, "metadata": s.metadata, "created": s.created.Format(time.RFC3339), "updated": s.created.Format(time.RFC3339),
		"addresses": addresses, "OS-EXT-AZ:availability_zone": s.zone, "OS-EXT-STS:task_state": task, "OS-EXT-STS:power_state": power,
		"OS-SRV-USG:launched_at": launched, "flavor": map[string]any{"id": s.flavor.id},
		"os-extended-volumes:volumes_attached": f.attached(s.id),
	}
	if version >= 47 {
		shown["flavor"] = map[string]any{"original_name": s.flavor.name, "vcpus": s.flavor.vcpus}
	}
	return shown
}

// deleteServer removes a server without a host at once.
func (f *fake) deleteServer(s *fakeServer) *answer {
	if s.ended.IsZero() {
		s.ended = time.Now()
		if _, ends := f.room[s.zone]; ends && s.fault == "" {
			f.room[s.zone] += s.flavor.vcpus
		}
	}
	if s.fault != "" && !s.launched {
		delete(f.servers, s.id)
	}
	return &answer{status: http.StatusNoContent}
}

// settled returns Nova's refusal to change a server that is still being created or deleted. A server without a host is
// not found.
func (f *fake) settled(doing string, s *fakeServer) *answer {
	if time.Since(s.created) < f.buildTime/2 {
		return wrong(http.StatusNotFound, "Instance %s could not be found.", s.id)
	}
	if !s.ended.IsZero() || f.building(s) {
		return wrong(http.StatusConflict, "Cannot '%s' instance %s while it is in task_state spawning", doing, s.id)
	}
	return nil
}

func (f *fake) setMetadata(r *http.Request, s *fakeServer) *answer {
	if refused := f.settled("update_instance_metadata", s); refused != nil {
		return refused
	}
	var request struct {
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return wrong(http.StatusBadRequest, "%v", err)
	}
	s.metadata = request.Metadata
	return ok(request)
}

func (f *fake) act(r *http.Request, s *fakeServer) *answer {
	var action map[string]any
	json.NewDecoder(r.Body).Decode(&action)
	_, stop := action["os-stop"]
	if refused := f.settled("stop", s); refused != nil {
		return refused
	}
	if s.stopped == stop {
		return wrong(http.StatusConflict, "Cannot 'stop' instance %s while it is in vm_state stopped", s.id)
	}
	s.stopped = stop
	return &answer{status: http.StatusAccepted}
}
