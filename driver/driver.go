// Package driver is the contract that a cloud must meet so that Drover can rent instances from it.
//
// A driver is small on purpose: it translates between one cloud's API and the types of package drover, classifies the
// cloud's errors, and decides nothing. It never retries, never waits for a rate limit and never remembers what it
// created: the engine repeats calls, and the cloud's own list is the truth. Package drivertest tests what the
// comments here specify.
package driver

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"drover"
)

// Opener opens a cloud from its own part of the configuration. It must not create anything there.
type Opener func(ctx context.Context, o Options) (Cloud, error)

// Options are what a driver is opened with.
type Options struct {
	Name   string               // the cloud's name in the configuration
	Fleet  string               // never empty; only letters, digits and dashes, so that it fits every cloud's names; part of what is created
	Decode func(into any) error // decodes the driver's own keys of the configuration, strictly; its errors name line and column
	Dir    string               // the folder that relative paths in the configuration are relative to
	Folder string               // where a driver may keep caches and, if it makes instances on this host, the instances
	Log    *slog.Logger
	Metric func(call string, err error) // counts one call to the cloud's API, by its name without ids, with its result; may be nil
}

// Cloud is an open cloud. All methods are safe for concurrent use and obey their context's deadline. Every error that
// comes from the cloud is a *drover.Error with the right kind; an error without meaning is transient.
type Cloud interface {
	// Capabilities returns what this driver can do. It never changes while the cloud is open.
	Capabilities() Capabilities

	// Offerings lists every type × zone × market that could be created now, with its hourly price and, where types
	// share one, its quota group, sorted as SortOfferings does. It includes offerings that are merely out of stock.
	Offerings(ctx context.Context) ([]drover.Offering, error)

	// Create makes one instance from the first available candidate, and returns it with that candidate. It returns as
	// soon as the cloud has accepted the request, with empty addresses if they are not known yet. Calling it again with
	// the same name never makes a second instance: it returns the existing one, or the same error. If the context ends
	// first, the instance may or may not come into being; a list shows which.
	//
	// The create call itself includes the tags, so that no instance is ever without them. The cloud may list a new
	// instance late: an instance that a list does not contain yet is not gone, see Capabilities.ListLag.
	//
	// A cloud may accept a request that it then cannot fulfil. Such an instance is listed with the error that Create
	// would have returned.
	//
	// Quota and capacity errors name their scope and market. A capacity error means that none of the candidates is
	// available; any other error concerns all of them.
	Create(ctx context.Context, r CreateRequest) (Instance, Candidate, error)

	// List returns every instance with all the given tags, including booting and stopping ones. It may return
	// others, and duplicates: callers filter by tag and id. A partial answer is an error, never a shorter list.
	List(ctx context.Context, tags map[string]string) ([]Instance, error)

	// Destroy ends the instance and everything that was created with it. It returns once the cloud has accepted the
	// request; the instance may stay listed for a while. It succeeds if the instance is already gone.
	Destroy(ctx context.Context, id string) error

	// SetTags replaces all tags of the instance. KindNotFound if it does not exist; KindTransient while it boots, if
	// the cloud accepts no tags then.
	SetTags(ctx context.Context, id string, tags map[string]string) error

	// VerifyHostKey checks a host key that a server offered as the instance's (in SSH wire format): nil if the cloud
	// confirms it, KindHostKey if the cloud denies it, KindUnsupported if it cannot tell, KindTransient if it cannot
	// tell yet. A *RunFirst names a command: the caller logs in, runs it over the connection that is being verified,
	// and calls again with its standard output, which is nil the first time.
	VerifyHostKey(ctx context.Context, in Instance, key, output []byte) error

	// Close ends every background task of the driver. Instances stay.
	Close() error
}

// PowerOff is what happens to an instance that powers itself off.
type PowerOff string

// The effects of a power-off from inside on the bill.
const (
	PowerOffEnds  PowerOff = "ends"  // the instance is gone and its billing ends
	PowerOffStops PowerOff = "stops" // it stays listed, and something is still billed until it is destroyed
)

// HostKeys is how an instance's host key is verified.
type HostKeys string

// The ways to verify a host key.
const (
	HostKeysPlanted  HostKeys = "planted"  // CreateRequest.HostKey becomes the instance's; no other is accepted
	HostKeysVerified HostKeys = "verified" // VerifyHostKey queries the cloud
	HostKeysSecret   HostKeys = "secret"   // neither: Drover reads back a secret that the init script planted
)

// Notices is where an instance reads that its cloud is about to take it back.
type Notices string

// The sources of notices that a runner can watch.
const (
	NoNotices    Notices = ""
	NoticesEC2   Notices = "ec2"   // instance metadata, version 2
	NoticesGCE   Notices = "gce"   // metadata server
	NoticesAzure Notices = "azure" // scheduled events
	NoticesFile  Notices = "file"  // the file that the instance's environment names as DROVER_NOTICES
)

// Init is what an instance runs at its first boot.
type Init string

// What an instance can run at its first boot.
const (
	InitShell Init = "shell"      // scripts: see Scripts
	InitBoots Init = "boots"      // the same; one that begins with #cloud-boothook is run at every boot
	InitCloud Init = "cloud-init" // anything that cloud-init reads, as one text: see UserData
)

// Capabilities are what a driver can do beyond the methods that every driver has.
type Capabilities struct {
	HostKeys       HostKeys       `json:"host_keys"`
	PowerOff       PowerOff       `json:"power_off"`
	Notices        Notices        `json:"notices,omitempty"`
	Init           Init           `json:"init,omitempty"`            // empty: InitShell
	MaxInit        int            `json:"max_init,omitempty"`        // bytes of UserData or Scripts that the cloud accepts; 0: unlimited, as far as is known
	Template       bool           `json:"template,omitempty"`        // Create uses CreateRequest.Template
	NodeID         string         `json:"node_id,omitempty"`         // the name that the cloud's own Kubernetes controller gives an instance's node, with {zone}, {id} and {name}; empty: unknown
	InitID         string         `json:"init_id,omitempty"`         // a shell word that gives the instance's ID at its first boot; empty: cloud-init's ID
	Project        string         `json:"project,omitempty"`         // what {project} in a template is replaced with: the account, project or subscription
	ManyCandidates bool           `json:"many_candidates,omitempty"` // Create tries several candidates in one call
	StopStart      bool           `json:"stop_start,omitempty"`      // the Cloud is a Starter
	StopSaves      bool           `json:"stop_saves,omitempty"`      // a stopped instance costs nothing but its volumes
	GrowDisk       bool           `json:"grow_disk,omitempty"`       // the Cloud is a DiskGrower
	Describe       bool           `json:"describe,omitempty"`        // the Cloud is a Describer
	Exposes        bool           `json:"-"`                         // jobs on its instances can do whatever the controller can
	ListLag        time.Duration  `json:"-"`                         // how long List may omit an existing instance, or show one that is gone; 0: DefaultListLag, negative: never
	Billing        drover.Billing `json:"-"`                         // unless the configuration says otherwise
}

// DefaultListLag is how far lists may lag if a driver does not specify it. Most clouds' lists agree within seconds of a
// change, and no cloud documents a bound.
const DefaultListLag = 30 * time.Second

// Lag is how far the cloud's lists may lag, at least 0.
func (c Capabilities) Lag() time.Duration { return max(0, cmp.Or(c.ListLag, DefaultListLag)) }

// cloudInitID is the shell word for cloud-init's instance ID.
const cloudInitID = "$(cloud-init query v1.instance_id)"

// NodeIDAtInit returns a shell word that gives the spec.providerID at the first boot of an instance with this name. The
// instance's ID is not known before it is created.
func (c Capabilities) NodeIDAtInit(zone, name string) string {
	return c.NodeIDOf(Instance{ID: cmp.Or(c.InitID, cloudInitID), Zone: zone, Tags: map[string]string{TagName: name}})
}

// NodeIDOf returns the spec.providerID of an instance's Kubernetes node, or "" if that is unknown.
func (c Capabilities) NodeIDOf(in Instance) string {
	return strings.NewReplacer("{zone}", in.Zone, "{id}", in.ID, "{name}", in.Tags[TagName]).Replace(c.NodeID)
}

// Candidate is one way of making an instance: a type in a zone and market, by the cloud's own names, and the image that
// it boots from.
type Candidate struct {
	ProviderType string        `json:"provider_type"`
	Zone         string        `json:"zone"`
	Market       drover.Market `json:"market"`
	Arch         drover.Arch   `json:"arch,omitempty"`
	Image        string        `json:"image,omitempty"` // the cloud's id; empty: none is configured
}

// Same reports whether both are the same offering. A driver that reports the candidate it used may leave out the other
// fields.
func (c Candidate) Same(o Candidate) bool {
	return c.ProviderType == o.ProviderType && c.Zone == o.Zone && c.Market == o.Market
}

// CreateRequest is a request for one instance.
type CreateRequest struct {
	Name       string                 // unique in the fleet for ever; also the idempotency token. It ends with the name in its tags
	Candidates []Candidate            // in order of preference, at least one
	Disk       drover.Bytes           // size of the root volume; 0: the image's or the cloud's default
	Tags       map[string]string      // enough to adopt the instance without any database
	Images     map[drover.Arch]string // its pool's images, as the configuration names them, instead of its cloud's; under "" for any architecture
	Template   string                 // the driver's raw instance template; empty for none. Before Customize fills it in: the pool's, replacing the cloud's
	Init       drover.Secret          // Drover's own script, run as root at the first boot; may contain secrets
	UserInit   drover.Secret          // the user's script, or anything that cloud-init reads if the driver's Init is InitCloud
	PoolInit   drover.Secret          // the pool's, in the same formats, run after UserInit
	HostKey    drover.Secret          // private host key in PEM, if HostKeys are planted
	PublicKey  string                 // in authorized_keys format; the only key that may log in
}

// Instance is an instance as its cloud reports it.
type Instance struct {
	ID           string // the cloud's, stable for life
	Tags         map[string]string
	ProviderType string
	Zone         string
	Market       drover.Market
	State        State
	Reclaimed    bool          // the cloud took it back, or is about to
	Failed       *drover.Error // why the cloud could not make the instance after accepting it; Drover destroys it
	Addresses    Addresses
	Created      drover.Time // by the cloud's clock; 0 if it does not report it
	Ended        drover.Time // when its bill ended, by the cloud's clock; 0 if it has not ended, or if the cloud does not report the exact time
}

// Candidate returns what the instance was made from, as Create reports it.
func (in Instance) Candidate() Candidate {
	return Candidate{ProviderType: in.ProviderType, Zone: in.Zone, Market: in.Market}
}

// Bears reports whether the instance has all these tags.
func (in Instance) Bears(tags map[string]string) bool {
	for k, v := range tags {
		if has, ok := in.Tags[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// State is an instance's state as its cloud reports it, reduced to four words.
type State string

// The states that clouds report. Stopped instances do not run but still exist.
const (
	Pending  State = "pending"
	Running  State = "running"
	Stopping State = "stopping"
	Stopped  State = "stopped"
)

// Addresses are where an instance can be reached.
type Addresses = drover.Addresses

// The tags that Drover puts on every instance. Drivers encode them as their cloud requires.
const (
	TagFleet   = "drover-fleet"
	TagName    = "drover-name"
	TagType    = "drover-type"     // the type's name in the configuration
	TagHostKey = "drover-host-key" // SHA-256 fingerprint
	TagIdle    = "drover-idle"     // the idle behaviour, unless it is "run"
	TagOwner   = "drover-owner"    // the mark of the only user whose jobs it runs, or the mark of everyone; none: nobody's yet
	TagPrice   = "drover-price"    // nano-USD per hour when created
	TagPool    = "drover-pool"     // its pool; none: it was rented for jobs
	TagStopped = "drover-stopped"  // when Drover stopped it in order to start it again; none: if it is stopped, its cloud or somebody else stopped it
	TagMade    = "drover-template" // a hash of the pool's template from which it was made
)
