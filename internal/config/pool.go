package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// Pool is a number of instances to keep, whether or not there are jobs for them.
type Pool struct {
	Name          string            `yaml:"-"`
	Size          *int              `yaml:"size" min:"0" max:"100000" doc:"exactly this many instances; one of size, floor and spare is required"`
	Floor         *int              `yaml:"floor" min:"0" max:"100000" doc:"at least this many instances; Drover may rent more for jobs"`
	Spare         *int              `yaml:"spare" min:"0" max:"100000" doc:"this many idle instances beyond those in use"`
	Ratio         Percent           `yaml:"ratio" doc:"for a spare pool: the minimum number of idle instances as a share of those that run jobs, such as 10%"`
	Schedule      []Scheduled       `yaml:"schedule" doc:"other values at certain times; each applies until the next"`
	Max           int               `yaml:"max" min:"1" max:"100000" doc:"for a floor or spare pool: at most this many"`
	Stopped       int               `yaml:"stopped" min:"0" max:"10000" doc:"keep this many more instances stopped, to be started before others are rented; on demand only"`
	Clouds        []string          `yaml:"clouds" doc:"the clouds it may use; default: all"`
	Zones         []string          `yaml:"zones" doc:"the zones it may use, each as ZONE or CLOUD/ZONE; default: all zones of its clouds"`
	Type          string            `yaml:"type" doc:"its instance type"`
	Types         []string          `yaml:"types" doc:"its instance types, if there are several; default: any that meets resources"`
	Resources     PoolResources     `yaml:"resources" doc:"the minimum for each instance"`
	Market        drover.Market     `yaml:"market" doc:"on_demand (default) or spot"`
	Mix           drover.Mix        `yaml:"mix" doc:"instead of market: at least this many on demand, and the rest wherever it is cheapest"`
	Spread        drover.PoolSpread `yaml:"spread" doc:"balanced: a new instance goes to the zone with the fewest instances; cheapest: to the cheapest zone"`
	Cooldown      time.Duration     `yaml:"exhaustion_cooldown" doc:"how long to avoid a zone that has run out of capacity"`
	Rebalance     bool              `yaml:"rebalance" doc:"true: replace instances to restore the balance of zones; false: only new instances restore it"`
	Replace       Replace           `yaml:"replace" doc:"how instances are replaced when a change makes them outdated"`
	Disk          drover.Bytes      `yaml:"disk" doc:"size of the root volume; default: its cloud's disk"`
	Image         Images            `yaml:"image" json:",omitempty" doc:"what its instances boot from, instead of their cloud's image"`
	MaxAge        time.Duration     `yaml:"max_age" doc:"replace instances that are older than this; 0: never"`
	OrphanTimeout time.Duration     `yaml:"orphan_timeout" doc:"an instance that does not hear from a controller for this long powers itself off; 0: never"`
	Login         drover.PoolLogin  `yaml:"login" doc:"ssh: an instance is ready when its boot probe passes; none: Drover never logs in, and an instance is ready as soon as its cloud reports it as running"`
	BootProbe     string            `yaml:"boot_probe" json:",omitempty" doc:"a shell command that exits 0 when an instance is ready; default: instances.boot_probe"`
	Health        *Health           `yaml:"health" json:",omitempty" doc:"a health check that the controller runs on each instance; default: none"`
	Jobs          *bool             `yaml:"jobs" doc:"whether jobs may use its idle instances; default: true for floor and spare pools"`
	NamePrefix    string            `yaml:"name_prefix" doc:"the prefix of its instances' names in the cloud"`
	Template      FileText          `yaml:"template" doc:"a file with an instance template, instead of its cloud's"`
	CloudInit     FileText          `yaml:"cloud_init" doc:"a file for the first boot, in addition to its cloud's cloud_init: #cloud-config or a script"`
	Hooks         Hooks             `yaml:"hooks" doc:"hooks for its instances, in addition to the fleet's"`
	Kubernetes    *NodeGroup        `yaml:"kubernetes" doc:"instead of size, floor and spare: a node group, whose size the cluster's autoscaler sets"`
}

// PoolResources is the minimum of each instance of a pool.
type PoolResources struct {
	VCPUs  drover.MilliCPU `yaml:"vcpus" doc:"processors"`
	Memory drover.Bytes    `yaml:"memory"`
	GPUs   int             `yaml:"gpus" min:"0" max:"1000"`
	Arch   drover.Arch     `yaml:"arch" doc:"default: any"`
}

// Replace is how a pool's outdated instances are replaced.
type Replace struct {
	MaxUnavailable Portion `yaml:"max_unavailable" doc:"how many instances may be unavailable during a replacement: a number, or a share of the pool, such as 10%"`
	MaxSurge       Portion `yaml:"max_surge" doc:"how many extra instances may exist during a replacement"`
}

// Portion is a number of a pool's instances, or a percentage of them.
type Portion struct {
	Count int
	Part  Percent
}

// String returns the portion in its written form.
func (p Portion) String() string {
	if p.Part == 0 {
		return strconv.Itoa(p.Count)
	}
	return p.Part.String()
}

func (p *Portion) decodeWord(d *decoder, n *node) {
	if strings.HasSuffix(n.text, "%") {
		*p = Portion{}
		p.Part.decodeWord(d, n)
		return
	}
	count, err := strconv.ParseUint(n.text, 10, 17)
	if err != nil {
		d.add(n, quote(n.text)+" is not a number of instances", "write a number or a percentage, such as 1 or 10%")
		return
	}
	*p = Portion{Count: int(count)}
}

func (Portion) schema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: new(0.0)}, {Type: "string", Pattern: `^([0-9]+|[0-9]{1,2}(\.[0-9]{1,2})?%)$`}}}
}

// Default sets the defaults of a pool.
func (p *Pool) Default() {
	*p = Pool{Spread: drover.SpreadBalanced, Cooldown: 5 * time.Minute, Login: drover.LoginSSH}
	p.Replace.Default()
}

// Default replaces one instance at a time.
func (r *Replace) Default() {
	*r = Replace{MaxUnavailable: Portion{Count: 1}, MaxSurge: Portion{Count: 1}}
}

// Kind returns the kind of the pool's number, and the number.
func (p Pool) Kind() (drover.PoolKind, int) {
	switch {
	case p.Kubernetes != nil:
		return drover.PoolGroup, 0
	case p.Floor != nil:
		return drover.PoolFloor, *p.Floor
	case p.Spare != nil:
		return drover.PoolSpare, *p.Spare
	case p.Size != nil:
		return drover.PoolSize, *p.Size
	}
	return drover.PoolSize, 0
}

// RunsJobs reports whether the queue may use the pool's idle instances.
func (p Pool) RunsJobs() bool {
	kind, _ := p.Kind()
	if p.Jobs == nil {
		return kind != drover.PoolSize && kind != drover.PoolGroup && p.Login == drover.LoginSSH
	}
	return *p.Jobs
}

// TypeNames returns the pool's instance types; none: any type with the resources.
func (p Pool) TypeNames() []string {
	if p.Type != "" {
		return []string{p.Type}
	}
	return p.Types
}

// Need returns the minimum of each instance.
func (p Pool) Need() drover.Resources {
	r := p.Resources
	return drover.Resources{CPU: r.VCPUs, Memory: r.Memory, Disk: p.Disk, GPUs: r.GPUs, Arch: r.Arch}
}

// TemplateHash is equal for pools whose instances are created in the same way.
func (p Pool) TemplateHash() string {
	return digest(struct {
		Types  []string
		Need   drover.Resources
		Market drover.Market
		Login  drover.PoolLogin
		Init   string
		Raw    string     `json:",omitempty"`
		Group  *NodeGroup `json:",omitempty"`
		Image  Images     `json:",omitempty"`
	}{slices.Sorted(slices.Values(p.TypeNames())), p.Need(), p.Markets(), p.Login, p.CloudInit.Text, p.Template.Text, p.Kubernetes.made(), p.Image})[:16]
}

// made returns the part of a node group that determines how its nodes are created.
func (g *NodeGroup) made() *NodeGroup {
	if g == nil {
		return nil
	}
	own := *g
	own.Min, own.Max, own.Budget, own.Reserved = 0, 0, 0, NodeReserved{}
	return &own
}

// named sorts pools, and sets each one's name and, if it names no clouds, all clouds.
func named(pools map[string]Pool, clouds []string) (list []Pool) {
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := pools[name]
		p.Name = name
		if len(p.Clouds) == 0 {
			p.Clouds = slices.Clone(clouds)
		}
		list = append(list, p)
	}
	return list
}

// checkPools checks the values of each pool against each other.
func (c *Config) checkPools(f *faults) {
	for _, p := range c.Pools {
		n := c.root.find("pools", p.Name)
		if n.shape != mapping {
			continue // already reported
		}
		if !fleetName.MatchString(p.Name) {
			f.add(n, quote(p.Name)+" is not a valid pool name", "use 1 to 32 letters, digits and dashes, beginning with a letter")
		}
		p.checkKind(f, n)
		c.checkPool(f, n, p)
	}
}

// checkPool checks a pool's values against each other, except its number.
func (c *Config) checkPool(f *faults, n *node, p Pool) {
	p.checkWork(f, n)
	p.checkMarkets(f, n)
	p.checkStopped(f, n)
	c.checkPlaces(f, n, p)
	c.checkPoolTypes(f, n, p)
	c.checkPoolLife(f, n, p)
	c.checkScripts(f, n.find("hooks"), p.Hooks)
}

// checkKind checks that the pool has one number, within its maximum.
func (p Pool) checkKind(f *faults, n *node) {
	var given []string
	for _, key := range []string{"size", "floor", "spare", "kubernetes"} {
		if v := n.get(key); v != nil && v.shape != absent {
			given = append(given, key)
		}
	}
	kind, count := p.Kind()
	switch {
	case len(given) == 0:
		f.add(n, "size is missing", "write size: 3, or use floor, spare or kubernetes instead")
	case len(given) > 1:
		f.add(n.find(given[1]), strings.Join(given, " and ")+" are given, but a pool can have only one of them", "leave out all but one")
	case p.Ratio > 0 && kind != drover.PoolSpare:
		f.add(n.find("ratio"), "ratio is only for spare pools", "write spare: 0 to keep only as many idle instances as ratio demands")
	case p.Max > 0 && kind == drover.PoolGroup:
		f.add(n.find("max"), "a node group's max belongs under kubernetes, not here", "leave it out")
	case p.Max > 0 && kind == drover.PoolSize:
		f.add(n.find("max"), "max is only for floor and spare pools; this one has a fixed size", "leave it out")
	case p.Max > 0 && count > p.Max:
		f.addf(n.find("max"), "max (%d) is less than %s (%d)", p.Max, kind, count)
	}
	if r := p.Replace; r.MaxUnavailable == (Portion{}) && r.MaxSurge == (Portion{}) {
		f.add(n.find("replace"), "max_unavailable and max_surge are both 0, so no instance could be replaced", "write max_surge: 1")
	}
}

// checkWork checks that jobs can run on a pool that allows them.
func (p Pool) checkWork(f *faults, n *node) {
	kind, _ := p.Kind()
	switch {
	case p.Login == drover.LoginNone && p.Jobs != nil && *p.Jobs:
		f.add(n.find("jobs"), "jobs cannot run on instances that Drover does not log in to", "leave out login: none or jobs: true")
	case p.Login == drover.LoginNone && kind == drover.PoolSpare:
		f.add(n.find("login"), "spare instances are for jobs, which need instances that Drover logs in to", "write size: instead of spare:")
	case p.Jobs != nil && !*p.Jobs && kind == drover.PoolSpare:
		f.add(n.find("jobs"), "spare instances are for jobs, but this pool has jobs: false", "write size: instead of spare:, or leave out jobs")
	}
}

// checkMarkets checks that the pool has one market, or a mix of both, and that its prefix is valid in every cloud.
func (p Pool) checkMarkets(f *faults, n *node) {
	if p.Market != "" && p.Mix != (drover.Mix{}) {
		f.add(n.find("mix"), "market and mix are both given", "leave out market")
	}
	if p.NamePrefix != "" && !namePrefix.MatchString(p.NamePrefix) {
		f.add(n.find("name_prefix"), quote(p.NamePrefix)+" is not a valid name prefix", "use a lower-case letter, then up to 15 lower-case letters, digits and dashes")
	}
}

// checkStopped rejects stopped instances in node groups, and in pools that may use spot.
func (p Pool) checkStopped(f *faults, n *node) {
	switch kind, _ := p.Kind(); {
	case p.Stopped == 0:
	case kind == drover.PoolGroup:
		f.add(n.find("stopped"), "the autoscaler of a node group decides how many nodes there are, and cannot start stopped ones", "leave it out")
	case p.Markets() != drover.OnDemand:
		f.add(n.find("stopped"), "spot instances cannot be kept stopped", "write market: on_demand, or leave out stopped")
	}
}

// namePrefix leaves room for the rest of a name in every cloud; some allow 63 characters.
var namePrefix = regexp.MustCompile(`^[a-z][a-z0-9-]{0,15}$`)

// Markets returns the pool's market; empty: both, in the proportions of its mix.
func (p Pool) Markets() drover.Market {
	if p.Mix != (drover.Mix{}) {
		return ""
	}
	return cmp.Or(p.Market, drover.OnDemand)
}

// checkPlaces checks that the pool's clouds and zones exist, as far as the configuration lists them, and allow that
// many instances.
func (c *Config) checkPlaces(f *faults, n *node, p Pool) {
	var zones []string
	all, most := true, 0
	for i, name := range p.Clouds {
		cl := c.Cloud(name)
		if cl == nil {
			f.addUnknown(n.find("clouds", strconv.Itoa(i)), "there is no cloud "+quote(name), name, c.CloudNames())
			return
		}
		most += cl.MaxInstances
		own := cl.zones()
		all = all && len(own) > 0
		for _, zone := range own {
			zones = append(zones, zone, name+"/"+zone)
		}
	}
	for i, zone := range p.Zones {
		if all && !slices.Contains(zones, zone) {
			f.addUnknown(n.find("zones", strconv.Itoa(i)), "none of the pool's clouds has a zone "+quote(zone), zone, zones)
		}
	}
	c.checkSchedule(f, n, p, most)
	if kind, count := p.Kind(); count > most {
		f.add(n.find(string(kind)), fmt.Sprintf("%d instances exceed the total max_instances of the pool's clouds, %d", count, most), "raise max_instances")
	} else if count+p.Stopped > most {
		f.add(n.find("stopped"), fmt.Sprintf("%d instances, %d of them stopped, exceed the total max_instances of the pool's clouds, %d", count+p.Stopped, p.Stopped, most), "raise max_instances")
	}
}

// zones returns the zones in the cloud's part of the file; none if the driver decides.
func (c Cloud) zones() (names []string) {
	if c.own == nil {
		return nil
	}
	if list := c.own.get("zones"); list != nil {
		for _, item := range list.items {
			names = append(names, item.text)
		}
	}
	return names
}

// checkPoolTypes rejects types that no cloud of the pool may use.
func (c *Config) checkPoolTypes(f *faults, n *node, p Pool) {
	if p.Type != "" && len(p.Types) > 0 {
		f.add(n.find("types"), "type and types are both given", "write only types:")
	}
	for i, name := range p.TypeNames() {
		refused := ""
		for _, cl := range c.Clouds {
			if !slices.Contains(p.Clouds, cl.Name) {
				continue
			}
			if refused = cl.Types.Refuses(name, 0); refused == "" {
				break
			}
		}
		if refused != "" {
			f.addf(cmp.Or(n.get("type"), n.find("types", strconv.Itoa(i))), "type %s may not be used in any of the pool's clouds: %s", quote(name), refused)
		}
	}
}

// checkPoolLife checks that timeouts are longer than what happens within them.
func (c *Config) checkPoolLife(f *faults, n *node, p Pool) {
	if p.BootProbe != "" && p.Login == drover.LoginNone {
		f.add(n.find("boot_probe"), "a boot probe runs on the instance, but Drover does not log in there", "leave it out; a health check needs no login")
	}
	at := n.find("orphan_timeout")
	switch probe := c.Instances.ProbeTimeout; {
	case p.OrphanTimeout != 0 && p.Login == drover.LoginNone:
		f.add(at, "with orphan_timeout, an instance that Drover does not log in to would always power itself off", "leave it out")
	case p.OrphanTimeout != 0 && p.OrphanTimeout <= probe:
		f.addf(at, "orphan_timeout (%v) must be longer than probe_timeout (%v), or 0 for never", p.OrphanTimeout, probe)
	}
	if p.Cooldown <= 0 {
		f.addf(n.find("exhaustion_cooldown"), "exhaustion_cooldown must be greater than 0")
	}
}
