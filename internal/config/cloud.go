package config

import (
	"errors"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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

// check checks values against each other.
func (c *Config) check(f *faults) {
	if n := c.root.get("fleet"); n != nil && n.shape == scalar {
		if err := CheckFleet(c.Fleet); err != nil {
			f.addErr(n, err)
		}
	}
	if n := c.root.get("clouds"); n != nil && n.shape == mapping && len(n.entries) == 0 {
		f.add(n, "no clouds are configured", "write, for example, clouds: {here: {driver: local, max_instances: 4}}")
	}
	c.checkInstances(f)
	c.checkBudgets(f)
	c.checkScripts(f, c.root.find("hooks"), c.Hooks)
	c.checkPools(f)
	c.checkPoolsFrom(f)
	c.checkKubernetes(f)
	c.Notify.check(f, c.root.find("notify"))
	for _, cloud := range c.Clouds {
		c.checkCloud(f, cloud)
	}
}

// checkInstances checks that intervals are longer than what happens within them.
func (c *Config) checkInstances(f *faults) {
	i, n := &c.Instances, c.root.find("instances")
	positive := map[string]time.Duration{"boot_timeout": i.BootTimeout, "probe_interval": i.ProbeInterval, "probe_timeout": i.ProbeTimeout,
		"shutdown_timeout": i.ShutdownTimeout, "health_interval": i.HealthInterval}
	for key, d := range positive {
		if d <= 0 {
			f.addf(n.find(key), "%s must be greater than 0", key)
		}
	}
	if i.ProbeDeadline == 0 {
		i.ProbeDeadline = min(5*time.Second, i.ProbeInterval/2)
	}
	if i.ProbeInterval <= i.ProbeDeadline && i.ProbeInterval > 0 {
		f.addf(n.find("probe_deadline"), "probe_deadline (%v) must be shorter than probe_interval (%v): a probe must end before the next one begins", i.ProbeDeadline, i.ProbeInterval)
	}
	if i.ProbeTimeout <= i.ProbeInterval && i.ProbeTimeout > 0 {
		f.addf(n.find("probe_timeout"), "probe_timeout (%v) must be longer than probe_interval (%v): one unanswered probe must not be enough to consider an instance silent", i.ProbeTimeout, i.ProbeInterval)
	}
	if i.OrphanTimeout <= i.ProbeTimeout && i.OrphanTimeout != 0 {
		f.addf(n.find("orphan_timeout"), "orphan_timeout (%v) must be longer than probe_timeout (%v), or 0 for never: the controller must have time to give up on the instance first", i.OrphanTimeout, i.ProbeTimeout)
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
