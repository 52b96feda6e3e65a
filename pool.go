package drover

// PoolKind says how a pool's number is meant.
type PoolKind string

// The kinds of pools. A pool has exactly one.
const (
	PoolSize  PoolKind = "size"  // exactly this many instances
	PoolFloor PoolKind = "floor" // at least this many; jobs may have more rented beyond
	PoolSpare PoolKind = "spare" // this many idle instances beyond those in use
	PoolGroup PoolKind = "group" // a Kubernetes node group: as many as its cluster's autoscaler asks for
)

// MaxPool is the largest number that a pool can be given.
const MaxPool = 100_000

// PoolSpread says how a pool divides its instances among its zones.
type PoolSpread string

// The kinds of spread.
const (
	SpreadBalanced PoolSpread = "balanced" // a new instance goes to the zone with the fewest
	SpreadCheapest PoolSpread = "cheapest" // a new instance goes wherever it is cheapest
)

// PoolLogin says whether Drover logs in to an instance.
type PoolLogin string

// The kinds of login.
const (
	LoginSSH  PoolLogin = "ssh"  // over SSH; the boot probe says when it is ready
	LoginNone PoolLogin = "none" // never; it is ready when its cloud says that it runs
)

// Pool is a pool as it stands: what is wanted, and what there is.
type Pool struct {
	Name      string         `json:"name"`
	Kind      PoolKind       `json:"kind"`
	Wanted    int            `json:"wanted"`                  // the configured number, or the one that an operator set since; of a node group its target, which the autoscaler sets
	Min       int            `json:"min,omitempty"`           // of a node group: the least that its autoscaler goes down to
	Max       int            `json:"max,omitempty"`           // of a node group: the most that it may ask for
	Instances int            `json:"instances"`               // that count toward it: held ones do; draining, broken and interrupted ones do not
	Ready     int            `json:"ready"`                   // of those
	ByZone    map[string]int `json:"by_zone"`                 // those that count, by CLOUD/ZONE
	Leaving   int            `json:"leaving,omitempty"`       // that are draining, broken, interrupted or stopping
	Outdated  int            `json:"outdated,omitempty"`      // that count, but were made from an older template
	Stopped   int            `json:"stopped,omitempty"`       // that are kept stopped, beside its number
	Keeps     int            `json:"keeps_stopped,omitempty"` // how many should be
	Lent      int            `json:"lent,omitempty"`          // that jobs had started, and have, beside its number
	Reason    *Reason        `json:"reason,omitempty"`        // why there are not as many as wanted; nil if there are
}
