// Package driver is the contract that a cloud must meet so that Drover can rent instances from it.
//
// A driver is small on purpose: it translates between one cloud's API and the words of package drover, classifies the cloud's
// errors, and decides nothing. It never retries, never sleeps to keep a rate and never remembers what it created: the engine asks
// again, and the cloud's own list is the truth. The suite in package drivertest says in tests what the comments here say in words.
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

// Options are what a driver gets to work with.
type Options struct {
	Name   string               // the cloud's name in the configuration
	Fleet  string               // never empty: letters, digits and dashes that fit every cloud's names; what is created bears it
	Decode func(into any) error // reads the driver's own keys of the configuration, strictly; its errors name line and column
	Dir    string               // the folder that relative paths in the configuration are relative to
	Folder string               // where a driver may keep caches and, if it makes instances on this host, the instances
	Log    *slog.Logger
	Metric func(call string, err error) // counts one call to the cloud's API, by its name without ids, and what came of it; may be nil
}

// Cloud is an open cloud. All methods are safe for concurrent use and obey their context's deadline. Every error that comes from
// the cloud is a *drover.Error with the right kind; one that tells nothing is transient.
type Cloud interface {
	// Capabilities says what this driver can do. It is fixed once the cloud is open.
	Capabilities() Capabilities

	// Offerings lists every type × zone × market that could be created now, with its hourly price and, where types share one, the quota
	// group under which it counts, sorted as SortOfferings does. An offering that is merely out of stock is listed.
	Offerings(ctx context.Context) ([]drover.Offering, error)

	// Create makes one instance from the first of the candidates that the cloud can give and returns it with the candidate
	// taken. It returns as soon as the cloud has accepted, with the addresses empty if they are not known yet. Calling it again
	// with the same name never makes a second instance: it returns the one there is, or the same error. If the context ends
	// first the instance may or may not come to be; a list will tell.
	//
	// The tags are given in the create call itself, so that no instance is ever without them. Answers may show a new instance late: one that
	// a list does not have yet is not gone, see Capabilities.ListLag.
	//
	// A cloud may accept what it then cannot make. Such an instance is listed with the error that Create would have returned.
	//
	// Quota and capacity errors say their scope and market. A capacity error means that none of the candidates is to be had; any other
	// error speaks of all of them.
	Create(ctx context.Context, r CreateRequest) (Instance, Candidate, error)

	// List returns every instance that bears all the given tags, booting and stopping ones included. It may return others and
	// may repeat itself: callers filter by tag and go by ID. A partial answer is an error, never a short list.
	List(ctx context.Context, tags map[string]string) ([]Instance, error)

	// Destroy ends the instance and everything that was created with it. It returns once the cloud has accepted; the instance may be
	// listed for a while yet. Destroying what is already gone succeeds.
	Destroy(ctx context.Context, id string) error

	// SetTags replaces all tags of the instance. KindNotFound if there is none; KindTransient while it boots, where a cloud takes none then.
	SetTags(ctx context.Context, id string, tags map[string]string) error

	// VerifyHostKey says whether an instance really holds the host key that was offered in its name (in SSH wire format): nil
	// if the cloud vouches for it, KindHostKey if the cloud says otherwise, KindUnsupported if it cannot tell, KindTransient if it cannot
	// tell yet. A *RunFirst names a command: whoever asks logs in, runs it over the connection that is being proved, and asks again with its
	// standard output, which is nil the first time.
	VerifyHostKey(ctx context.Context, in Instance, key, output []byte) error

	// Close ends every background task of the driver. Instances stay.
	Close() error
}

// PowerOff says what becomes of an instance that powers itself off.
type PowerOff string

// What power-off from inside means for the bill.
const (
	PowerOffEnds  PowerOff = "ends"  // the instance is gone and its billing ends
	PowerOffStops PowerOff = "stops" // it stays listed and something of it is still billed, until destroyed
)

// HostKeys says how an instance's host key is proved.
type HostKeys string

// The ways to prove a host key.
const (
	HostKeysPlanted  HostKeys = "planted"  // CreateRequest.HostKey becomes the instance's; no other is accepted
	HostKeysVerified HostKeys = "verified" // VerifyHostKey asks the cloud
	HostKeysSecret   HostKeys = "secret"   // neither: a secret planted by the init command is read back
)

// Notices says where an instance reads that its cloud is about to take it back.
type Notices string

// The sources of notices that a runner can watch.
const (
	NoNotices    Notices = ""
	NoticesEC2   Notices = "ec2"   // instance metadata, version 2
	NoticesGCE   Notices = "gce"   // metadata server
	NoticesAzure Notices = "azure" // scheduled events
	NoticesFile  Notices = "file"  // the file that the instance's environment names as DROVER_NOTICES
)

// Init says what an instance runs at its first boot.
type Init string

// What an instance can run at its first boot.
const (
	InitShell Init = "shell"      // scripts: see Scripts
	InitBoots Init = "boots"      // the same; one that begins with #cloud-boothook is run at every boot
	InitCloud Init = "cloud-init" // all that cloud-init reads, as one text: see UserData
)

// Capabilities are what a driver can do beyond the methods every driver has.
type Capabilities struct {
	HostKeys       HostKeys       `json:"host_keys"`
	PowerOff       PowerOff       `json:"power_off"`
	Notices        Notices        `json:"notices,omitempty"`
	Init           Init           `json:"init,omitempty"`            // empty: InitShell
	MaxInit        int            `json:"max_init,omitempty"`        // bytes of UserData or Scripts that the cloud takes; 0: no limit is known
	Template       bool           `json:"template,omitempty"`        // CreateRequest.Template is heeded
	NodeID         string         `json:"node_id,omitempty"`         // what the cloud's own Kubernetes controller calls an instance's node, with {zone}, {id} and {name} for the instance's; empty: not known
	Project        string         `json:"project,omitempty"`         // what {project} in a template stands for: the account, project or subscription
	ManyCandidates bool           `json:"many_candidates,omitempty"` // Create tries several candidates in one call
	StopStart      bool           `json:"stop_start,omitempty"`      // the Cloud is a Starter
	StopSaves      bool           `json:"stop_saves,omitempty"`      // a stopped instance costs nothing but its volumes
	GrowDisk       bool           `json:"grow_disk,omitempty"`       // the Cloud is a DiskGrower
	Describe       bool           `json:"describe,omitempty"`        // the Cloud is a Describer
	Exposes        bool           `json:"-"`                         // what runs on its instances can do whatever the controller can
	ListLag        time.Duration  `json:"-"`                         // how long List may lack an instance that is there, or show one that is gone; 0: DefaultListLag, negative: lists never lag
	Billing        drover.Billing `json:"-"`                         // where the configuration does not say it
}

// DefaultListLag is how far lists are taken to lag behind where a driver does not know better. Most clouds' lists agree within seconds of a
// change, and none of their documentation says how long it takes at worst.
const DefaultListLag = 30 * time.Second

// Lag is how far the cloud's lists may lag behind, at least 0.
func (c Capabilities) Lag() time.Duration { return max(0, cmp.Or(c.ListLag, DefaultListLag)) }

// NodeIDOf is what Kubernetes calls the node that runs on an instance, its spec.providerID; empty if that is not known.
func (c Capabilities) NodeIDOf(in Instance) string {
	return strings.NewReplacer("{zone}", in.Zone, "{id}", in.ID, "{name}", in.Tags[TagName]).Replace(c.NodeID)
}

// Candidate is one way of making an instance: a type in a zone and market, by the cloud's own names, and the image that it boots from.
type Candidate struct {
	ProviderType string        `json:"provider_type"`
	Zone         string        `json:"zone"`
	Market       drover.Market `json:"market"`
	Arch         drover.Arch   `json:"arch,omitempty"`
	Image        string        `json:"image,omitempty"` // the cloud's id of it; empty: none was configured
}

// Same reports whether both are the same offering; a driver that says which candidate was taken need not repeat the rest.
func (c Candidate) Same(o Candidate) bool {
	return c.ProviderType == o.ProviderType && c.Zone == o.Zone && c.Market == o.Market
}

// CreateRequest asks for one instance.
type CreateRequest struct {
	Name       string                 // unique in the fleet for ever; also the idempotency token. It ends with the one that its tags say
	Candidates []Candidate            // in order of preference, at least one
	Disk       drover.Bytes           // of the root volume; 0: the image's or the cloud's own
	Tags       map[string]string      // all that is needed to adopt the instance without any database
	Images     map[drover.Arch]string // its pool's, as the configuration names them, in place of its cloud's; under "" for any architecture
	Template   string                 // the driver's raw instance template, filled in; empty for none. Before it is filled in: its pool's, in place of its cloud's
	Init       drover.Secret          // Drover's own script, run by root at first boot; may hold secrets
	UserInit   drover.Secret          // the user's, filled in: a script, or anything that cloud-init reads if the driver's Init is InitCloud
	PoolInit   drover.Secret          // its pool's, of the same kinds, run after UserInit
	HostKey    drover.Secret          // private host key in PEM, for drivers whose HostKeys are planted
	PublicKey  string                 // in authorized_keys form; the only key that may log in
}

// Instance is what a cloud says of an instance.
type Instance struct {
	ID           string // the cloud's, stable for life
	Tags         map[string]string
	ProviderType string
	Zone         string
	Market       drover.Market
	State        State
	Reclaimed    bool          // the cloud took it back, or is about to
	Failed       *drover.Error // why the cloud, having accepted it, could not make it after all; it is to be destroyed
	Addresses    Addresses
	Created      drover.Time // by the cloud's clock; 0 if it does not say
	Ended        drover.Time // when it was last paid for, by the cloud's clock; 0 if it still is, or if the cloud does not say exactly
}

// Candidate is what the instance was made from, as Create tells it.
func (in Instance) Candidate() Candidate {
	return Candidate{ProviderType: in.ProviderType, Zone: in.Zone, Market: in.Market}
}

// Bears says whether the instance has all these tags.
func (in Instance) Bears(tags map[string]string) bool {
	for k, v := range tags {
		if has, ok := in.Tags[k]; !ok || has != v {
			return false
		}
	}
	return true
}

// State is what the cloud says about an instance, in four words.
type State string

// The states that clouds report. Stopped instances are not running but still there.
const (
	Pending  State = "pending"
	Running  State = "running"
	Stopping State = "stopping"
	Stopped  State = "stopped"
)

// Addresses are where an instance can be reached.
type Addresses = drover.Addresses

// The tags that Drover puts on every instance. A cloud's own restrictions on keys are met by its driver.
const (
	TagFleet   = "drover-fleet"
	TagName    = "drover-name"
	TagType    = "drover-type"     // the type's name in the configuration
	TagHostKey = "drover-host-key" // SHA-256 fingerprint
	TagIdle    = "drover-idle"     // the idle behaviour, when it is not run
	TagOwner   = "drover-owner"    // the mark of the user whose jobs alone it runs, or that of everyone; none: it is nobody's yet
	TagPrice   = "drover-price"    // nano-USD per hour when created
	TagPool    = "drover-pool"     // the pool that it belongs to; none: it was rented for jobs
	TagStopped = "drover-stopped"  // when Drover stopped it, to be started again; none: if it is stopped, its cloud or somebody else did that
	TagMade    = "drover-template" // a hash of the pool's template that it was made from
)
