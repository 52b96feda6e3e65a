package gce

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

var update = flag.Bool("update", false, "rebuild testdata/discovery.json and instance.json from the discovery documents that come with Google's SDK")

// sdk is the module of Google's SDK that contains the documents. A newer one has newer documents.
const sdk = "google.golang.org/api@v0.305.0"

// discovery is the part of Google's discovery documents about the calls that the driver makes. The fake checks every
// request against it.
type discovery struct {
	Revision string                         `json:"revision"`
	Methods  map[string]method              `json:"methods"`
	Schemas  map[string]map[string]property `json:"schemas"`

	paths map[string]*regexp.Regexp
}

// method is a call.
type method struct {
	Verb       string               `json:"verb"`
	Path       string               `json:"path"`
	Version    string               `json:"version,omitempty"`
	Parameters map[string]parameter `json:"parameters"`
	Request    string               `json:"request,omitempty"`
	Response   string               `json:"response"`
}

type parameter struct {
	Location string `json:"location"`
	Required bool   `json:"required,omitempty"`
	Pattern  string `json:"pattern,omitempty"`
}

// property is a part of a schema.
type property struct {
	Type       string              `json:"type,omitempty"`
	Ref        string              `json:"ref,omitempty"`
	Enum       []string            `json:"enum,omitempty"`
	Pattern    string              `json:"pattern,omitempty"`
	ReadOnly   bool                `json:"read_only,omitempty"`
	Items      *property           `json:"items,omitempty"`
	Values     *property           `json:"values,omitempty"` // of an object with any keys
	Properties map[string]property `json:"properties,omitempty"`
}

// methodIDs are the calls that the driver makes.
var methodIDs = []string{
	"compute.instances.insert", "compute.instances.get", "compute.instances.aggregatedList", "compute.instances.delete", "compute.instances.start", "compute.instances.stop",
	"compute.instances.setLabels", "compute.instances.getGuestAttributes", "compute.zoneOperations.wait", "compute.zoneOperations.list",
	"compute.disks.aggregatedList", "compute.disks.delete", "compute.disks.resize", "compute.images.list", "compute.zones.list", "compute.machineTypes.list", "compute.projects.get",
	"cloudbilling.services.skus.list",
}

func readDiscovery() (*discovery, error) {
	text, err := os.ReadFile("testdata/discovery.json")
	if err != nil {
		return nil, err
	}
	d := &discovery{paths: map[string]*regexp.Regexp{}}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, err
	}
	for id, m := range d.Methods {
		d.paths[id] = pathOfCalls(m)
	}
	return d, nil
}

var placeholder = regexp.MustCompile(`\{\+?(\w+)\}`)

// pathOfCalls returns a pattern for the path of a call, with a group for each value in it.
func pathOfCalls(m method) *regexp.Regexp {
	return regexp.MustCompile("^/(?:compute/v1/)?" + placeholder.ReplaceAllStringFunc(m.Path, func(s string) string {
		within := "[^/]+"
		if strings.HasPrefix(s, "{+") {
			within = ".+"
		}
		return "(?P<" + strings.Trim(s, "{+}") + ">" + within + ")"
	}) + "$")
}

var patterns sync.Map // compiled, by their text

// matches reports whether a pattern matches a whole text.
func matches(pattern, text string) bool {
	exp, ok := patterns.Load(pattern)
	if !ok {
		exp, _ = patterns.LoadOrStore(pattern, regexp.MustCompile("^(?:"+pattern+")$"))
	}
	return exp.(*regexp.Regexp).MatchString(text)
}

func TestDiscovery(t *testing.T) {
	if *update {
		updateDiscovery(t)
	}
	d, err := readDiscovery()
	drivertest.Must(t, err)
	t.Run("the extract has every call that the fake answers, and no other", func(t *testing.T) {
		if got, want := slices.Sorted(maps.Keys(d.Methods)), slices.Sorted(maps.Keys(answers)); !slices.Equal(got, want) {
			t.Errorf("the extract has %v, the fake %v", got, want)
		}
	})
	t.Run("a template can have every key of an instance, and no other", func(t *testing.T) {
		var got any
		drivertest.Must(t, json.Unmarshal([]byte(instanceKeys), &got))
		if diff := cmp.Diff(d.example(property{Ref: "Instance"}), got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("every metric of a quota group is one of Google's", func(t *testing.T) {
		metrics := d.Schemas["Quota"]["metric"].Enum
		for _, metric := range append(kit.Each(ownQuota, func(series string) string { return quotaGroup(series, drover.OnDemand) }), oldestMetric, spotMetric) {
			if !slices.Contains(metrics, metric) {
				t.Errorf("Google has no metric %s", metric)
			}
		}
	})
	t.Run("values that the documents do not allow are refused", func(t *testing.T) {
		for body, want := range map[string]string{
			`{"name": "a", "machineTyp": "x"}`:                          "machineTyp",
			`{"name": "A"}`:                                             "name",
			`{"name": "a", "status": "RUNNING"}`:                        "read-only",
			`{"disks": [{"boot": "yes"}]}`:                              "boolean",
			`{"scheduling": {"provisioningModel": "CHEAP"}}`:            "CHEAP",
			`{"labels": {"a": 1}}`:                                      "string",
			`{"scheduling": {"maxRunDuration": {"seconds": 3600}}}`:     "string",
			`{"disks": [{"initializeParams": {"sourceImages": "x"}}]}`:  "sourceImages",
			`{"metadata": {"items": [{"key": "a", "valeu": "b"}]}}`:     "valeu",
			`{"networkInterfaces": {"network": "global/networks/one"}}`: "array",
		} {
			var v any
			drivertest.Must(t, json.Unmarshal([]byte(body), &v))
			if err := d.check("body", property{Ref: "Instance"}, v); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", body, err)
			}
		}
	})
}

// find returns the method that a request calls, and the values in its path.
func (d *discovery) find(r *http.Request) (id string, values map[string]string, err error) {
	for _, id := range slices.Sorted(maps.Keys(d.Methods)) {
		m := d.Methods[id]
		exp := d.paths[id]
		found := exp.FindStringSubmatch(r.URL.Path)
		if r.Method != m.Verb || found == nil {
			continue
		}
		values = map[string]string{}
		for i, name := range exp.SubexpNames() {
			if name != "" {
				values[name] = found[i]
			}
		}
		if version := r.Header.Get("X-Goog-Api-Version"); version != m.Version {
			return "", nil, fmt.Errorf("%s: the version is %q, not %q", id, version, m.Version)
		}
		return id, values, d.checkParameters(m, values, r.URL.Query())
	}
	return "", nil, fmt.Errorf("there is no call %s %s", r.Method, r.URL.Path)
}

// standard are the parameters that every call accepts.
var standard = []string{"alt", "prettyPrint", "fields"}

func (d *discovery) checkParameters(m method, path map[string]string, query url.Values) error {
	for name, p := range m.Parameters {
		value, given := path[name], path[name] != ""
		if p.Location == "query" {
			value, given = query.Get(name), query.Has(name)
		}
		if !given && p.Required {
			return fmt.Errorf("parameter %s is missing", name)
		}
		if given && p.Pattern != "" && !matches(p.Pattern, value) {
			return fmt.Errorf("parameter %s: %q does not match %s", name, value, p.Pattern)
		}
	}
	for name := range query {
		if p, known := m.Parameters[name]; (!known || p.Location != "query") && !slices.Contains(standard, name) {
			return fmt.Errorf("there is no parameter %s", name)
		}
	}
	return nil
}

// check checks a value in a request against the documents.
func (d *discovery) check(at string, p property, v any) error {
	properties := p.Properties
	if p.Ref != "" {
		properties, p.Type = d.Schemas[p.Ref], "object"
	}
	if p.ReadOnly {
		return fmt.Errorf("%s is read-only", at)
	}
	if got := typeName(v); got != p.Type && !(p.Type == "integer" && got == "number") {
		return fmt.Errorf("%s is a %s, not a %s", at, got, p.Type)
	}
	switch v := v.(type) {
	case string:
		if len(p.Enum) > 0 && !slices.Contains(p.Enum, v) || p.Pattern != "" && !matches(p.Pattern, v) {
			return fmt.Errorf("%s: %q is not a valid value", at, v)
		}
	case []any:
		for i, one := range v {
			if err := d.check(at+"["+strconv.Itoa(i)+"]", *p.Items, one); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, one := range v {
			of, known := properties[name]
			if !known && p.Values != nil {
				of, known = *p.Values, true
			}
			if !known {
				return fmt.Errorf("%s has no %s", at, name)
			}
			if err := d.check(at+"."+name, of, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// example returns a value of a property with all its keys. * stands for any key.
func (d *discovery) example(p property) any {
	properties := p.Properties
	switch {
	case p.Ref != "":
		properties = d.Schemas[p.Ref]
	case p.Type == "array":
		return []any{d.example(*p.Items)}
	case p.Type != "object":
		return map[string]any{"string": "", "boolean": false, "integer": 0.0, "number": 0.0}[p.Type]
	}
	all := thing{}
	for name, of := range properties {
		all[name] = d.example(of)
	}
	if p.Values != nil {
		all["*"] = d.example(*p.Values)
	}
	return all
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

// mask keeps the fields of an answer that its request lists, such as "nextPageToken,items(name,status)" or
// "items/*/disks(name)".
func mask(v any, fields string) (any, error) {
	if fields == "" || v == nil {
		return v, nil
	}
	kept := map[string]any{}
	for _, field := range cutFields(fields) {
		name, rest := field, ""
		if i := strings.IndexAny(field, "/("); i >= 0 {
			name, rest = field[:i], strings.TrimSuffix(field[i+1:], map[bool]string{true: ")"}[field[i] == '('])
		}
		if err := keep(kept, v, name, rest); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func keep(kept map[string]any, v any, name, rest string) error {
	from, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("fields: %s is not in an object", name)
	}
	for key, value := range from {
		if key != name && name != "*" {
			continue
		}
		some := value
		if all, isList := value.([]any); isList && rest != "" {
			few := make([]any, len(all))
			for i := range all {
				one, err := mask(all[i], rest)
				if err != nil {
					return err
				}
				few[i] = one
			}
			some = few
		} else if rest != "" {
			one, err := mask(value, rest)
			if err != nil {
				return err
			}
			some = one
		}
		kept[key] = join(kept[key], some)
	}
	return nil
}

// join merges two values if both are objects.
func join(a, b any) any {
	first, one := a.(map[string]any)
	second, two := b.(map[string]any)
	if !one || !two {
		return b
	}
	for key, value := range second {
		first[key] = join(first[key], value)
	}
	return first
}

// cutFields splits at the commas that are not in parentheses.
func cutFields(fields string) (all []string) {
	depth, begin := 0, 0
	for i, r := range fields + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			all = append(all, fields[begin:i])
			begin = i + 1
		}
	}
	return all
}

// updateDiscovery rebuilds the extract.
func updateDiscovery(t *testing.T) {
	out, err := exec.Command("go", "mod", "download", "-json", sdk).Output()
	drivertest.Must(t, err)
	var downloaded struct{ Dir string }
	drivertest.Must(t, json.Unmarshal(out, &downloaded))
	d := discovery{Methods: map[string]method{}, Schemas: map[string]map[string]property{}}
	for _, name := range []string{"compute/v1/compute-api.json", "cloudbilling/v1/cloudbilling-api.json"} {
		text, err := os.ReadFile(filepath.Join(downloaded.Dir, name))
		drivertest.Must(t, err)
		var whole document
		drivertest.Must(t, json.Unmarshal(text, &whole))
		d.Revision = strings.TrimSpace(d.Revision + " " + name + " " + whole.Revision)
		for _, id := range methodIDs {
			d.take(whole, id)
		}
		if q, ok := whole.Schemas["Quota"]; ok {
			d.Schemas["Quota"] = map[string]property{"metric": q.Properties["metric"].short()}
		}
	}
	text, err := json.MarshalIndent(d, "", " ")
	drivertest.Must(t, err)
	drivertest.Must(t, os.WriteFile("testdata/discovery.json", append(text, '\n'), 0o644))
	text, err = json.MarshalIndent(d.example(property{Ref: "Instance"}), "", " ")
	drivertest.Must(t, err)
	drivertest.Must(t, os.WriteFile("instance.json", append(text, '\n'), 0o644))
}

// document is the part of a discovery document that is read.
type document struct {
	Revision  string                  `json:"revision"`
	Resources map[string]docResources `json:"resources"`
	Schemas   map[string]docProperty  `json:"schemas"`
}

type docResources struct {
	Methods   map[string]docMethod    `json:"methods"`
	Resources map[string]docResources `json:"resources"`
}

type docMethod struct {
	ID         string               `json:"id"`
	HTTPMethod string               `json:"httpMethod"`
	Path       string               `json:"path"`
	Version    string               `json:"apiVersion"`
	Parameters map[string]parameter `json:"parameters"`
	Request    struct {
		Ref string `json:"$ref"`
	} `json:"request"`
	Response struct {
		Ref string `json:"$ref"`
	} `json:"response"`
}

type docProperty struct {
	Type       string                 `json:"type"`
	Ref        string                 `json:"$ref"`
	Enum       []string               `json:"enum"`
	Pattern    string                 `json:"pattern"`
	ReadOnly   bool                   `json:"readOnly"`
	Items      *docProperty           `json:"items"`
	Additional *docProperty           `json:"additionalProperties"`
	Properties map[string]docProperty `json:"properties"`
}

func (d *discovery) take(whole document, id string) {
	parts := strings.Split(id, ".")[1:]
	at := docResources{Resources: whole.Resources}
	for _, part := range parts[:len(parts)-1] {
		at = at.Resources[part]
	}
	m, ok := at.Methods[parts[len(parts)-1]]
	if !ok || m.ID != id {
		return
	}
	d.Methods[id] = method{m.HTTPMethod, m.Path, m.Version, m.Parameters, m.Request.Ref, m.Response.Ref}
	if m.Request.Ref != "" {
		d.takeSchema(whole, m.Request.Ref)
	}
}

// takeSchema copies a schema and everything that it refers to.
func (d *discovery) takeSchema(whole document, name string) {
	if _, done := d.Schemas[name]; done {
		return
	}
	d.Schemas[name] = map[string]property{}
	for key, p := range whole.Schemas[name].Properties {
		d.Schemas[name][key] = p.short()
		p.refs(func(ref string) { d.takeSchema(whole, ref) })
	}
}

func (p docProperty) refs(visit func(string)) {
	if p.Ref != "" {
		visit(p.Ref)
	}
	for _, part := range []*docProperty{p.Items, p.Additional} {
		if part != nil {
			part.refs(visit)
		}
	}
	for _, part := range p.Properties {
		part.refs(visit)
	}
}

func (p docProperty) short() property {
	s := property{Type: p.Type, Ref: p.Ref, Enum: p.Enum, Pattern: p.Pattern, ReadOnly: p.ReadOnly}
	if p.Items != nil {
		items := p.Items.short()
		s.Items = &items
	}
	if p.Additional != nil {
		values := p.Additional.short()
		s.Values = &values
	}
	for key, part := range p.Properties {
		if s.Properties == nil {
			s.Properties = map[string]property{}
		}
		s.Properties[key] = part.short()
	}
	return s
}
