package config

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"drover"
)

// configFile is the configuration in its written form. The clouds are decoded one by one, since they also have drivers'
// keys.
type configFile struct {
	Version version `yaml:"version,required" min:"1" max:"1" doc:"the version of this format: 1"`
	whereabouts
	Clouds     map[string]cloudNode `yaml:"clouds,required" doc:"where instances come from; you choose the names"`
	Budget     Budgets              `yaml:"budget" doc:"spending limits per hour, day and month"`
	Pools      map[string]Pool      `yaml:"pools" doc:"instances to keep whether there are jobs or not; you choose the names"`
	PoolsFrom  PoolsFrom            `yaml:"pools_from" doc:"another pool, described in prevmtable's format by an attribute of a cloud"`
	Instances  Instances            `yaml:"instances" doc:"lifecycle settings for instances"`
	Jobs       Jobs                 `yaml:"jobs" doc:"settings for all jobs"`
	Auth       Auth                 `yaml:"auth" doc:"what tokens may see"`
	Limits     drover.UserLimits    `yaml:"limits" doc:"limits for each user of drover serve"`
	Hooks      Hooks                `yaml:"hooks" doc:"programs to run, or URLs to post to, when something happens to an instance"`
	Results    Results              `yaml:"results" doc:"what happens to jobs' logs and outputs under drover serve"`
	Kubernetes Kubernetes           `yaml:"kubernetes" doc:"the Kubernetes cluster that the node groups join"`
	Notify     Notify               `yaml:"notify" doc:"settings for the messages that batches request"`
}

// whereabouts is where a configuration's controller is.
type whereabouts struct {
	Fleet  string        `yaml:"fleet" doc:"the tag of every instance; two controllers with different fleets never touch each other's instances"`
	State  stateURL      `yaml:"state" doc:"the file for the records: sqlite:PATH"`
	Listen listenAddress `yaml:"listen" doc:"the address of drover serve: HOST:PORT"`
	URL    baseURL       `yaml:"url" doc:"the URL that clients use, if it differs from listen: http or https, without a path"`
}

// Default sets the address that a controller listens on by default.
func (w *whereabouts) Default() { w.Listen = defaultListen }

// Results says how long results are kept.
type Results struct {
	Keep time.Duration `yaml:"keep" doc:"delete logs and outputs this long after their job ends; 0: never"`
}

// Notify has the settings of messages about batches.
type Notify struct {
	Secret drover.Secret `yaml:"secret" doc:"the secret that signs the messages"`
	Allow  []string      `yaml:"allow" doc:"hosts with non-public addresses that may receive messages"`
}

// check rejects invalid hosts.
func (y Notify) check(f *faults, n *node) {
	for i, host := range y.Allow {
		if host == "" || strings.ContainsAny(host, "/:@ ") && net.ParseIP(host) == nil {
			f.add(n.find("allow", strconv.Itoa(i)), quote(host)+" is not a host", "write only its name or address, such as hooks.example.org")
		}
	}
}

// Default sets the defaults of missing parts.
func (c *configFile) Default() {
	c.whereabouts.Default()
	c.Instances.Default()
	c.Limits.Default()
	c.Kubernetes.Default()
}

// version is the format's version.
type version int

func (v *version) decodeWord(d *decoder, n *node) {
	if n.text != "1" {
		d.addf(n, "version %s is not supported; this version of Drover reads version 1", strings.Trim(quote(n.text), `"`))
		return
	}
	*v = 1
}

func (version) schema() *jsonschema.Schema { return &jsonschema.Schema{Type: "integer"} }

// Jobs has the settings of all jobs.
type Jobs struct {
	ScheduleTimeout time.Duration `yaml:"schedule_timeout" doc:"cancel a job that has been blocked everywhere for this long in total; 0: never"`
	Mix             drover.Mix    `yaml:"mix" doc:"how jobs that prefer spot are divided between the markets; default: wherever it is cheapest"`
	Spread          Spread        `yaml:"spread" doc:"how much of the fleet may be in one spot offering; default: all of it"`
	Shares          drover.Shares `yaml:"shares" doc:"how jobs of the same priority share the fleet; default: first come, first served"`
	OnOOM           OnOOM         `yaml:"on_oom" doc:"what to do when a job runs out of memory; default: it fails"`
}

// Auth is what the holders of tokens may see.
type Auth struct {
	Shared bool `yaml:"shared" doc:"true: every token can read all users' logs, outputs, labels and commands; default: view and submit tokens can read only those of their own user"`
}

// Spread limits how much of the fleet may be of one kind.
type Spread struct {
	SpotOffering Percent `yaml:"spot_offering" doc:"the largest share of the fleet's vCPUs in one spot offering, such as 20%; one instance is always allowed"`
}

// OnOOM is what happens when a job ran out of memory.
type OnOOM struct {
	Grow Growth `yaml:"grow" doc:"retry the job with this many times the memory, such as 2 or 1.5, as long as a configured type has enough"`
}

// Growth is the factor for the retry, in thousandths; 0: no retry.
type Growth int

// The limits of the factor.
const (
	leastGrowth Growth = 1000 // no growth
	mostGrowth  Growth = 16_000
)

func (g *Growth) decodeWord(d *decoder, n *node) {
	times, err := drover.ParseMilliCPU(n.text) // it parses a number in thousandths
	if err != nil || Growth(times) <= leastGrowth || Growth(times) > mostGrowth {
		d.add(n, fmt.Sprintf("%s is not a factor between 1 and 16", quote(n.text)), "write 2 for twice the memory")
		return
	}
	*g = Growth(times)
}

func (Growth) schema() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"number", "string"}, ExclusiveMinimum: new(1.0), Maximum: new(16.0)}
}

// Common has the keys of every cloud, whatever its driver.
type Common struct {
	Driver       string        `yaml:"driver,required" doc:"the kind of cloud"`
	DryRun       bool          `yaml:"dry_run" doc:"only read from the cloud, and log what would have been changed"`
	MaxInstances int           `yaml:"max_instances" min:"1" max:"100000" doc:"at most this many instances at once"`
	Limits       []Limit       `yaml:"limits" doc:"limits for parts of the cloud, such as a zone or a quota group"`
	MaxCreating  int           `yaml:"max_creating" min:"1" max:"1000" doc:"at most this many create requests at once"`
	ListInterval time.Duration `yaml:"list_interval" doc:"how often to list the cloud's instances"`
	Image        Images        `yaml:"image" doc:"what instances boot from: an image's id or name, with * for any text (the newest match is used); or one for each architecture"`
	Disk         drover.Bytes  `yaml:"disk" doc:"size of the root volume, unless a job needs more"`
	Template     FileText      `yaml:"template" doc:"a file with an instance template in the driver's own format; Drover fills in {fleet} {pool} {name} {zone} {project}"`
	CloudInit    FileText      `yaml:"cloud_init" doc:"a file with #cloud-config or a script that runs after Drover's own part of cloud-init; it has the same placeholders as template"`
	SSH          SSH           `yaml:"ssh" doc:"how to reach instances"`
	RunnerDir    string        `yaml:"runner_dir" doc:"the folder on an instance for the runner and its attempts"`
	Types        TypeFilter    `yaml:"types" doc:"which of the cloud's instance types to use"`
	Prices       Prices        `yaml:"prices" doc:"what you pay, if it differs from the cloud's list prices"`
}

// Default sets the defaults of a cloud.
func (c *Common) Default() {
	*c = Common{MaxInstances: 10, MaxCreating: 10, ListInterval: time.Minute, SSH: SSH{Port: 22}, Prices: Prices{Interval: priceInterval}}
}

// Limit limits how much of a part of a cloud may be used at once. The part is everything that matches those of the
// first four keys that are given.
type Limit struct {
	Zone       string          `yaml:"zone" doc:"only in this zone"`
	Type       string          `yaml:"type" doc:"only of this instance type"`
	Market     drover.Market   `yaml:"market" doc:"only in this market"`
	QuotaGroup string          `yaml:"quota_group" doc:"only instances that count against this quota of the account, named as in drover offers -o json"`
	Instances  int             `yaml:"instances" min:"1" max:"100000" doc:"at most this many instances at once"`
	VCPUs      drover.MilliCPU `yaml:"vcpus" doc:"at most this many vCPUs in total"`
}

// checkLimits checks that each limit has a number.
func checkLimits(f *faults, n *node, limits []Limit) {
	for i := range limits {
		if at := n.find(strconv.Itoa(i)); at.shape == mapping && at.find("instances") == at && at.find("vcpus") == at {
			f.add(at, "instances and vcpus are missing", "write one of them, or both")
		}
	}
}

// SSH is how a cloud's instances are reached. For empty keys the driver decides.
type SSH struct {
	User    string      `yaml:"user" doc:"the user to log in as"`
	Port    int         `yaml:"port" min:"1" max:"65535" doc:"the port on which sshd listens"`
	Address AddressKind `yaml:"address" doc:"which of an instance's addresses to connect to; default: the public one if there is one"`
	Keys    []FilePath  `yaml:"keys" doc:"private key files: new instances accept the first, and logins try all of them; default: the fleet's own key"`
}

// AddressKind is one of an instance's two addresses.
type AddressKind string

// The kinds of address.
const (
	AddressPublic  AddressKind = "public"
	AddressPrivate AddressKind = "private"
)

// TypeFilter restricts the instance types of a cloud. The zero filter allows all of them.
type TypeFilter struct {
	Include  []string     `yaml:"include" doc:"patterns such as m7*; a type must match one of them"`
	Exclude  []string     `yaml:"exclude" doc:"patterns of types that are not used"`
	MaxPrice drover.Money `yaml:"max_price" doc:"the highest price per hour"`
}

// Refuses returns why a type at this hourly price may not be used; empty if it may.
func (f TypeFilter) Refuses(name string, price drover.Money) string {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, name)
			return err == nil && ok
		})
	}
	switch {
	case len(f.Include) > 0 && !matches(f.Include):
		return "types.include does not match it"
	case matches(f.Exclude):
		return "types.exclude matches it"
	case f.MaxPrice > 0 && price > f.MaxPrice:
		return fmt.Sprintf("it costs %v an hour, more than types.max_price, %v", price, f.MaxPrice)
	}
	return ""
}

// Instances is the life of an instance, from its boot to its end.
type Instances struct {
	BootProbe        string         `yaml:"boot_probe" doc:"a shell command that exits 0 when the instance is ready"`
	BootTimeout      time.Duration  `yaml:"boot_timeout" doc:"an instance that is not ready within this time counts as broken"`
	ProbeInterval    time.Duration  `yaml:"probe_interval" doc:"how often to check that an instance answers"`
	ProbeDeadline    time.Duration  `yaml:"probe_deadline" doc:"how long to wait for an instance's answer; default: half of probe_interval, at most 5s"`
	ProbeTimeout     time.Duration  `yaml:"probe_timeout" doc:"an instance that is silent for this long counts as broken"`
	PartitionTimeout time.Duration  `yaml:"partition_timeout" doc:"if all of a cloud's instances are silent, wait this long before giving up on them; 0: until one answers"`
	IdleTimeout      time.Duration  `yaml:"idle_timeout" doc:"destroy an instance that has been idle for this long, or earlier if keeping it does not save money"`
	TermTimeout      time.Duration  `yaml:"term_timeout" doc:"the time from the first SIGTERM to SIGKILL"`
	ShutdownTimeout  time.Duration  `yaml:"shutdown_timeout" doc:"how often to repeat a destroy request until the cloud no longer lists the instance"`
	OrphanTimeout    time.Duration  `yaml:"orphan_timeout" doc:"an instance that has no job and does not hear from a controller for this long powers itself off; 0: never"`
	Health           string         `yaml:"health" doc:"a shell command that exits 0 while the instance is healthy; after two failures in a row the instance gets no more work"`
	HealthInterval   time.Duration  `yaml:"health_interval" doc:"how often health runs; one run may take half of that, at most 30s"`
	KeepBroken       time.Duration  `yaml:"keep_broken" doc:"keep a broken instance for this long, for inspection"`
	MaxAge           time.Duration  `yaml:"max_age" doc:"an older instance gets no more work and is destroyed once it is empty; 0: never"`
	Reuse            Reuse          `yaml:"reuse" doc:"always: an instance runs one job after another; never: each instance runs one job"`
	Sharing          drover.Sharing `yaml:"sharing" doc:"user: an instance runs only the jobs of its first user; everyone: an instance runs the jobs of all users, isolated from each other"`
	Containers       Runtime        `yaml:"containers" doc:"the container runtime for jobs with an image; default: docker if it works there, otherwise podman"`
}

// Runtime runs containers on an instance.
type Runtime string

// The runtimes.
const (
	Docker Runtime = "docker"
	Podman Runtime = "podman"
)

// Reuse is whether an instance is used again for the next job.
type Reuse string

// The kinds of reuse.
const (
	ReuseAlways Reuse = "always"
	ReuseNever  Reuse = "never"
)

// HealthDeadline is how long one check of an instance's health may take.
func (i Instances) HealthDeadline() time.Duration { return min(30*time.Second, i.HealthInterval/2) }

// Default sets the default lifecycle of instances.
func (i *Instances) Default() {
	*i = Instances{
		BootProbe:        "true",
		BootTimeout:      10 * time.Minute,
		ProbeInterval:    10 * time.Second,
		ProbeTimeout:     2 * time.Minute,
		PartitionTimeout: time.Hour,
		IdleTimeout:      time.Minute,
		TermTimeout:      2 * time.Minute,
		ShutdownTimeout:  10 * time.Second,
		OrphanTimeout:    time.Hour,
		HealthInterval:   time.Minute,
		Reuse:            ReuseAlways,
		Sharing:          drover.ShareUser,
	}
}
