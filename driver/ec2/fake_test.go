package ec2

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// fake is a region of EC2 in memory that implements the Query API. It has what other imitations lack: limited capacity
// and quotas, rates, client tokens, spot prices and interruptions, and answers that lag. It uses the clock, so it also
// works in a synctest bubble, without a network.
type fake struct {
	zones     []string
	kinds     []kind
	prices    map[string]string            // on demand, by type
	spot      map[string]map[string]string // by type and zone
	bootTime  time.Duration
	lag       time.Duration // how late a list shows a new instance
	pageSize  int           // 0: as requested
	parameter map[string]string
	throttle  bool
	latency   time.Duration // of a call without a network

	mu        sync.Mutex
	instances map[string]*held             // by id; guarded by mu, like all fields below
	templates map[string]url.Values        // by name
	keys      map[string]map[string]string // tags by name
	volumes   map[string]map[string]string // tags of unattached ones, by id
	tokens    map[string]answered
	out       drivertest.Lack[string] // error codes, by "type zone market"; an empty part means any
	vcpus     map[string]int          // the rest of each quota, by its code
	broken    map[string]string       // error codes of calls that fail, by action
	immune    map[string]string       // error codes of calls to terminate an instance, by id
	buckets   drivertest.Buckets
	calls     map[string]int
	refused   map[string]int
	last      int
}

// kind is an instance type.
type kind struct {
	name       string
	vcpus, mib int
	arch       string
	gpus       int
	metal      bool
}

// held is an instance.
type held struct {
	id, kind, zone, image, market string
	tags                          map[string]string
	created, ended                time.Time
	stopped                       bool
	gib                           int // the root volume's size
	reason                        string
	launch                        url.Values // the call that made it
	override                      url.Values
}

type answered struct{ request, reply string }

func newFake() *fake {
	return &fake{
		zones: []string{"us-east-1a", "us-east-1b"},
		kinds: []kind{
			{name: "m7i.large", vcpus: 2, mib: 8192, arch: "x86_64"},
			{name: "m7g.large", vcpus: 2, mib: 8192, arch: "arm64"},
			{name: "c7i.4xlarge", vcpus: 16, mib: 32768, arch: "x86_64"},
			{name: "g6.xlarge", vcpus: 4, mib: 16384, arch: "x86_64", gpus: 1},
			{name: "m7i.metal-24xl", vcpus: 96, mib: 393216, arch: "x86_64", metal: true},
		},
		prices:    map[string]string{"m7i.large": "0.1008000000", "m7g.large": "0.0816", "c7i.4xlarge": "0.714", "g6.xlarge": "0.8048", "m7i.metal-24xl": "4.8384"},
		spot:      map[string]map[string]string{"m7i.large": {"us-east-1a": "0.031200", "us-east-1b": "0.029900"}, "m7g.large": {"us-east-1a": "0.025"}},
		parameter: map[string]string{"/images/debian": "ami-debian"},
		instances: map[string]*held{}, templates: map[string]url.Values{}, keys: map[string]map[string]string{}, volumes: map[string]map[string]string{},
		tokens: map[string]answered{}, out: drivertest.Lack[string]{}, vcpus: map[string]int{}, broken: map[string]string{},
		buckets: drivertest.Buckets{}, calls: map[string]int{}, refused: map[string]int{},
	}
}

// RoundTrip answers without a network.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	return drivertest.Answer(f, r, f.latency)
}

// Do makes the fake an HTTP client for the SDK.
func (f *fake) Do(r *http.Request) (*http.Response, error) { return f.RoundTrip(r) }

// wrong is an error of the API.
type wrong struct{ code, message string }

// The imitated actions of the Query API, each with the content of its answer.
var actions = map[string]func(*fake, url.Values) (string, *wrong){
	"CreateFleet":                   (*fake).createFleet,
	"DescribeInstances":             (*fake).describeInstances,
	"TerminateInstances":            (*fake).terminateInstances,
	"StopInstances":                 (*fake).stopInstances,
	"StartInstances":                (*fake).startInstances,
	"CreateTags":                    (*fake).createTags,
	"DeleteTags":                    (*fake).deleteTags,
	"CreateLaunchTemplate":          (*fake).createLaunchTemplate,
	"DescribeLaunchTemplates":       (*fake).describeLaunchTemplates,
	"DeleteLaunchTemplate":          (*fake).deleteLaunchTemplate,
	"ImportKeyPair":                 (*fake).importKeyPair,
	"DescribeKeyPairs":              (*fake).describeKeyPairs,
	"DeleteKeyPair":                 (*fake).deleteKeyPair,
	"DescribeVolumes":               (*fake).describeVolumes,
	"ModifyVolume":                  (*fake).modifyVolume,
	"DeleteVolume":                  (*fake).deleteVolume,
	"DescribeSubnets":               (*fake).describeSubnets,
	"DescribeImages":                (*fake).describeImages,
	"DescribeInstanceTypes":         (*fake).describeInstanceTypes,
	"DescribeInstanceTypeOfferings": (*fake).describeInstanceTypeOfferings,
	"DescribeSpotPriceHistory":      (*fake).describeSpotPriceHistory,
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		f.serveJSON(w, r, target)
		return
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action := r.PostForm.Get("Action")
	body, bad := f.answer(action, r.PostForm)
	if bad != nil {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, el("Response", el("Errors", el("Error", text("Code", bad.code), text("Message", bad.message))), text("RequestID", "r-1")))
		return
	}
	fmt.Fprint(w, el(action+"Response", text("requestId", "r-1"), body))
}

func (f *fake) answer(action string, in url.Values) (string, *wrong) {
	f.calls[action]++
	do := actions[action]
	switch {
	case do == nil:
		return "", &wrong{"InvalidAction", "the fake knows no " + action}
	case f.broken[action] != "":
		return "", &wrong{f.broken[action], "broken by the test"}
	case f.throttle && !f.spendAll(action, in):
		f.refused[action]++
		return "", &wrong{"RequestLimitExceeded", "Request limit exceeded."}
	}
	return do(f, in)
}

// spendAll takes the tokens from every bucket of a call.
func (f *fake) spendAll(action string, in url.Values) bool {
	ids := len(values(in, "InstanceId"))
	switch {
	case action == "DescribeInstances" && ids > 0 && !f.spend(byID, 1), action == "TerminateInstances" && !f.spend(eachEnding, ids):
		return false
	}
	return f.spend(action, 1)
}

// spend takes tokens from a bucket with the rate that Amazon publishes.
func (f *fake) spend(action string, n int) bool {
	r, limited := rates[action]
	return !limited || f.buckets.Spend(action, r, n)
}

// serveJSON answers for Systems Manager and for the price list.
func (f *fake) serveJSON(w http.ResponseWriter, r *http.Request, target string) {
	var in struct{ Name, NextToken string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, action, _ := strings.Cut(target, ".")
	f.calls[action]++
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	value, known := f.parameter[in.Name]
	var out any
	switch {
	case f.broken[action] != "":
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]any{"__type": f.broken[action], "message": "broken by the test"}
	case action == "GetProducts":
		out = f.products(in.NextToken)
	case action == "GetParameter" && !strings.Contains(r.Header.Get("Authorization"), "/ssm/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-target, "):
		w.WriteHeader(http.StatusForbidden)
		out = map[string]any{"__type": "com.amazon.coral.service#IncompleteSignature", "message": r.Header.Get("Authorization")}
	case target == "AmazonSSM.GetParameter" && known:
		out = map[string]any{"Parameter": map[string]any{"Name": in.Name, "Value": value}}
	default:
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]any{"__type": "ParameterNotFound"}
	}
	json.NewEncoder(w).Encode(out)
}

// products is the price list, with one product on each page.
func (f *fake) products(token string) any {
	names := slices.Sorted(maps.Keys(f.prices))
	at, _ := strconv.Atoi(token)
	product := fmt.Sprintf(`{"product": {"attributes": {"instanceType": %q}}, "terms": {"OnDemand": {"a.b": {"priceDimensions": {"a.b.c":
		{"unit": "Hrs", "pricePerUnit": {"USD": %q}}}}}}}`, names[at], f.prices[names[at]])
	out := map[string]any{"FormatVersion": "aws_v1", "PriceList": []string{product}}
	if at+1 < len(names) {
		out["NextToken"] = strconv.Itoa(at + 1)
	}
	return out
}

// el returns an XML element, and text an element that contains text.
func el(name string, kids ...string) string {
	return "<" + name + ">" + strings.Join(kids, "") + "</" + name + ">"
}
func text(name, value string) string { return el(name, html.EscapeString(value)) }

// list returns an element of items.
func list[T any](name string, all []T, item func(T) string) string {
	kids := make([]string, len(all))
	for i, one := range all {
		kids[i] = el("item", item(one))
	}
	return el(name, kids...)
}

// cut returns the page of a list that NextToken and MaxResults request, and the next token.
func cut[T any](f *fake, in url.Values, all []T) ([]T, string) {
	at, _ := strconv.Atoi(in.Get("NextToken"))
	size, _ := strconv.Atoi(in.Get("MaxResults"))
	size = cmp.Or(f.pageSize, size, len(all))
	if at+size >= len(all) {
		return all[min(at, len(all)):], ""
	}
	return all[at : at+size], text("nextToken", strconv.Itoa(at+size))
}

// under returns the parameters with a prefix, without it: Tag.1.Key for the prefix TagSpecification.2.
func under(in url.Values, prefix string) url.Values {
	found := url.Values{}
	for k, v := range in {
		if rest, ok := strings.CutPrefix(k, prefix+"."); ok {
			found[rest] = v
		}
	}
	return found
}

// values returns the values numbered from 1 under a prefix.
func values(in url.Values, prefix string) (all []string) {
	for i := 1; in.Has(fmt.Sprintf("%s.%d", prefix, i)); i++ {
		all = append(all, in.Get(fmt.Sprintf("%s.%d", prefix, i)))
	}
	return all
}

// numbered returns the structures numbered from 1 under a prefix.
func numbered(in url.Values, prefix string) (all []url.Values) {
	for i := 1; ; i++ {
		one := under(in, fmt.Sprintf("%s.%d", prefix, i))
		if len(one) == 0 {
			return all
		}
		all = append(all, one)
	}
}

// tagsIn returns the tags for a resource type in a call's TagSpecification, and those in a plain Tag.
func tagsIn(in url.Values, resource string) map[string]string {
	tags := map[string]string{}
	for _, s := range append(numbered(in, "TagSpecification"), in) {
		if of := s.Get("ResourceType"); of == resource {
			for _, t := range numbered(s, "Tag") {
				tags[t.Get("Key")] = t.Get("Value")
			}
		}
	}
	return tags
}

func tagSet(tags map[string]string) string {
	return list("tagSet", slices.Sorted(maps.Keys(tags)), func(k string) string { return text("key", k) + text("value", tags[k]) })
}

// bears reports whether the tags match a call's tag filters.
func bears(in url.Values, tags map[string]string) bool {
	for _, f := range numbered(in, "Filter") {
		if key, ok := strings.CutPrefix(f.Get("Name"), "tag:"); ok && !slices.Contains(values(f, "Value"), tags[key]) {
			return false
		}
	}
	return true
}

// passes reports whether a filter, if there is one, contains the value.
func passes(in url.Values, name, value string) bool {
	for _, f := range numbered(in, "Filter") {
		matches := func(pattern string) bool { return kit.MatchGlob(pattern, value) }
		if f.Get("Name") == name && !slices.ContainsFunc(values(f, "Value"), matches) {
			return false
		}
	}
	return true
}

func (f *fake) kind(name string) (kind, bool) {
	at := slices.IndexFunc(f.kinds, func(k kind) bool { return k.name == name })
	if at < 0 {
		return kind{}, false
	}
	return f.kinds[at], true
}

// market translates EC2's word for a market.
func market(word string) drover.Market {
	if word == "spot" {
		return drover.Spot
	}
	return drover.OnDemand
}
