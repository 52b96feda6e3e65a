package openstack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"drover/driver/drivertest"
)

// fake is a cloud in memory: Keystone, Nova, Glance and Cinder as far as the driver uses them. It has quotas, hosts
// with and without capacity, tokens that expire, pages, a part that does not answer, and versions of Nova. The fake and
// the real services pass the same suite. It uses the clock, so it also works in a synctest bubble, without a network.
type fake struct {
	newest    int // microversion of Nova
	regions   []string
	zones     []string
	flavors   []fakeFlavor
	images    []map[string]any
	networks  int // how many the project has
	instances int // the quota of instances
	cores     int // the quota of vCPUs
	pageSize  int
	buildTime time.Duration // until a host has the server; a lack of hosts is known at once
	faultTime time.Duration // until Nova reports why it could not create a server
	endTime   time.Duration // until a deleted server is gone
	tokenTime time.Duration // lifetime of a token; 0: unlimited
	latency   time.Duration // of a call without a network

	newestVolume int           // microversion of Cinder, without "3."
	extendTime   time.Duration // until a volume is larger
	largest      int           // the maximum GiB of a volume
	gigabytes    int           // the quota

	mu      sync.Mutex
	servers map[string]*fakeServer    // by id; guarded by mu, like all fields below
	volumes map[string]*fakeVolume    // by id
	room    map[string]int            // free vCPUs of hosts, by zone; any other zone is unlimited
	faults  map[string]string         // fault messages of servers with a flavor, by its name
	down    map[string]bool           // ids of servers in the part that does not answer
	broken  map[string]func() *answer // calls that fail, by callName
	calls   map[string]int
	tokens  map[string]time.Time
	last    int
}

type fakeFlavor struct {
	id, name       string
	vcpus, ram, gb int
	specs          map[string]string
}

type fakeServer struct {
	id                string
	flavor            fakeFlavor
	zone, fault       string
	body              map[string]any // of the create call
	metadata          map[string]string
	created           time.Time
	stopped, launched bool
	ended             time.Time
}

// answer is the answer to a call.
type answer struct {
	status int
	body   any
	header http.Header
}

func newFake() *fake {
	return &fake{
		newest: 96, regions: []string{"north"}, zones: []string{"nova"}, networks: 1, instances: 10, cores: 20, pageSize: 1000,
		newestVolume: 70, largest: 500, gigabytes: 1000, volumes: map[string]*fakeVolume{},
		flavors: []fakeFlavor{
			{"1", "m1.small", 1, 2048, 20, nil},
			{"2", "m1.large", 4, 8192, 80, map[string]string{"drover:price": "0.2"}},
			{"3", "v1.large", 4, 8192, 0, nil},
			{"4", "g1.large", 8, 32768, 100, map[string]string{"pci_passthrough:alias": "a100:2,nic:1", "drover:price": "much"}},
		},
		images: []map[string]any{
			{"id": "11111111-1111-1111-1111-111111111111", "name": "debian-12-20260101", "created_at": "2026-01-01T00:00:00Z", "min_disk": 3},
			{"id": "22222222-2222-2222-2222-222222222222", "name": "debian-12-20260301", "created_at": "2026-03-01T00:00:00Z", "virtual_size": 5 << 30, "hw_architecture": "x86_64"},
			{"id": "33333333-3333-3333-3333-333333333333", "name": "debian-12-20260401", "created_at": "2026-04-01T00:00:00Z", "hw_architecture": "aarch64"},
			{"id": "44444444-4444-4444-4444-444444444444", "name": "ubuntu", "created_at": "2026-05-01T00:00:00Z"},
		},
		servers: map[string]*fakeServer{}, room: map[string]int{}, faults: map[string]string{}, down: map[string]bool{},
		broken: map[string]func() *answer{}, calls: map[string]int{}, tokens: map[string]time.Time{},
	}
}

// RoundTrip answers without a network.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	return drivertest.Answer(f, r, f.latency)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	a := f.handle(r)
	f.mu.Unlock()
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	if a.body != nil {
		json.NewEncoder(w).Encode(a.body)
	}
}

func ok(body any) *answer { return &answer{status: http.StatusOK, body: body} }

// wrong returns an error in Nova's form.
func wrong(status int, format string, args ...any) *answer {
	key := "fault"
	if status == http.StatusNotFound {
		key = "itemNotFound"
	}
	return &answer{status: status, body: map[string]any{key: map[string]any{"code": status, "message": fmt.Sprintf(format, args...)}}}
}

func (f *fake) handle(r *http.Request) *answer {
	call := callName(r)
	f.calls[call]++
	if fails := f.broken[call]; fails != nil {
		if a := fails(); a != nil {
			return a
		}
	}
	root := "http://" + r.Host
	switch {
	case call == "POST auth/tokens":
		return f.signIn(r, root)
	case call == "GET ":
		return f.root()
	case call == "GET image":
		version := map[string]any{"id": "v2.16", "status": "CURRENT"}
		return &answer{status: http.StatusMultipleChoices, body: map[string]any{"versions": []any{version}}}
	}
	if until, known := f.tokens[r.Header.Get("X-Auth-Token")]; !known || f.tokenTime > 0 && time.Now().After(until) {
		return wrong(http.StatusUnauthorized, "The request you have made requires authentication.")
	}
	if strings.HasPrefix(r.URL.Path, "/image/") {
		return f.glance(r, call)
	}
	if strings.HasPrefix(r.URL.Path, "/volume/") {
		return f.cinder(r, call)
	}
	return f.nova(r, call, root)
}

// signIn returns a token and the catalogue if the password is right.
func (f *fake) signIn(r *http.Request, root string) *answer {
	var request struct {
		Auth struct {
			Identity struct {
				Password struct {
					User struct{ Name, Password string }
				}
			}
		}
	}
	json.NewDecoder(r.Body).Decode(&request)
	if request.Auth.Identity.Password.User.Password != "secret" {
		return wrong(http.StatusUnauthorized, "The request you have made requires authentication.")
	}
	f.last++
	token := fmt.Sprint("token-", f.last)
	f.tokens[token] = time.Now().Add(f.tokenTime)
	service := func(kind, url string) map[string]any {
		var all []any
		for _, region := range f.regions {
			all = append(all, map[string]any{"interface": "public", "region": region, "region_id": region, "url": url})
		}
		return map[string]any{"type": kind, "endpoints": all}
	}
	project := strings.Repeat("0123456789abcdef", 2)
	catalog := []any{service("compute", root+"/compute/v2.1"), service("image", root+"/image"), service("volumev3", root+"/volume/v3/"+project)}
	body := map[string]any{"token": map[string]any{"catalog": catalog, "expires_at": "2099-01-01T00:00:00.000000Z"}}
	return &answer{status: http.StatusCreated, body: body, header: http.Header{"X-Subject-Token": {token}}}
}

// root returns Nova's versions.
func (f *fake) root() *answer {
	newest := fmt.Sprint("2.", f.newest)
	if f.newest == 0 {
		newest = ""
	}
	return ok(map[string]any{"version": map[string]any{"id": "v2.1", "status": "CURRENT", "version": newest, "min_version": "2.1"}})
}

func (f *fake) glance(r *http.Request, call string) *answer {
	q := r.URL.Query()
	var found []map[string]any
	for _, i := range f.images {
		switch {
		case strings.HasSuffix(r.URL.Path, "/images/"+i["id"].(string)):
			return ok(i)
		case q.Get("name") == "" || q.Get("name") == i["name"]:
			found = append(found, i)
		}
	}
	if call != "GET images" || !strings.HasSuffix(r.URL.Path, "/images") {
		return &answer{status: http.StatusNotFound, body: map[string]any{"message": "No image found with ID"}}
	}
	from := slices.IndexFunc(found, func(i map[string]any) bool { return i["id"] == q.Get("marker") }) + 1
	body, to := map[string]any{}, min(len(found), from+f.pageSize)
	if to < len(found) {
		q.Set("marker", found[to-1]["id"].(string))
		body["next"] = "/v2/images?" + q.Encode()
	}
	body["images"] = append([]map[string]any{}, found[from:to]...)
	return ok(body)
}

func (f *fake) nova(r *http.Request, call, root string) *answer {
	version := 1
	fmt.Sscanf(r.Header.Get("X-OpenStack-Nova-API-Version"), "2.%d", &version)
	if version > max(1, f.newest) {
		return wrong(http.StatusNotAcceptable, "Version 2.%d is not supported by the API. Minimum is 2.1 and maximum is 2.%d.", version, f.newest)
	}
	switch call {
	case "GET flavors/detail":
		return f.listFlavors(r, version, root)
	case "GET os-availability-zone":
		return f.listZones()
	case "GET servers/detail":
		return f.listServers(r, version, root)
	case "POST servers":
		return f.createServer(r, version)
	}
	id := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(r.URL.Path)
	s := f.servers[id]
	if s == nil || f.gone(s) {
		return wrong(http.StatusNotFound, "Instance %s could not be found.", id)
	}
	switch call {
	case "GET servers":
		if f.down[s.id] && version < downCells {
			return wrong(http.StatusInternalServerError, "Unexpected API Error.")
		}
		shown := f.show(s, version)
		if s.fault != "" && time.Since(s.created) >= f.faultTime {
			shown["fault"] = map[string]any{"code": 500, "message": s.fault, "created": s.created.Format(time.RFC3339)}
		}
		return ok(map[string]any{"server": shown})
	case "DELETE servers":
		return f.deleteServer(s)
	case "PUT servers/metadata":
		return f.setMetadata(r, s)
	case "POST servers/action":
		return f.act(r, s)
	}
	return wrong(http.StatusNotFound, "there is no call %s here", call)
}

func (f *fake) listFlavors(r *http.Request, version int, root string) *answer {
	from := slices.IndexFunc(f.flavors, func(x fakeFlavor) bool { return x.id == r.URL.Query().Get("marker") }) + 1
	to := min(len(f.flavors), from+f.pageSize)
	var all []any
	for _, x := range f.flavors[from:to] {
		shown := map[string]any{"id": x.id, "name": x.name, "vcpus": x.vcpus, "ram": x.ram, "disk": x.gb, "swap": ""}
		if version >= 61 {
			shown["extra_specs"] = x.specs
		}
		all = append(all, shown)
	}
	body := map[string]any{"flavors": all}
	if to < len(f.flavors) {
		body["flavors_links"] = next(root + "/compute/v2.1/flavors/detail?marker=" + f.flavors[to-1].id)
	}
	return ok(body)
}

func next(url string) []any { return []any{map[string]any{"rel": "next", "href": url}} }

func (f *fake) listZones() *answer {
	all := []any{map[string]any{"zoneName": "closed", "zoneState": map[string]any{"available": false}}}
	for _, z := range f.zones {
		all = append(all, map[string]any{"zoneName": z, "zoneState": map[string]any{"available": true}})
	}
	return ok(map[string]any{"availabilityZoneInfo": all})
}

// listServers omits servers that do not answer, unless there is no query, as Nova does.
func (f *fake) listServers(r *http.Request, version int, root string) *answer {
	q := r.URL.Query()
	name := regexp.MustCompile(q.Get("name"))
	var found []*fakeServer
	for _, s := range f.servers {
		hidden := f.down[s.id] && (version < 69 || len(q) > 0)
		if !f.gone(s) && !hidden && name.MatchString(s.body["name"].(string)) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *fakeServer) int { return -cmp.Compare(a.id, b.id) })
	from := slices.IndexFunc(found, func(s *fakeServer) bool { return s.id == q.Get("marker") }) + 1
	to := min(len(found), from+f.pageSize)
	all := []any{}
	for _, s := range found[from:to] {
		all = append(all, f.show(s, version))
	}
	body := map[string]any{"servers": all}
	if to < len(found) {
		body["servers_links"] = next(root + "/compute/v2.1/servers/detail?marker=" + found[to-1].id)
	}
	return ok(body)
}
