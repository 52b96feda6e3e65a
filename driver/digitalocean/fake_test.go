package digitalocean

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/digitalocean/godo"

	"drover/driver/drivertest"
	"drover/driver/kit"
)

// fake is the part of DigitalOcean's API that the driver uses.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	last     int
	droplets map[int]*godo.Droplet
	asked    map[int]godo.DropletCreateRequest
	tags     map[string]string // tags as first written, by their names in lower case
	keys     map[string]godo.Key
	refuse   func(*http.Request) (status int, message string) // status 0: it does not refuse the request
	requests []string
	pageSize int           // the maximum size of a page
	latency  time.Duration // of a request without a network
	calls    map[string]int
	throttle bool
	refused  map[string]int // the number of requests over the rates, by name
	minute   window
	hour     window
}

// window is a period with a limited number of requests.
type window struct {
	began time.Time
	made  int
}

// allow counts a request.
func (w *window) allow(now time.Time, length time.Duration, most int) bool {
	if now.Sub(w.began) >= length {
		*w = window{began: now}
	}
	w.made++
	return w.made <= most
}

const fakeToken = "a token"

func newFake(t *testing.T) *fake {
	t.Setenv("FAKE", fakeToken)
	f := &fake{droplets: map[int]*godo.Droplet{}, asked: map[int]godo.DropletCreateRequest{}, tags: map[string]string{}, keys: map[string]godo.Key{},
		pageSize: 3, calls: map[string]int{}, refused: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/sizes", func(w http.ResponseWriter, r *http.Request) { page(f, w, r, "sizes", fakeSizes) })
	mux.HandleFunc("GET /v2/images", f.listImages)
	mux.HandleFunc("GET /v2/images/{id}", f.getImage)
	mux.HandleFunc("GET /v2/droplets", f.listDroplets)
	mux.HandleFunc("POST /v2/droplets", f.createDroplet)
	mux.HandleFunc("GET /v2/droplets/{id}", f.getDroplet)
	mux.HandleFunc("DELETE /v2/droplets/{id}", f.deleteDroplet)
	mux.HandleFunc("POST /v2/droplets/{id}/actions", f.act)
	mux.HandleFunc("GET /v2/tags", f.listTags)
	mux.HandleFunc("POST /v2/tags", f.createTag)
	mux.HandleFunc("GET /v2/tags/{name}", f.getTag)
	mux.HandleFunc("DELETE /v2/tags/{name}", f.deleteTag)
	mux.HandleFunc("POST /v2/tags/{name}/resources", f.tagged(true))
	mux.HandleFunc("DELETE /v2/tags/{name}/resources", f.tagged(false))
	mux.HandleFunc("GET /v2/account/keys", f.listKeys)
	mux.HandleFunc("POST /v2/account/keys", f.createKey)
	mux.HandleFunc("GET /v2/account/keys/{print}", f.getKey)
	mux.HandleFunc("DELETE /v2/account/keys/{print}", f.deleteKey)
	f.Server = httptest.NewServer(f.guard(mux))
	t.Cleanup(f.Close)
	return f
}

// RoundTrip answers without a network.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	return drivertest.Answer(f.Config.Handler, r, f.latency)
}

// guard passes on requests with the token, one at a time.
func (f *fake) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests = append(f.requests, r.Method+" "+r.URL.String())
		f.calls[callName(r)]++
		if now := time.Now(); f.throttle && !(f.minute.allow(now, time.Minute, 250) && f.hour.allow(now, time.Hour, 5000)) {
			f.refused[callName(r)]++
			refuse(w, 429, "API Rate limit exceeded.")
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+fakeToken {
			refuse(w, 401, "Unable to authenticate you")
			return
		}
		if f.refuse != nil {
			if status, message := f.refuse(r); status != 0 {
				refuse(w, status, message)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"id": "some_code", "message": message, "request_id": "r-1"})
}

func answer(w http.ResponseWriter, status int, what string, value any) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{what: value})
}

// page answers with one page of a list.
func page[T any](f *fake, w http.ResponseWriter, r *http.Request, what string, all []T) {
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("per_page"))
	size = min(size, f.pageSize)
	n, _ := strconv.Atoi(cmp.Or(q.Get("page"), "1"))
	last := max(1, (len(all)+size-1)/size)
	from := min((n-1)*size, len(all))
	to := func(n int) string {
		q.Set("page", strconv.Itoa(n))
		return "https://api.digitalocean.com" + r.URL.Path + "?" + q.Encode()
	}
	pages := map[string]string{}
	if n < last {
		pages["next"], pages["last"] = to(n+1), to(last)
	}
	if n > 1 {
		pages["first"], pages["prev"] = to(1), to(n-1)
	}
	json.NewEncoder(w).Encode(map[string]any{
		what:    all[from:min(from+size, len(all))],
		"links": map[string]any{"pages": pages},
		"meta":  map[string]int{"total": len(all)},
	})
}

var fakeSizes = []godo.Size{
	{Slug: "s-1vcpu-1gb", Memory: 1024, Vcpus: 1, Disk: 25, PriceHourly: 0.00892857, Regions: []string{"nyc1", "ams3"}, Available: true},
	{Slug: "s-2vcpu-4gb", Memory: 4096, Vcpus: 2, Disk: 80, PriceHourly: 0.03571, Regions: []string{"nyc1", "ams3"}, Available: true},
	{Slug: "s-4vcpu-8gb", Memory: 8192, Vcpus: 4, Disk: 160, PriceHourly: 0.07143, Regions: []string{"ams3"}, Available: true},
	{Slug: "s-old", Memory: 512, Vcpus: 1, Disk: 20, PriceHourly: 0.00743999984115362, Regions: []string{"ams3"}, Available: false},
	{Slug: "gpu-h100x1-80gb", Memory: 245760, Vcpus: 20, Disk: 720, PriceHourly: 3.39, Regions: []string{"nyc1"}, Available: true,
		GPUInfo:  &godo.GPUInfo{Count: 1, Model: "nvidia_h100"},
		DiskInfo: []godo.DiskInfo{{Type: "local", Size: &godo.DiskSize{Amount: 720, Unit: "gib"}}, {Type: "scratch", Size: &godo.DiskSize{Amount: 5, Unit: "tib"}}}},
}

var fakeImages = []godo.Image{
	{ID: 11, Name: "24.04 (LTS) x64", Slug: "ubuntu-24-04-x64", Public: true, Created: "2026-01-02T00:00:00Z"},
	{ID: 12, Name: "13 x64", Slug: "debian-13-x64", Public: true, Created: "2026-01-03T00:00:00Z"},
	{ID: 13, Name: "jobs-1", Created: "2026-01-04T00:00:00Z"},
	{ID: 14, Name: "jobs-2", Created: "2026-01-05T00:00:00Z"},
}

func (f *fake) listImages(w http.ResponseWriter, r *http.Request) {
	private := r.URL.Query().Get("private") == "true"
	page(f, w, r, "images", slices.DeleteFunc(slices.Clone(fakeImages), func(i godo.Image) bool { return i.Public == private }))
}

func (f *fake) getImage(w http.ResponseWriter, r *http.Request) {
	if i := imageNamed(r.PathValue("id")); i != nil {
		answer(w, 200, "image", i)
		return
	}
	refuse(w, 404, "The resource you were accessing could not be found.")
}

func imageNamed(id string) *godo.Image {
	for _, i := range fakeImages {
		if id == strconv.Itoa(i.ID) || id == i.Slug {
			return &i
		}
	}
	return nil
}

func (f *fake) all() (all []godo.Droplet) {
	for _, id := range slices.Sorted(maps.Keys(f.droplets)) {
		all = append(all, *f.droplets[id])
	}
	return all
}

func (f *fake) listDroplets(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if filters(q) > 1 {
		refuse(w, 400, "tag_name, name and type cannot be combined")
		return
	}
	page(f, w, r, "droplets", slices.DeleteFunc(f.all(), func(d godo.Droplet) bool {
		gpu := strings.HasPrefix(d.SizeSlug, "gpu-")
		return gpu != (q.Get("type") == "gpus") ||
			q.Get("name") != "" && !strings.EqualFold(d.Name, q.Get("name")) ||
			q.Get("tag_name") != "" && !slices.Contains(d.Tags, q.Get("tag_name"))
	}))
	for _, d := range f.droplets {
		if d.Status == "new" {
			d.Status = "active"
		}
		d.Networks = &godo.Networks{V4: []godo.NetworkV4{
			{IPAddress: fmt.Sprintf("203.0.113.%d", d.ID%250), Type: "public"}, {IPAddress: fmt.Sprintf("10.0.0.%d", d.ID%250), Type: "private"},
		}}
	}
}

func filters(q url.Values) (n int) {
	for _, f := range []string{"tag_name", "name", "type"} {
		if q.Has(f) {
			n++
		}
	}
	return n
}

func (f *fake) createDroplet(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		godo.DropletCreateRequest
		Image   any      `json:"image"`
		SSHKeys []string `json:"ssh_keys"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		refuse(w, 400, err.Error())
		return
	}
	size := slices.IndexFunc(fakeSizes, func(s godo.Size) bool { return s.Slug == asked.Size })
	switch {
	case size < 0:
		refuse(w, 422, "You specified an invalid size for Droplet creation.")
	case !slices.ContainsFunc(fakeSizes, func(s godo.Size) bool { return slices.Contains(s.Regions, asked.Region) }):
		refuse(w, 422, "You specified an invalid region for Droplet creation.")
	case !slices.Contains(fakeSizes[size].Regions, asked.Region):
		refuse(w, 422, "Size is not available in this region.")
	case imageNamed(fmt.Sprint(asked.Image)) == nil:
		refuse(w, 422, "You specified an invalid image for Droplet creation.")
	case len(asked.SSHKeys) != 1 || f.keys[asked.SSHKeys[0]].ID == 0:
		refuse(w, 422, asked.SSHKeys[0]+" are invalid key identifiers for Droplet creation.")
	case len(asked.UserData) > 64<<10:
		refuse(w, 422, "User data is too long")
	default:
		f.make(w, asked.DropletCreateRequest)
	}
}

var goodTag = regexp.MustCompile(`^[a-zA-Z0-9_:-]{1,255}$`)

func (f *fake) make(w http.ResponseWriter, asked godo.DropletCreateRequest) {
	f.last++
	d := &godo.Droplet{ID: f.last, Name: asked.Name, SizeSlug: asked.Size, Region: &godo.Region{Slug: asked.Region}, Status: "new",
		Created: time.Now().UTC().Format(time.RFC3339)}
	for _, tag := range asked.Tags {
		if !goodTag.MatchString(tag) {
			refuse(w, 422, "Tags may contain letters, numbers, colons, dashes, and underscores")
			return
		}
		d.Tags = append(d.Tags, f.canonical(tag))
	}
	f.droplets[d.ID], f.asked[d.ID] = d, asked
	answer(w, 202, "droplet", d)
}

// canonical returns a tag as it was first written.
func (f *fake) canonical(tag string) string {
	small := strings.ToLower(tag)
	if f.tags[small] == "" {
		f.tags[small] = tag
	}
	return f.tags[small]
}

// droplet returns a Droplet; if there is none, it answers with an error.
func (f *fake) droplet(w http.ResponseWriter, id string) *godo.Droplet {
	n, _ := strconv.Atoi(id)
	if f.droplets[n] == nil {
		refuse(w, 404, "The resource you were accessing could not be found.")
	}
	return f.droplets[n]
}

func (f *fake) getDroplet(w http.ResponseWriter, r *http.Request) {
	if d := f.droplet(w, r.PathValue("id")); d != nil {
		answer(w, 200, "droplet", d)
	}
}

func (f *fake) deleteDroplet(w http.ResponseWriter, r *http.Request) {
	if d := f.droplet(w, r.PathValue("id")); d != nil {
		delete(f.droplets, d.ID)
		w.WriteHeader(204)
	}
}

// act powers a Droplet on or off; it refuses if the Droplet already is.
func (f *fake) act(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Type string }
	json.NewDecoder(r.Body).Decode(&asked)
	status := map[string]string{"power_on": "active", "power_off": "off"}[asked.Type]
	d := f.droplet(w, r.PathValue("id"))
	switch {
	case d == nil:
	case status == "" || d.Status == status:
		refuse(w, 422, "Droplet cannot be "+asked.Type)
	default:
		d.Status = status
		answer(w, 201, "action", map[string]any{"id": 1, "status": "in-progress"})
	}
}

func (f *fake) tagNamed(name string) godo.Tag {
	count := 0
	for _, d := range f.droplets {
		if slices.Contains(d.Tags, name) {
			count++
		}
	}
	return godo.Tag{Name: name, Resources: &godo.TaggedResources{Count: count}}
}

func (f *fake) listTags(w http.ResponseWriter, r *http.Request) {
	var all []godo.Tag
	for _, name := range slices.Sorted(maps.Values(f.tags)) {
		all = append(all, f.tagNamed(name))
	}
	page(f, w, r, "tags", all)
}

func (f *fake) createTag(w http.ResponseWriter, r *http.Request) {
	var asked godo.TagCreateRequest
	json.NewDecoder(r.Body).Decode(&asked)
	if !goodTag.MatchString(asked.Name) {
		refuse(w, 422, "Tags may contain letters, numbers, colons, dashes, and underscores")
		return
	}
	answer(w, 201, "tag", f.tagNamed(f.canonical(asked.Name)))
}

// tag reports whether a tag with exactly this name exists; if not, it answers with an error.
func (f *fake) tag(w http.ResponseWriter, r *http.Request) (name string, there bool) {
	name = r.PathValue("name")
	if f.tags[strings.ToLower(name)] == name {
		return name, true
	}
	refuse(w, 404, "The resource you were accessing could not be found.")
	return name, false
}

func (f *fake) getTag(w http.ResponseWriter, r *http.Request) {
	if name, there := f.tag(w, r); there {
		answer(w, 200, "tag", f.tagNamed(name))
	}
}

func (f *fake) deleteTag(w http.ResponseWriter, r *http.Request) {
	if name, there := f.tag(w, r); there {
		delete(f.tags, strings.ToLower(name))
		for _, d := range f.droplets {
			d.Tags = slices.DeleteFunc(d.Tags, func(t string) bool { return t == name })
		}
		w.WriteHeader(204)
	}
}

// tagged adds a tag to Droplets or removes it.
func (f *fake) tagged(bear bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, there := f.tag(w, r)
		if !there {
			return
		}
		var asked godo.TagResourcesRequest
		json.NewDecoder(r.Body).Decode(&asked)
		for _, res := range asked.Resources {
			d := f.droplet(w, res.ID)
			if d == nil {
				return
			}
			d.Tags = slices.DeleteFunc(slices.Clone(d.Tags), func(t string) bool { return t == name })
			if bear {
				d.Tags = append(d.Tags, name)
			}
		}
		w.WriteHeader(204)
	}
}

func (f *fake) listKeys(w http.ResponseWriter, r *http.Request) {
	page(f, w, r, "ssh_keys", slices.SortedFunc(maps.Values(f.keys), func(a, b godo.Key) int { return a.ID - b.ID }))
}

func (f *fake) createKey(w http.ResponseWriter, r *http.Request) {
	var asked godo.KeyCreateRequest
	json.NewDecoder(r.Body).Decode(&asked)
	print, err := kit.Fingerprint(asked.PublicKey)
	if err != nil || f.keys[print].ID != 0 {
		refuse(w, 422, "SSH Key is already in use on your account")
		return
	}
	f.last++
	f.keys[print] = godo.Key{ID: f.last, Name: asked.Name, Fingerprint: print, PublicKey: asked.PublicKey}
	answer(w, 201, "ssh_key", f.keys[print])
}

func (f *fake) getKey(w http.ResponseWriter, r *http.Request) {
	if k := f.keys[r.PathValue("print")]; k.ID != 0 {
		answer(w, 200, "ssh_key", k)
		return
	}
	refuse(w, 404, "The resource you were accessing could not be found.")
}

func (f *fake) deleteKey(w http.ResponseWriter, r *http.Request) {
	if f.keys[r.PathValue("print")].ID == 0 {
		refuse(w, 404, "The resource you were accessing could not be found.")
		return
	}
	delete(f.keys, r.PathValue("print"))
	w.WriteHeader(204)
}
