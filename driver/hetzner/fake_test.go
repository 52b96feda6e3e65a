package hetzner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drover/driver/drivertest"
	"drover/driver/kit"
)

// fake is a project in memory with the part of the API that the driver uses.
type fake struct {
	mu       sync.Mutex
	last     int64
	servers  map[int64]*fakeServer
	keys     map[int64]*fakeKey
	pageSize int
	latency  time.Duration // of a request without a network
	throttle bool
	spent    time.Time         // when the bucket of requests will be full again
	calls    map[string]int    // the number of requests, by kind
	refused  map[string]int    // the number of requests over the rate, by kind
	met      []string          // the requests, as METHOD PATH
	refuse   func() code       // returns the error for create calls
	listed   func()            // called after each page of a list
	uncount  bool              // a page does not contain the number of the last one
	stuck    bool              // every page of a list is the first
	garbled  map[string]string // the answers of requests that succeed, by kind, instead of the right ones
	oldest   int64
}

// code is an error of the API: a code with its status and message.
type code struct {
	status  int
	code    string
	message string
}

func (c code) Error() string { return c.code }

type fakeServer struct {
	ID         int64             `json:"id"`
	Name       string            `json:"name"`
	Status     string            `json:"status"`
	Created    time.Time         `json:"created"`
	Labels     map[string]string `json:"labels"`
	ServerType any               `json:"server_type"`
	Location   any               `json:"location"`
	PublicNet  any               `json:"public_net"`

	asked map[string]any
}

type fakeKey struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Fingerprint string            `json:"fingerprint"`
	PublicKey   string            `json:"public_key"`
	Labels      map[string]string `json:"labels"`
	Created     time.Time         `json:"created"`
}

func newFake() *fake {
	return &fake{servers: map[int64]*fakeServer{}, keys: map[int64]*fakeKey{}, pageSize: 3, calls: map[string]int{}, refused: map[string]int{}}
}

// RoundTrip answers without a network.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	return drivertest.Answer(f, r, f.latency)
}

// allow counts a request. Like the API, it allows an hour's requests at once and one more each second.
func (f *fake) allow(kind string) bool {
	f.calls[kind]++
	now := time.Now()
	if f.spent.Before(now) {
		f.spent = now
	}
	if f.throttle && f.spent.Sub(now) > time.Hour-time.Second {
		f.refused[kind]++
		return false
	}
	f.spent = f.spent.Add(time.Second)
	return true
}

// ServeHTTP answers one request.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.met = append(f.met, r.Method+" "+r.URL.Path)
	var in map[string]any
	json.NewDecoder(r.Body).Decode(&in)
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var id int64
	if len(parts) > 1 {
		id, _ = strconv.ParseInt(parts[1], 10, 64)
	}
	var answer any
	var err error
	switch {
	case !f.allow(callName(r)):
		err = code{429, "rate_limit_exceeded", ""}
	case r.Header.Get("Authorization") != "Bearer secret":
		err = code{401, "unauthorized", ""}
	default:
		answer, err = f.answer(r.Method+" "+parts[0]+strings.Repeat("/", len(parts)-1), id, parts, in, r.URL.Query())
	}
	w.Header().Set("Content-Type", "application/json")
	if c, refused := err.(code); refused {
		w.WriteHeader(c.status)
		answer = map[string]any{"error": map[string]any{"code": c.code, "message": cmp.Or(c.message, "the request failed")}}
	}
	if text, ok := f.garbled[callName(r)]; ok && err == nil {
		io.WriteString(w, text)
		return
	}
	json.NewEncoder(w).Encode(answer)
}

func (f *fake) answer(call string, id int64, parts []string, in map[string]any, q url.Values) (any, error) {
	switch call {
	case "GET server_types":
		return page(f, "server_types", types, q), nil
	case "GET images":
		return page(f, "images", slices.DeleteFunc(slices.Clone(images), func(i map[string]any) bool {
			return q.Has("architecture") && q.Get("architecture") != i["architecture"]
		}), q), nil
	case "GET servers":
		return f.list(q), nil
	case "POST servers":
		return f.create(in)
	case "GET ssh_keys", "POST ssh_keys", "DELETE ssh_keys/":
		return f.ofKeys(call, id, in, q)
	}
	s := f.servers[id]
	if s == nil {
		return nil, code{404, "not_found", ""}
	}
	switch call {
	case "PUT servers/":
		s.Labels = labelled(in)
	case "DELETE servers/":
		delete(f.servers, id)
	case "POST servers///":
		s.Status = map[string]string{"shutdown": "off", "poweron": "running"}[parts[3]]
	}
	return map[string]any{"server": s, "action": map[string]any{"id": 1, "status": "running"}}, nil
}

// list returns a page of servers.
func (f *fake) list(q url.Values) any {
	all := []*fakeServer{}
	for _, s := range f.servers {
		if name := q.Get("name"); (name == "" || name == s.Name) && selected(s.Labels, q.Get("label_selector")) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *fakeServer) int { return cmp.Compare(a.ID, b.ID) })
	if f.listed != nil {
		defer f.listed()
	}
	return page(f, "servers", all, q)
}

// page returns a page of a list that is sorted oldest first.
func page[T any](f *fake, of string, all []T, q url.Values) any {
	number, _ := strconv.Atoi(q.Get("page"))
	if number = max(1, number); f.stuck {
		number = 1
	}
	last := max(1, (len(all)+f.pageSize-1)/f.pageSize)
	pages := map[string]any{"page": number, "last_page": last, "next_page": nil}
	if number < last {
		pages["next_page"] = number + 1
	}
	if f.uncount {
		pages["last_page"] = nil
	}
	shown := all[min(len(all), (number-1)*f.pageSize):min(len(all), number*f.pageSize)]
	return map[string]any{of: shown, "meta": map[string]any{"pagination": pages}}
}

func selected(labels map[string]string, selector string) bool {
	for _, want := range strings.Split(selector, ",") {
		key, value, _ := strings.Cut(want, "=")
		if has, ok := labels[key]; want != "" && (!ok || has != value) {
			return false
		}
	}
	return true
}

func (f *fake) create(in map[string]any) (any, error) {
	if f.refuse != nil {
		if c := f.refuse(); c.code != "" {
			return nil, c
		}
	}
	name, kind := in["name"].(string), in["server_type"].(string)
	at := slices.IndexFunc(types, func(t map[string]any) bool { return t["name"] == kind })
	if at < 0 {
		return nil, code{404, "not_found", ""}
	}
	for _, s := range f.servers {
		if s.Name == name {
			return nil, code{409, "uniqueness_error", ""}
		}
	}
	for _, id := range in["ssh_keys"].([]any) {
		if f.keys[int64(id.(float64))] == nil {
			return nil, code{422, "invalid_input", ""}
		}
	}
	f.last++
	s := &fakeServer{
		ID: f.last, Name: name, Status: "running", Created: time.Now(), Labels: labelled(in), ServerType: types[at], asked: in,
		Location:  map[string]any{"name": in["location"]},
		PublicNet: map[string]any{"ipv4": map[string]any{"ip": fmt.Sprintf("192.0.2.%d", f.last%250)}, "ipv6": map[string]any{"ip": "2001:db8::/64"}},
	}
	f.servers[s.ID] = s
	return map[string]any{"server": s, "action": map[string]any{"id": 1, "status": "running"}}, nil
}

func labelled(in map[string]any) map[string]string {
	labels := map[string]string{}
	given, _ := in["labels"].(map[string]any)
	for k, v := range given {
		labels[k] = v.(string)
	}
	return labels
}

func (f *fake) ofKeys(call string, id int64, in map[string]any, q url.Values) (any, error) {
	switch call {
	case "DELETE ssh_keys/":
		if f.keys[id] == nil {
			return nil, code{404, "not_found", ""}
		}
		delete(f.keys, id)
		return nil, nil
	case "POST ssh_keys":
		fingerprint, _ := kit.Fingerprint(in["public_key"].(string))
		f.last++
		k := &fakeKey{f.last, in["name"].(string), fingerprint, in["public_key"].(string), labelled(in), time.Now()}
		for _, other := range f.keys {
			if other.Fingerprint == fingerprint {
				return nil, code{409, "uniqueness_error", ""}
			}
		}
		f.keys[k.ID] = k
		return map[string]any{"ssh_key": k}, nil
	}
	all := []*fakeKey{}
	for _, k := range f.keys {
		if want := q.Get("fingerprint"); (want == "" || want == k.Fingerprint) && selected(k.Labels, q.Get("label_selector")) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *fakeKey) int { return cmp.Compare(a.ID, b.ID) })
	return page(f, "ssh_keys", all, q), nil
}

// types are the project's types: the last one is withdrawn from one location and out of stock in another.
var types = []map[string]any{
	{"id": 1, "name": "cx23", "cores": 2, "memory": 4, "disk": 40, "architecture": "x86",
		"prices":    []any{priced("fsn1", "0.0056000000000000"), priced("hel1", "0.0056000000000000")},
		"locations": []any{map[string]any{"name": "fsn1", "available": true}, map[string]any{"name": "hel1", "available": true}}},
	{"id": 2, "name": "cax11", "cores": 2, "memory": 4, "disk": 40, "architecture": "arm",
		"prices": []any{priced("fsn1", "0.0061"), priced("hel1", "0.0061")},
		"locations": []any{map[string]any{"name": "fsn1", "available": false}, map[string]any{"name": "hel1", "available": true,
			"deprecation": map[string]any{"announced": "2024-01-01T00:00:00Z", "unavailable_after": "2024-06-01T00:00:00Z"}}}},
}

func priced(location, net string) any {
	return map[string]any{"location": location, "price_hourly": map[string]any{"net": net, "gross": "9"}, "price_monthly": map[string]any{"net": "3"}}
}

var images = []map[string]any{
	{"id": 11, "name": "debian-12", "type": "system", "status": "available", "architecture": "x86", "created": "2023-06-10T00:00:00Z"},
	{"id": 12, "name": "debian-12", "type": "system", "status": "available", "architecture": "arm", "created": "2023-06-10T00:00:00Z"},
	{"id": 13, "name": nil, "description": "ours-2", "type": "snapshot", "status": "available", "architecture": "x86", "created": "2025-01-01T00:00:00Z"},
}
