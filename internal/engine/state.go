package engine

import (
	"time"

	"drover"
	"drover/internal/engine/pool"
	"drover/internal/engine/verdict"
)

// StateVersion is raised when a State of an older version would be misread.
const StateVersion = 1

// What stops something, as decisions know it.
type (
	Verdict = verdict.Verdict
	Cause   = verdict.Cause
)

// State is all that an Engine knows, in canonical form: sorted, without maps, so that equal states have equal bytes.
//
// A controller that begins after another's end loads what is durable of it from the store; a recording begins with the whole. What is
// durable: the counters (LastAgain and LastAttempt among them), Closing, Paused, Spent, Unproved, jobs, live attempts, instances (but for what "observed"
// says below), blocks and spending.
type State struct {
	Version       int            `json:"version"`
	Fleet         string         `json:"fleet"`
	Nonce         string         `json:"nonce"` // sets the names of this store's instances apart from those of a lost one
	Epoch         int64          `json:"epoch"`
	Settings      Settings       `json:"settings"`
	Now           drover.Time    `json:"now"`
	Wake          drover.Time    `json:"wake"`
	LastJob       int64          `json:"last_job"` // the highest number taken; what comes again is passed over
	LastInstance  int64          `json:"last_instance"`
	LastEffect    int64          `json:"last_effect"`
	LastAgain     int64          `json:"last_again"`
	LastAttempt   int            `json:"last_attempt,omitempty"` // numbers of attempts that may have been given by records that are lost
	Draining      bool           `json:"draining,omitempty"`     // observed: nothing is started any more
	Closing       bool           `json:"closing"`                // no new instances; those without work go at once
	Paused        *drover.Reason `json:"paused,omitempty"`       // why nothing that waits is started, nor rented for; nil if it is
	Halted        drover.Time    `json:"halted,omitempty"`       // observed: since when it drains or closes
	Configured    drover.Time    `json:"configured,omitempty"`   // observed: since when Settings are as they are
	Spent         drover.Money   `json:"spent"`                  // by instances that are gone
	Unproved      *drover.Reason `json:"unproved,omitempty"`     // why the records may be an older copy of themselves; nil if they are not
	Jobs          []Job          `json:"jobs"`                   // not final, by ID
	Attempts      []Attempt      `json:"attempts"`               // live, by job and index
	Instances     []Instance     `json:"instances"`              // not gone, by ID
	Departed      []*Departed    `json:"departed,omitempty"`     // instances that are gone, the last to go last
	Blocks        []Block        `json:"blocks"`
	Spending      []Spending     `json:"spending,omitempty"`      // by scope
	Pools         []PoolRow      `json:"pools,omitempty"`         // by name: those whose number an operator set
	Clouds        []Cloud        `json:"clouds"`                  // observed; by name
	Stats         Stats          `json:"stats,omitzero"`          // observed
	Interruptions []Interruption `json:"interruptions,omitempty"` // observed: of late, by time
	Looking       drover.Time    `json:"looking"`                 // observed: Drover has been looking without a gap since
	Solving       *Solving       `json:"solving,omitempty"`       // observed
	Groups        []Group        `json:"groups,omitempty"`        // observed: by order of service
	PoolStates    []PoolState    `json:"pool_states,omitempty"`   // observed: by name
	Pending       Pending        `json:"pending,omitzero"`        // observed

	Successes []Success `json:"successes,omitempty"` // later than the records, which are unproved, by the log beside them; in the order of their ends
}

// Success is that an attempt succeeded, and its results are stored.
type Success struct {
	Attempt drover.AttemptID `json:"attempt"`
	Exit    drover.Exit      `json:"exit"`
	Ended   drover.Time      `json:"ended"`
}

// Solving is a problem that was handed out and whose answer has not come.
type Solving struct {
	Effect  int64          `json:"effect"`
	Problem drover.Problem `json:"problem"`
	Groups  []GroupKey     `json:"groups"` // of the problem's demands
}

// Settings are what of the configuration the engine decides by.
type Settings struct {
	Clouds          []CloudSettings `json:"clouds"`           // by name
	ScheduleTimeout time.Duration   `json:"schedule_timeout"` // how long in all a job waits for offerings that are blocked; 0: for ever
	Lifecycle       Lifecycle       `json:"lifecycle"`
	MaxInstances    int             `json:"max_instances"`           // in all clouds together; 0: no limit
	MaxCost         drover.Money    `json:"max_cost"`                // of the fleet's whole life; 0: no limit
	Budgets         []Budget        `json:"budgets,omitempty"`       // no two of one scope
	Keep            time.Duration   `json:"keep"`                    // how long an instance on which a job failed is kept once idle
	Mix             drover.Mix      `json:"mix,omitzero"`            // of the markets, for jobs that prefer spot
	SpotShare       int             `json:"spot_share,omitempty"`    // the most of the fleet's vCPUs in one spot offering, in hundredths of a percent; 0: all
	Shares          drover.Shares   `json:"shares,omitzero"`         // of what there is, for jobs of one priority
	Users           UserLimits      `json:"users,omitzero"`          // of one user's instances
	BrokenHook      bool            `json:"broken_hook,omitempty"`   // there is a hook for what is broken, which comes before its destruction
	Pools           []pool.Spec     `json:"pools,omitempty"`         // by name
	Nodes           bool            `json:"nodes,omitempty"`         // a cluster is asked for the nodes of node groups, and empties those that go
	DefaultGroup    string          `json:"default_group,omitempty"` // the node group to which instances without a pool belong that are adopted
	GrowMemory      int             `json:"grow_memory"`             // a job that ran out of memory is tried again with so many thousandths of it; 0: it is not
}

// CloudSettings are the limits of one cloud.
type CloudSettings struct {
	Name           string         `json:"name"`
	MaxInstances   int            `json:"max_instances"` // 0: no limit
	MaxCreating    int            `json:"max_creating"`  // create calls in flight
	ListInterval   time.Duration  `json:"list_interval"`
	Disk           drover.Bytes   `json:"disk"`                      // of an instance's root volume, at least
	OffersInterval time.Duration  `json:"offers_interval,omitempty"` // between two looks at its types and prices; 0: an hour
	Limits         []drover.Limit `json:"limits,omitempty"`          // of some of what it offers; their own Cloud is not looked at
	ListLag        time.Duration  `json:"list_lag,omitempty"`        // how long its lists may lack what is there, or show what is gone
	Describe       bool           `json:"describe,omitempty"`        // it can be asked for one instance
	Reserved       []Reservation  `json:"reserved,omitempty"`        // that the operator has committed to
	Billing        drover.Billing `json:"billing,omitzero"`
	GrowDisk       bool           `json:"grow_disk,omitempty"` // volumes can be grown
	Leaving        bool           `json:"leaving,omitempty"`   // no longer configured: nothing is rented there, and its instances drain
}

// Lifecycle are the times an instance is given; the configuration's `instances:` has them under the same names.
type Lifecycle struct {
	BootTimeout      time.Duration  `json:"boot_timeout"`
	ProbeInterval    time.Duration  `json:"probe_interval"`
	ProbeTimeout     time.Duration  `json:"probe_timeout"`
	PartitionTimeout time.Duration  `json:"partition_timeout,omitempty"` // all of a cloud silent: how long the controller blames itself; 0: until one answers
	IdleTimeout      time.Duration  `json:"idle_timeout"`
	TermTimeout      time.Duration  `json:"term_timeout"`
	ShutdownTimeout  time.Duration  `json:"shutdown_timeout"`
	KeepBroken       time.Duration  `json:"keep_broken,omitempty"` // a broken instance is left for a look this long
	MaxAge           time.Duration  `json:"max_age,omitempty"`     // older than this it drains; 0: never
	UseOnce          bool           `json:"use_once,omitempty"`    // an instance that has run a job is not given another
	Sharing          drover.Sharing `json:"sharing,omitempty"`     // whose jobs may meet on an instance
}

// Group is what was found out about the jobs of a key that wait.
type Group struct {
	Key   GroupKey `json:"key"`
	Unmet int      `json:"unmet,omitempty"` // of them, for how many the last plan found nothing

	Coming  int `json:"coming,omitempty"`  // attempts of it that will have to be made again, since their instances are taken back
	Standby int `json:"standby,omitempty"` // of them, for how many there is room that is free

	OnDemand      int `json:"on_demand,omitempty"`       // of those that wait, how many its mix wants on demand
	OnDemandBound int `json:"on_demand_bound,omitempty"` // of them, for how many an instance is on its way

	Unschedulable bool     `json:"unschedulable,omitempty"`  // it cannot get new instances now
	Deferred      bool     `json:"deferred,omitempty"`       // the next plan is made without it
	PartlyPlanned int      `json:"partly_planned,omitempty"` // of a gang's: for how many the last plan found instances, though not for all
	Turn          bool     `json:"turn,omitempty"`           // it comes before all others of its priority until one of its elements has begun
	Fits          bool     `json:"fits,omitempty"`           // some type is known to hold its jobs
	Reason        Verdict  `json:"reason"`
	Refused       *Verdict `json:"refused,omitempty"` // why the offerings that there are did not serve it, while Reason follows from that

	Blocked drover.Time   `json:"blocked,omitempty"` // since when it waits for nothing but the end of blocks, 0 while it does not
	Most    time.Duration `json:"most,omitempty"`    // the most that one of its jobs had waited for that before
	Blocks  string        `json:"blocks,omitempty"`  // that it waits for
}

// Pending is what is still to be looked at.
type Pending struct {
	Replace bool `json:"replace,omitempty"` // something may have found a place
	Replan  bool `json:"replan,omitempty"`  // something has changed what may be rented
	Without bool `json:"without,omitempty"` // a gang was left out of a plan, and others may be rented for without it
	GaveUp  bool `json:"gave_up,omitempty"` // a gang was let go of that could not come together
	Yield   bool `json:"yield,omitempty"`   // something is stuck, or has fallen idle
	Refit   bool `json:"refit,omitempty"`   // a group or a type is new
	Rates   bool `json:"rates,omitempty"`   // what instances cost may have changed

	Turn  drover.Time `json:"turn,omitempty"`  // when the first of the present windows of budgets ends
	Await drover.Time `json:"await,omitempty"` // when it is to be looked at again what waits for the end of an attempt
	Look  drover.Time `json:"look,omitempty"`  // and for what those wait that may
}

// Cloud is what was observed of a cloud since the engine began.
type Cloud struct {
	Catalogue
	Listed     drover.Time `json:"listed,omitempty"`      // end of the last good list
	Good       drover.Time `json:"good,omitempty"`        // its beginning
	GoodBefore drover.Time `json:"good_before,omitempty"` // that of the one before
	First      drover.Time `json:"first,omitempty"`       // that of the first good list
	Twice      bool        `json:"twice,omitempty"`       // another was good that cannot be the same stale copy
	ListCall   int64       `json:"list_call,omitempty"`
	OfferCall  int64       `json:"offer_call,omitempty"`
	ListFails  int         `json:"list_fails,omitempty"` // in a row
	NextList   drover.Time `json:"next_list,omitempty"`
	NextOffer  drover.Time `json:"next_offer,omitempty"`
	NextCreate drover.Time `json:"next_create,omitempty"` // set by a rate limit
	Slowed     drover.Time `json:"slowed,omitempty"`      // when it was
	Left       drover.Time `json:"left,omitempty"`        // since when it is no longer configured
	NoList     drover.Time `json:"no_list,omitempty"`     // no list before this, set by a rate limit
	Unsure     drover.Time `json:"unsure,omitempty"`      // when a create call failed last that may have made an instance, or make it yet
	Began      drover.Time `json:"began,omitempty"`       // of the last list asked for
	Hurry      int         `json:"hurry,omitempty"`       // lists in a row asked for early, to see something appear or go
	Fails      int         `json:"fails,omitempty"`
	NoDestroy  drover.Time `json:"no_destroy,omitempty"` // no destroy before this, set by a rate limit
	NoTag      drover.Time `json:"no_tag,omitempty"`     // likewise
	Vanished   []Vanishing `json:"vanished,omitempty"`
	Partition  Partition   `json:"partition,omitzero"`
	Checks     Partition   `json:"checks,omitzero"`      // likewise, by the health checks of its instances
	Describing int         `json:"describing,omitempty"` // describe calls in flight
	Mute       Verdict     `json:"mute,omitzero"`        // why it has not told its types since they were last asked for, if it has not
	Unlisted   Verdict     `json:"unlisted,omitzero"`    // likewise, what there is in it
}
