package drover

// PoolKind is the meaning of a pool's number.
type PoolKind string

// The kinds of pools. A pool has exactly one.
const (
	PoolSize  PoolKind = "size"  // exactly this many instances
	PoolFloor PoolKind = "floor" // at least this many; more may be rented for jobs
	PoolSpare PoolKind = "spare" // this many idle instances beyond those in use
	PoolGroup PoolKind = "group" // a Kubernetes node group: as many as its cluster's autoscaler requests
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
	LoginSSH  PoolLogin = "ssh"  // over SSH; the boot probe reports when it is ready
	LoginNone PoolLogin = "none" // never; it is ready when its cloud reports that it runs
)

// Pool is the current state of a pool: what is wanted, and what exists.
type Pool struct {
	Name      string         `json:"name"`
	Kind      PoolKind       `json:"kind"`
	Wanted    int            `json:"wanted"`                  // the configured number, or the one that an operator has set since; for a node group the target that the autoscaler set
	Size      *int           `json:"size,omitempty"`          // Wanted, of a pool of this kind
	Floor     *int           `json:"floor,omitempty"`         // Wanted, of a pool of this kind
	Spare     *int           `json:"spare,omitempty"`         // Wanted, of a pool of this kind
	Min       int            `json:"min,omitempty"`           // for a node group: the least that its autoscaler may request
	Max       int            `json:"max,omitempty"`           // for a node group: the most that its autoscaler may request
	Instances int            `json:"instances"`               // that count toward Wanted: held ones do; draining, broken and interrupted ones do not
	Ready     int            `json:"ready"`                   // how many of Instances are ready
	Idle      int            `json:"idle,omitempty"`          // how many of Ready are not held and have no job; of a spare pool, any user's jobs may use these, and Wanted is their number
	ByZone    map[string]int `json:"by_zone"`                 // Instances by CLOUD/ZONE
	Leaving   int            `json:"leaving,omitempty"`       // draining, broken, interrupted or stopping
	Outdated  int            `json:"outdated,omitempty"`      // how many of Instances were made from an older template
	Stopped   int            `json:"stopped,omitempty"`       // kept stopped, in addition to Wanted
	Keeps     int            `json:"keeps_stopped,omitempty"` // how many should be kept stopped
	Lent      int            `json:"lent,omitempty"`          // started for jobs and still in use by them, in addition to Wanted
	Reason    *Reason        `json:"reason,omitempty"`        // why there are not as many as wanted; nil if there are
}
