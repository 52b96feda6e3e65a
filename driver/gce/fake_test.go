package gce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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

// fake is a project of Google Compute Engine in memory, with the relevant part of the price list. It accepts only what
// the discovery documents allow, and it is as difficult as the real service: it has operations that fail after they
// were accepted, limited capacity and quotas, rates, request ids, label fingerprints, spot interruptions, and lists
// that lag. It uses the clock, so it also works in a synctest bubble, without a network.
type fake struct {
	api      *discovery
	zones    []string
	kinds    []kind
	bootTime time.Duration
	opTime   time.Duration // how long an operation takes
	hurried  bool          // waits for operations end at once
	lag      time.Duration // how late a list shows a new instance
	pageSize int           // 0: as requested
	throttle bool
	latency  time.Duration // of a call without a network

	mu         sync.Mutex
	instances  map[string]*held // by zone/name; guarded by mu, like all fields below
	disks      map[string]thing // without an instance
	ops        map[string]*operation
	requests   map[string]string       // operations, by request id
	out        drivertest.Lack[string] // error codes of inserts, by "type zone model"; an empty part means any
	cpus       map[string]int          // the rest of each quota, by its metric
	guest      map[string]thing        // guest attributes, by zone/name
	broken     map[string]wrong        // calls that fail, by method
	attributes thing                   // of the project's metadata; nil: it has none
	unreached  string                  // a zone that lists cannot reach
	hollow     bool                    // every answer is an empty object
	warned     string                  // a zone that lists report as unreachable in the zone's own warning
	made       map[string][]time.Time
	calls      map[string]int
	refused    map[string]int
	last       int
}

// thing is a resource in JSON.
type thing = map[string]any

// kind is an instance type.
type kind struct {
	name         string
	cpus, mib    int
	arch         string
	gpu          string
	gpus         int
	shared, ssds bool
}

// held is an instance.
type held struct {
	thing
	kind                    kind
	created, ended, stopped time.Time
	started                 time.Time
	print                   int // the labels' fingerprint
	grown                   int // the boot disk's size in GiB, once it was resized
}

type operation struct {
	name, kind, zone, target string
	begun, done              time.Time
	err                      thing
}

// wrong is an error of the API.
type wrong struct {
	status         int
	code, message  string
	afterInSeconds int
}

func newFake() *fake {
	api, err := readDiscovery()
	if err != nil {
		panic(err)
	}
	return &fake{
		api:   api,
		zones: []string{"us-central1-a", "us-central1-b"},
		kinds: []kind{
			{name: "n2-standard-2", cpus: 2, mib: 8192, arch: "X86_64"},
			{name: "c4a-standard-1", cpus: 1, mib: 4096, arch: "ARM64"},
			{name: "e2-standard-4", cpus: 4, mib: 16384},
			{name: "e2-micro", cpus: 2, mib: 1024, shared: true},
			{name: "c4-standard-8-lssd", cpus: 8, mib: 30720, arch: "X86_64", ssds: true},
			{name: "g2-standard-4", cpus: 4, mib: 16384, arch: "X86_64", gpu: "nvidia-l4", gpus: 1},
			{name: "n2-standard-2-metal", cpus: 2, mib: 8192, arch: "X86_64"},
			{name: "x9-standard-2", cpus: 2, mib: 8192, arch: "X86_64"},
		},
		instances: map[string]*held{}, disks: map[string]thing{}, ops: map[string]*operation{}, requests: map[string]string{}, out: drivertest.Lack[string]{},
		cpus: map[string]int{}, guest: map[string]thing{}, broken: map[string]wrong{}, made: map[string][]time.Time{}, calls: map[string]int{}, refused: map[string]int{},
	}
}

// RoundTrip answers without a network.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	return drivertest.Answer(f, r, f.latency)
}

// request is a parsed call.
type request struct {
	id    string
	path  map[string]string
	query url.Values
	body  thing
	over  <-chan struct{} // closed when nobody waits for the answer any more
}

// answers are the calls that the fake answers.
var answers = map[string]func(*fake, request) (any, *wrong){
	"compute.instances.insert":             (*fake).insert,
	"compute.instances.get":                (*fake).get,
	"compute.instances.aggregatedList":     (*fake).aggregated,
	"compute.instances.delete":             (*fake).remove,
	"compute.instances.start":              (*fake).start,
	"compute.instances.stop":               (*fake).stop,
	"compute.instances.setLabels":          (*fake).setLabels,
	"compute.instances.getGuestAttributes": (*fake).guestAttributes,
	"compute.zoneOperations.wait":          (*fake).wait,
	"compute.zoneOperations.list":          (*fake).operations,
	"compute.disks.aggregatedList":         (*fake).aggregatedDisks,
	"compute.disks.delete":                 (*fake).removeDisk,
	"compute.disks.resize":                 (*fake).resizeDisk,
	"compute.images.list":                  (*fake).images,
	"compute.zones.list":                   (*fake).listZones,
	"compute.machineTypes.list":            (*fake).kindsOf,
	"compute.projects.get":                 (*fake).project,
	"cloudbilling.services.skus.list":      (*fake).skus,
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, bad := f.answer(r)
	w.Header().Set("Content-Type", "application/json")
	if bad != nil {
		if bad.afterInSeconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(bad.afterInSeconds))
		}
		w.WriteHeader(bad.status)
		answer = thing{"error": thing{"code": bad.status, "message": bad.message, "errors": []any{thing{"reason": bad.code, "message": bad.message, "domain": "global"}}}}
	}
	json.NewEncoder(w).Encode(answer)
}

func (f *fake) answer(r *http.Request) (any, *wrong) {
	id, path, err := f.api.find(r)
	if err != nil {
		return nil, &wrong{400, "invalidParameter", err.Error(), 0}
	}
	in := request{id: id, path: path, query: r.URL.Query(), over: r.Context().Done()}
	if in.body, err = f.body(id, r.Body); err != nil {
		return nil, &wrong{400, "invalid", err.Error(), 0}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[id]++
	if bad, broken := f.broken[id]; broken {
		return nil, &bad
	}
	if f.hollow {
		return thing{}, nil
	}
	if f.throttle && !f.spend(id) {
		f.refused[id]++
		return nil, &wrong{403, "rateLimitExceeded", "Quota exceeded for quota metric", 0}
	}
	answer, bad := answers[id](f, in)
	if bad != nil {
		return nil, bad
	}
	whole := plain(answer).(thing)
	if strings.HasPrefix(id, "compute.") {
		whole["kind"] = "compute#" + f.api.Methods[id].Response
	}
	if answer, err = mask(whole, in.query.Get("fields")); err != nil {
		return nil, &wrong{400, "invalidParameter", err.Error(), 0}
	}
	return answer, nil
}

// body reads the body of a call, if it needs one.
func (f *fake) body(id string, from io.Reader) (thing, error) {
	schema := f.api.Methods[id].Request
	if from == nil {
		from = &bytes.Buffer{}
	}
	text, err := io.ReadAll(from)
	if err != nil || schema == "" {
		return nil, err
	}
	body := thing{}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	return body, f.api.check(schema, property{Ref: schema}, body)
}

// plain returns an answer as decoded JSON.
func plain(v any) (p any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		panic(err)
	}
	return p
}

// published returns how many calls of a group a project may make in a minute.
func published(id string) (group string, limit int) {
	name := id[strings.LastIndex(id, ".")+1:]
	switch {
	case name == "aggregatedList":
		return "heavy", 750
	case name == "wait":
		return "waits", 750
	case strings.HasPrefix(id, "cloudbilling."):
		return "skus", 300
	case id == "compute.images.list" || id == "compute.zones.list":
		return "global", 1500
	case name == "list":
		return "lists", 1500
	case name == "get":
		return "reads", 1500
	}
	return "queries", 1500
}

// spend counts a call against its group's limit for the past minute.
func (f *fake) spend(id string) bool {
	group, limit := published(id)
	now := time.Now()
	recent := slices.DeleteFunc(f.made[group], func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	within := len(recent) < limit
	if within {
		recent = append(recent, now)
	}
	f.made[group] = recent
	return within
}

// cut returns the page of a list that pageToken and maxResults request, and the next token.
func cut[T any](f *fake, in request, all []T) (some []T, after string) {
	begin, _ := strconv.Atoi(in.query.Get("pageToken"))
	size, _ := strconv.Atoi(in.query.Get("maxResults"))
	if size == 0 || size > 500 {
		size = 500
	}
	if f.pageSize > 0 {
		size = f.pageSize
	}
	if begin+size >= len(all) {
		return all[min(begin, len(all)):], ""
	}
	return all[begin : begin+size], strconv.Itoa(begin + size)
}

// listing returns the answer for a page.
func listing(some any, after string) thing {
	page := thing{"items": some}
	if after != "" {
		page["nextPageToken"] = after
	}
	return page
}

// condition is one condition of a filter.
var condition = regexp.MustCompile(`^\(?([\w.-]+) (=|eq) "([^"]*)"\)?(?: |$)`)

// passes reports whether a filter matches a thing.
func passes(in request, t thing) (bool, *wrong) {
	pass := true
	for rest := in.query.Get("filter"); rest != ""; {
		m := condition.FindStringSubmatch(rest)
		if m == nil {
			return false, &wrong{400, "invalid", "Invalid list filter expression: " + rest, 0}
		}
		rest = rest[len(m[0]):]
		var value any = t
		for part := range strings.SplitSeq(m[1], ".") {
			of, _ := value.(thing)
			value = of[part]
		}
		text, _ := value.(string)
		if m[2] == "eq" {
			pass = pass && regexp.MustCompile("^(?:"+m[3]+")$").MatchString(text)
		} else {
			pass = pass && text == m[3]
		}
	}
	return pass, nil
}

// filtered returns the things that the filter matches.
func filtered(in request, all []thing) (some []thing, bad *wrong) {
	for _, t := range all {
		pass, bad := passes(in, t)
		if bad != nil {
			return nil, bad
		}
		if pass {
			some = append(some, t)
		}
	}
	return some, nil
}

func sortedKeys[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }

func sortedValues[T any](all map[string]T) (values []T) {
	for _, k := range sortedKeys(all) {
		values = append(values, all[k])
	}
	return values
}

func (f *fake) kind(name string) (kind, bool) {
	at := slices.IndexFunc(f.kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		return kind{}, false
	}
	return f.kinds[at], true
}

const prefix = "https://www.googleapis.com/compute/v1/projects/lab-1/"

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000-07:00") }

func notFound(format string, args ...any) *wrong {
	return &wrong{404, "notFound", fmt.Sprintf("The resource '"+format+"' was not found", args...), 0}
}
