package openstack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// fakeVolume is a volume of Cinder.
type fakeVolume struct {
	id, server string
	gib        int
	bootable   string
	wrong      bool      // in the state error_extending
	next       int       // the size while it grows; 0: it does not grow
	until      time.Time // when it will have grown
}

// attach creates a volume and attaches it to a server.
func (f *fake) attach(server string, gib int, bootable string) *fakeVolume {
	f.last++
	v := &fakeVolume{id: fmt.Sprintf("%08d-0000-4000-9000-000000000000", f.last), server: server, gib: gib, bootable: bootable}
	f.volumes[v.id] = v
	return v
}

// attached returns a server's volumes, as Nova lists them.
func (f *fake) attached(server string) []any {
	all := []any{}
	for id, v := range f.volumes {
		if v.server == server {
			all = append(all, map[string]any{"id": id})
		}
	}
	return all
}

// cinder answers for the volumes. Those of deleted servers are not found.
func (f *fake) cinder(r *http.Request, call string) *answer {
	version := 0
	fmt.Sscanf(r.Header.Get("OpenStack-API-Version"), "volume 3.%d", &version)
	if version > f.newestVolume {
		return wrong(http.StatusNotAcceptable, "Version 3.%d is not supported by the API. Minimum is 3.0 and maximum is 3.%d.", version, f.newestVolume)
	}
	ids := regexp.MustCompile(`[0-9a-f-]{36}`).FindAllString(r.URL.Path, -1)
	var v *fakeVolume
	if len(ids) > 0 {
		v = f.volumes[ids[len(ids)-1]]
	}
	if v == nil || f.servers[v.server] == nil || f.gone(f.servers[v.server]) {
		return wrong(http.StatusNotFound, "Volume could not be found.")
	}
	if v.next > 0 && !time.Now().Before(v.until) {
		v.gib, v.next = v.next, 0
	}
	switch call {
	case "GET volumes":
		return ok(map[string]any{"volume": map[string]any{"id": v.id, "size": v.gib, "status": f.volumeStatus(v), "bootable": v.bootable}})
	case "POST volumes/action":
		return f.extend(r, v, version)
	}
	return wrong(http.StatusNotFound, "there is no call %s here", call)
}

func (f *fake) volumeStatus(v *fakeVolume) string {
	switch {
	case v.wrong:
		return "error_extending"
	case v.next > 0:
		return "extending"
	case f.building(f.servers[v.server]):
		return "downloading"
	}
	return "in-use"
}

// extend enlarges a volume, as far as version, state and quota allow.
func (f *fake) extend(r *http.Request, v *fakeVolume, version int) *answer {
	var request struct {
		Extend struct {
			Size int `json:"new_size"`
		} `json:"os-extend"`
	}
	json.NewDecoder(r.Body).Decode(&request)
	size, status := request.Extend.Size, f.volumeStatus(v)
	states := []string{"available"}
	if version >= 42 {
		states = append(states, "in-use")
	}
	switch {
	case size <= v.gib:
		return wrong(http.StatusBadRequest, "Invalid input received: New size for extend must be greater than current size. (current: %d, extended: %d).", v.gib, size)
	case !slices.Contains(states, status):
		return wrong(http.StatusBadRequest, "Invalid volume: Volume %s status must be '%s' to extend, currently %s.", v.id, strings.Join(states, " or "), status)
	case size > f.largest:
		return wrong(http.StatusRequestEntityTooLarge, "Requested volume size %dG is larger than maximum allowed limit %dG.", size, f.largest)
	case size > f.gigabytes:
		return wrong(http.StatusRequestEntityTooLarge, "Requested volume or snapshot exceeds allowed gigabytes quota. Requested %dG, quota is %dG and %dG has been consumed.", size-v.gib, f.gigabytes, v.gib)
	}
	v.next, v.until = size, time.Now().Add(f.extendTime)
	return &answer{status: http.StatusAccepted}
}
