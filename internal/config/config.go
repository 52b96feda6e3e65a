package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"drover"
)

// Config is a valid configuration, with its defaults filled in.
type Config struct {
	Fleet      string  // empty: the caller sets it
	State      string  // absolute path of the SQLite file; empty: the caller sets it
	Listen     string  // host:port
	URL        string  // http or https, without a path; empty: the API is reached where it listens
	Clouds     []Cloud // at least one, sorted by name
	Pools      []Pool  // sorted by name
	PoolsFrom  PoolsFrom
	Instances  Instances
	Jobs       Jobs
	Auth       Auth
	Limits     drover.UserLimits
	Hooks      Hooks
	Results    Results
	Notify     Notify
	Budgets    []Budget // at most one for each scope
	Kubernetes Kubernetes

	file string
	dir  string
	text []byte
	root *node
	read configFile // as it is written in the file
}

// Source returns the text of the configuration and the folder that its relative paths start from.
func (c *Config) Source() (text []byte, dir string) { return c.text, c.dir }

// Cloud is one cloud of a configuration.
type Cloud struct {
	Name string
	Common

	// Decode reads the driver's own keys into the struct that into points to, by its yaml or else its json tags. A key
	// that the struct does not have is an error, as is a wrong value; the errors are Faults. If the struct's pointer
	// has a method Default(), it is called first; if it has Check() error, that is called last.
	Decode func(into any) error `json:"-"`

	Dir string `json:"-"` // the folder that relative paths are relative to

	own     *node                    // the driver's own keys
	secrets map[string]drover.Secret // in own, and its login keys, by where they are kept
}

// Default returns the configuration used without a file: this host, with at most four instances.
func Default(fleet string) *Config {
	c, err := Parse("default", []byte("version: 1\nclouds: {here: {driver: local, max_instances: 4}}\n"), "")
	if err != nil {
		panic(err) // the constant does not parse
	}
	c.Fleet = fleet
	return c
}

// Load reads a configuration file. Errors in it are Faults.
func Load(path string) (*Config, error) {
	data, dir, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, dir)
}

// Parse reads a configuration from data. Faults call it name; relative paths in it are relative to dir.
func Parse(name string, data []byte, dir string) (*Config, error) {
	d := &decoder{faults: &faults{file: name}, dir: dir}
	root := parse(data, d.faults)
	if root == nil {
		return nil, d.err()
	}
	var file configFile
	d.value(root, reflect.ValueOf(&file).Elem(), field{})
	c := &Config{
		Fleet: file.Fleet, State: string(file.State), Listen: string(file.Listen), URL: string(file.URL), PoolsFrom: file.PoolsFrom, Instances: file.Instances, Jobs: file.Jobs, Auth: file.Auth, Limits: file.Limits, Hooks: file.Hooks, Results: file.Results, Notify: file.Notify, Budgets: file.Budget, Kubernetes: file.Kubernetes,
		file: name, dir: dir, text: data, root: root, read: file,
	}
	for cloud := range file.Clouds {
		c.Clouds = append(c.Clouds, d.cloud(cloud, root.get("clouds").get(cloud)))
	}
	slices.SortFunc(c.Clouds, func(a, b Cloud) int { return strings.Compare(a.Name, b.Name) })
	c.Pools = named(file.Pools, c.CloudNames())
	c.check(d.faults)
	if err := d.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Locate reads only where a configuration's controller is, so that everything else may be invalid.
func Locate(path string) (*Config, error) {
	data, dir, err := read(path)
	if err != nil {
		return nil, err
	}
	d := &decoder{faults: &faults{file: path}, dir: dir}
	root := parse(data, d.faults)
	if root == nil {
		return nil, d.err()
	}
	var file whereabouts
	keys := names(fieldsOf(reflect.TypeFor[whereabouts]()))
	if err := d.decodeInto(root.with(func(e entry) bool { return slices.Contains(keys, e.key.text) }), &file); err != nil {
		return nil, err
	}
	c := &Config{Fleet: file.Fleet, State: string(file.State), Listen: string(file.Listen), URL: string(file.URL), file: path, dir: dir, text: data, root: root}
	return c, CheckFleet(c.Fleet)
}

// ParseRemoved reads only one cloud of an earlier configuration, without what only new instances need, so that everything
// else may be invalid, such as the path of a file that was removed together with the cloud. It returns nil if there is
// no such cloud.
func ParseRemoved(file string, data []byte, dir, name string) (*Cloud, error) {
	d := &decoder{faults: &faults{file: file}, dir: dir}
	n := parse(data, d.faults).given("clouds").given(name)
	if n == nil {
		return nil, d.err()
	}
	c := d.cloud(name, n.with(func(e entry) bool { return e.key.text != "template" && e.key.text != "cloud_init" }))
	return &c, d.err()
}

// read reads a file of limited size, and returns its folder.
func read(path string) (data []byte, dir string, err error) {
	dir, err = filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, "", fmt.Errorf("finding the folder of %s: %w", path, err)
	}
	file, err := open(path)
	if err != nil {
		fault := drover.Errorf(drover.KindInvalid, "opening %s: %v", path, reason(err))
		if !filepath.IsAbs(path) {
			fault = fault.WithHint("the path is relative to the current folder")
		}
		return nil, "", fault
	}
	defer file.Close()
	data, err = io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, "", drover.Errorf(drover.KindInvalid, "reading %s: %v", path, reason(err))
	}
	if info, err := file.Stat(); err == nil && len(data) == 0 && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, "", drover.Errorf(drover.KindInvalid, "%s is a pipe that no program is writing to", path).
			WithHint("use a file: it is read more than once")
	}
	return data, dir, nil
}

// Fault is an error at a place in the file, for faults that only the caller can find: at the value under path
// ("clouds.here.driver"), or at the nearest place in the file.
func (c *Config) Fault(path, message, hint string) error {
	f := &faults{file: c.file}
	f.add(c.root.at(path), message, hint)
	return f.err()
}

// CloudNames lists the clouds' names.
func (c *Config) CloudNames() []string {
	var list []string
	for _, cloud := range c.Clouds {
		list = append(list, cloud.Name)
	}
	return list
}

// Cloud returns the cloud with this name; nil if there is none.
func (c *Config) Cloud(name string) *Cloud {
	at := slices.IndexFunc(c.Clouds, func(cl Cloud) bool { return cl.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Clouds[at]
}

// Hash is equal for configurations with the same meaning: order, comments and written-out defaults do not change it. A
// secret counts by where it is kept.
func (c *Config) Hash() string {
	whole := struct {
		Fleet, State, Listen, URL string
		Clouds                    []hashedCloud
		Pools                     []Pool
		Instances                 Instances
		Jobs                      Jobs
		Auth                      Auth
		Limits                    drover.UserLimits
		Hooks                     Hooks
		Results                   Results
		Allow                     []string
		Budgets                   []Budget
		Kubernetes                Kubernetes
		PoolsFrom                 *PoolsFrom `json:",omitempty"`
	}{Fleet: c.Fleet, State: c.State, Listen: c.Listen, URL: c.URL, Pools: c.Pools, Instances: c.Instances, Jobs: c.Jobs, Auth: c.Auth, Limits: c.Limits, Hooks: c.Hooks, Results: c.Results, Allow: c.Notify.Allow, Budgets: c.Budgets, Kubernetes: c.Kubernetes}
	if c.PoolsFrom != (PoolsFrom{}) {
		whole.PoolsFrom = &c.PoolsFrom
	}
	for _, cl := range c.Clouds {
		whole.Clouds = append(whole.Clouds, cl.hashed())
	}
	return digest(whole)
}

// Hash is equal for clouds with the same meaning: see [Config.Hash].
func (c Cloud) Hash() string { return digest(c.hashed()) }

// Same reports whether two configurations have the same meaning and the same secrets.
func (c *Config) Same(other *Config) bool {
	return c.Hash() == other.Hash() && c.Notify.Secret.Reveal() == other.Notify.Secret.Reveal() && slices.EqualFunc(c.Clouds, other.Clouds, Cloud.Same)
}

// Same reports whether two clouds have the same meaning and the same secrets.
func (c Cloud) Same(other Cloud) bool {
	return c.Hash() == other.Hash() && maps.EqualFunc(c.secrets, other.secrets, func(a, b drover.Secret) bool { return a.Reveal() == b.Reveal() })
}

// hashedCloud is the meaning of a cloud's configuration.
type hashedCloud struct {
	Name string
	Common
	Own *node
}

func (c Cloud) hashed() hashedCloud { return hashedCloud{c.Name, c.Common, c.own} }

func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data always marshals
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
