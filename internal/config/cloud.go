package config

import (
	"errors"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// cloudNode defers a cloud's part of the file until its name is known.
type cloudNode struct{}

func (cloudNode) decode(*decoder, *node) {}

// stateURL is where the records are kept, resolved to an absolute path.
type stateURL string

func (s *stateURL) decodeWord(d *decoder, n *node) {
	file, sqlite := strings.CutPrefix(n.text, "sqlite:")
	switch {
	case strings.HasPrefix(n.text, "postgres://"), strings.HasPrefix(n.text, "postgresql://"):
		d.add(n, "this version cannot store its records in PostgreSQL", "write sqlite:PATH")
	case !sqlite || file == "" || strings.HasPrefix(file, "//") || strings.ContainsAny(file, "?#\x00"):
		d.add(n, quote(n.text)+" is not a valid location for records", "write sqlite:PATH, such as sqlite:drover.db")
	default:
		*s = stateURL(resolve(d.dir, file))
	}
}

func (stateURL) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^sqlite:[^?#]+$"}
}

// cloud decodes one cloud: the common keys now, the driver's own keys when it calls Decode.
func (d *decoder) cloud(name string, n *node) Cloud {
	c := Cloud{Name: name, Dir: d.dir}
	common := names(fieldsOf(reflect.TypeFor[Common]()))
	isCommon := func(e entry) bool {
		// A mapping of types filters the cloud's list; a list of them is a driver's own key.
		return slices.Contains(common, e.key.text) && !(e.key.text == "types" && e.value.shape == list)
	}
	if !d.want(n, mapping) {
		return c
	}
	d.value(n.with(isCommon), reflect.ValueOf(&c.Common).Elem(), field{})
	c.own, c.secrets = n.with(func(e entry) bool { return !isCommon(e) }), map[string]drover.Secret{}
	d.findSecrets(c.own, c.secrets)
	for _, key := range c.SSH.Keys {
		if secret, err := (secretSource{file: string(key)}).read(d.dir); err == nil {
			c.secrets[string(key)] = secret
		}
	}
	c.Decode = func(into any) error {
		own := &decoder{faults: &faults{file: d.file}, dir: d.dir, others: common}
		return own.decodeInto(c.own, into)
	}
	return c
}

// findSecrets adds the readable secrets whose places are written in n. Only a driver knows its secrets; any other value
// that looks like a secret's place does no harm.
func (d *decoder) findSecrets(n *node, found map[string]drover.Secret) {
	if source, err := parseSecret(n.text); err == nil {
		if secret, err := source.read(d.dir); err == nil {
			found[n.text] = secret
		}
	}
	for _, item := range n.items {
		d.findSecrets(item, found)
	}
	for _, e := range n.entries {
		d.findSecrets(e.value, found)
	}
}

// checkCloud checks one cloud's common keys.
func (c *Config) checkCloud(f *faults, cloud Cloud) {
	n := c.root.get("clouds").get(cloud.Name)
	if !fleetName.MatchString(cloud.Name) {
		f.add(n, quote(cloud.Name)+" is not a valid cloud name", "use 1 to 32 letters, digits and dashes, beginning with a letter")
	}
	if cloud.ListInterval <= c.Instances.ProbeInterval && n.shape == mapping {
		f.addf(n.find("list_interval"), "list_interval (%v) must be longer than probe_interval (%v): an instance must have a chance to answer before its absence from a list counts", cloud.ListInterval, c.Instances.ProbeInterval)
	}
	if dir := cloud.RunnerDir; dir != "" && (!path.IsAbs(dir) || path.Clean(dir) == "/") {
		f.addf(n.find("runner_dir"), "runner_dir must be the absolute path of a folder on the instance")
	}
	checkPatterns(f, n.find("types", "include"), cloud.Types.Include)
	checkPatterns(f, n.find("types", "exclude"), cloud.Types.Exclude)
	checkPrices(f, n.find("prices"), cloud.Prices)
	checkLimits(f, n.find("limits"), cloud.Limits)
}

func checkPatterns(f *faults, n *node, patterns []string) {
	for i, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			f.addf(n.find(strconv.Itoa(i)), "%s is not a valid pattern", quote(p))
		}
	}
}

// reason returns the system's message without the path, which the caller's message has already.
func reason(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return drover.AsError(err, drover.KindInvalid)
}
