package engine

import (
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/forecast"
	"drover/internal/engine/pool"
	"drover/internal/engine/queue"
	"drover/internal/engine/verdict"
)

// StateVersion is raised when a State of an older version would be misread.
const StateVersion = 1

// What stops something, as decisions see it.
type (
	Verdict = verdict.Verdict
	Cause   = verdict.Cause
)

// State is everything an Engine knows, in canonical form: sorted, without maps, so that equal states have equal bytes.
//
// A new controller loads the durable part from the store; a recording starts with all of it. Durable are: the counters
// (including LastAgain and LastAttempt), Closing, Paused, Spent, StaleRecords, jobs, live attempts, instances (except
// what is marked "observed" below), blocks and spending.
type State struct {
	Version       int            `json:"version"`
	Fleet         string         `json:"fleet"`
	Nonce         string         `json:"nonce"` // distinguishes this store's instance names from those of a lost store
	Epoch         int64          `json:"epoch"`
	Settings      Settings       `json:"settings"`
	Now           drover.Time    `json:"now"`
	Wake          drover.Time    `json:"wake"`
	LastJob       int64          `json:"last_job"` // the highest number accepted; repeated ones are ignored
	LastInstance  int64          `json:"last_instance"`
	LastEffect    int64          `json:"last_effect"`
	LastAgain     int64          `json:"last_again"`
	LastAttempt   int            `json:"last_attempt,omitempty"` // attempt numbers that lost records may have given
	Draining      bool           `json:"draining,omitempty"`     // observed: nothing is started any more
	Closing       bool           `json:"closing"`                // no new instances; those without work are destroyed immediately
	Paused        *drover.Reason `json:"paused,omitempty"`       // why nothing that waits is started or rented for; nil if not paused
	ShutdownSince drover.Time    `json:"halted,omitempty"`       // observed: since when it drains or closes
	Configured    drover.Time    `json:"configured,omitempty"`   // observed: since when Settings are in force
	Spent         drover.Money   `json:"spent"`                  // by instances that are gone
	StaleRecords  *drover.Reason `json:"unproved,omitempty"`     // why the records may be a stale copy; nil if they are current
	Jobs          []Job          `json:"jobs"`                   // not final, by ID
	Attempts      []Attempt      `json:"attempts"`               // live, by job and index
	Instances     []Instance     `json:"instances"`              // not gone, by ID
	Departed      []*Departed    `json:"departed,omitempty"`     // instances that are gone, in the order they went
	Blocks        []Block        `json:"blocks"`
	Spending      []Spending     `json:"spending,omitempty"`      // by scope
	Pools         []PoolRow      `json:"pools,omitempty"`         // by name: those whose size an operator set
	Clouds        []Cloud        `json:"clouds"`                  // observed; by name
	Stats         Stats          `json:"stats,omitzero"`          // observed
	Interruptions []Interruption `json:"interruptions,omitempty"` // observed: recent ones, by time
	Looking       drover.Time    `json:"looking"`                 // observed: since when the controller has run without a gap
	Solving       *Solving       `json:"solving,omitempty"`       // observed
	Groups        []Group        `json:"groups,omitempty"`        // observed: in order of service
	PoolStates    []PoolState    `json:"pool_states,omitempty"`   // observed: by name
	Pending       Pending        `json:"pending,omitzero"`        // observed

	Successes []Success `json:"successes,omitempty"` // from the log beside stale records, newer than those; in order of their ends
}

// Success is an attempt that succeeded and whose results are stored.
type Success struct {
	Attempt drover.AttemptID `json:"attempt"`
	Exit    drover.Exit      `json:"exit"`
	Ended   drover.Time      `json:"ended"`
}

// Solving is a problem that was handed out and not answered yet.
type Solving struct {
	Effect  int64          `json:"effect"`
	Problem drover.Problem `json:"problem"`
	Groups  []GroupKey     `json:"groups"` // of the problem's demands

	groups []*group // those with these keys once it is answered; nil for one that no longer exists
}

// Settings is the part of the configuration that the engine uses.
type Settings struct {
	Clouds          []CloudSettings `json:"clouds"`           // by name
	ScheduleTimeout time.Duration   `json:"schedule_timeout"` // how long in total a job waits for blocked offerings; 0: forever
	Lifecycle       Lifecycle       `json:"lifecycle"`
	MaxInstances    int             `json:"max_instances"`           // in all clouds together; 0: no limit
	MaxCost         drover.Money    `json:"max_cost"`                // of the fleet's whole life; 0: no limit
	Budgets         []Budget        `json:"budgets,omitempty"`       // at most one per scope
	Keep            time.Duration   `json:"keep"`                    // how long an instance on which a job failed is kept once idle
	Mix             drover.Mix      `json:"mix,omitzero"`            // of the markets, for jobs that prefer spot
	SpotShare       int             `json:"spot_share,omitempty"`    // the most of the fleet's vCPUs in one spot offering, in hundredths of a percent; 0: all
	Shares          drover.Shares   `json:"shares,omitzero"`         // of the fleet, for jobs of one priority
	Users           UserLimits      `json:"users,omitzero"`          // of one user's instances
	BrokenHook      bool            `json:"broken_hook,omitempty"`   // a hook runs for broken instances, before they are destroyed
	Pools           []pool.Spec     `json:"pools,omitempty"`         // by name
	Nodes           bool            `json:"nodes,omitempty"`         // a cluster reports the nodes of node groups, and drains those that leave
	DefaultGroup    string          `json:"default_group,omitempty"` // the node group of adopted instances without a pool
	GrowMemory      int             `json:"grow_memory"`             // a job that ran out of memory is retried with this many thousandths of it; 0: it is not
}

// CloudSettings are the limits of one cloud.
type CloudSettings struct {
	Name           string         `json:"name"`
	MaxInstances   int            `json:"max_instances"` // 0: no limit
	MaxCreating    int            `json:"max_creating"`  // create calls in flight
	ListInterval   time.Duration  `json:"list_interval"`
	Disk           drover.Bytes   `json:"disk"`                      // of an instance's root volume, at least
	OffersInterval time.Duration  `json:"offers_interval,omitempty"` // between two requests for its types and prices; 0: an hour
	Limits         []drover.Limit `json:"limits,omitempty"`          // on subsets of its offerings; their own Cloud is ignored
	ListLag        time.Duration  `json:"list_lag,omitempty"`        // how long its lists may lag behind
	Describe       bool           `json:"describe,omitempty"`        // single instances can be described
	Reserved       []Reservation  `json:"reserved,omitempty"`        // that the operator has committed to
	Billing        drover.Billing `json:"billing,omitzero"`
	GrowDisk       bool           `json:"grow_disk,omitempty"` // volumes can be grown
	Leaving        bool           `json:"leaving,omitempty"`   // no longer configured: no instances are rented there, and existing ones drain
}

// Lifecycle holds the timeouts of instances; the configuration's `instances:` has the same names.
type Lifecycle struct {
	BootTimeout      time.Duration  `json:"boot_timeout"`
	ProbeInterval    time.Duration  `json:"probe_interval"`
	ProbeTimeout     time.Duration  `json:"probe_timeout"`
	PartitionTimeout time.Duration  `json:"partition_timeout,omitempty"` // how long the controller assumes a partition if all of a cloud is silent; 0: until one answers
	IdleTimeout      time.Duration  `json:"idle_timeout"`
	TermTimeout      time.Duration  `json:"term_timeout"`
	ShutdownTimeout  time.Duration  `json:"shutdown_timeout"`
	KeepBroken       time.Duration  `json:"keep_broken,omitempty"` // a broken instance is kept this long for inspection
	MaxAge           time.Duration  `json:"max_age,omitempty"`     // older instances drain; 0: never
	UseOnce          bool           `json:"use_once,omitempty"`    // an instance that has run a job gets no other
	Sharing          drover.Sharing `json:"sharing,omitempty"`     // whose jobs may share an instance
}

// Group is what the engine has found out about the waiting jobs of a key.
type Group struct {
	Key   GroupKey `json:"key"`
	Unmet int      `json:"unmet,omitempty"` // elements for which the last plan found nothing

	Coming  int `json:"coming,omitempty"`  // attempts that will be retried because their instances are being interrupted
	Standby int `json:"standby,omitempty"` // elements for which ready room is held

	OnDemand         int `json:"on_demand,omitempty"`       // waiting elements that the mix wants on demand
	OnDemandReserved int `json:"on_demand_bound,omitempty"` // of them, those with a reservation

	Unschedulable bool     `json:"unschedulable,omitempty"`  // it cannot get new instances now
	Deferred      bool     `json:"deferred,omitempty"`       // the next plan omits it
	PartlyPlanned int      `json:"partly_planned,omitempty"` // of a gang: elements for which the last plan found instances, though not for all
	Turn          bool     `json:"turn,omitempty"`           // it goes before all others of its priority until one of its elements has started
	Fits          bool     `json:"fits,omitempty"`           // some type is known to fit its jobs
	Reason        Verdict  `json:"reason"`
	Refused       *Verdict `json:"refused,omitempty"` // why the offerings did not fit, if Reason follows from that

	Blocked drover.Time   `json:"blocked,omitempty"` // since when it has waited only for blocks to end, 0 if it does not
	Most    time.Duration `json:"most,omitempty"`    // the longest that one of its jobs had waited for that before
	Blocks  string        `json:"blocks,omitempty"`  // the blocks it waits for
}

// Pending is the work that the engine still has to do.
type Pending struct {
	Place    bool `json:"replace,omitempty"` // work may fit somewhere
	Plan     bool `json:"replan,omitempty"`  // what may be rented has changed
	Preempt  bool `json:"yield,omitempty"`   // a group became unschedulable, or an instance became idle
	FitCheck bool `json:"refit,omitempty"`   // a group or an instance type is new
	Price    bool `json:"rates,omitempty"`   // prices of any instances may have changed

	GangDropped  bool `json:"without,omitempty"` // a gang was left out of a plan, so others may be rented for without it
	GangReleased bool `json:"gave_up,omitempty"` // room held for a gang was released because the gang cannot be assembled

	Saver int64 `json:"saver,omitempty"` // the job of the gang that room was last saved for, 0 if none

	Turn     drover.Time `json:"turn,omitempty"`  // when the first of the current budget windows ends
	Await    drover.Time `json:"await,omitempty"` // when to check again on work that waits for an attempt to end; 0: never
	Patience drover.Time `json:"look,omitempty"`  // when to check again on jobs that may wait longer (max_wait)
}

// Cloud is what was observed of a cloud since the engine started.
type Cloud struct {
	Catalogue
	Listed     drover.Time `json:"listed,omitempty"`      // end of the last good list
	Good       drover.Time `json:"good,omitempty"`        // its beginning
	GoodBefore drover.Time `json:"good_before,omitempty"` // beginning of the good list before
	First      drover.Time `json:"first,omitempty"`       // beginning of the first good list
	Twice      bool        `json:"twice,omitempty"`       // another good list cannot be the same stale copy
	ListCall   int64       `json:"list_call,omitempty"`
	OfferCall  int64       `json:"offer_call,omitempty"`
	ListFails  int         `json:"list_fails,omitempty"` // in a row
	NextList   drover.Time `json:"next_list,omitempty"`
	NextOffer  drover.Time `json:"next_offer,omitempty"`
	NextCreate drover.Time `json:"next_create,omitempty"` // set by a rate limit
	Slowed     drover.Time `json:"slowed,omitempty"`      // when that was
	Left       drover.Time `json:"left,omitempty"`        // since when it is no longer configured
	NoList     drover.Time `json:"no_list,omitempty"`     // no list before this, set by a rate limit
	Unsure     drover.Time `json:"unsure,omitempty"`      // last failure of a create call that may have made an instance
	Began      drover.Time `json:"began,omitempty"`       // of the last list requested
	Hurry      int         `json:"hurry,omitempty"`       // early lists in a row, to see an instance appear or go
	Fails      int         `json:"fails,omitempty"`
	NoDestroy  drover.Time `json:"no_destroy,omitempty"` // no destroy before this, set by a rate limit
	NoTag      drover.Time `json:"no_tag,omitempty"`     // likewise for tags
	Vanished   []Vanishing `json:"vanished,omitempty"`
	Partition  Partition   `json:"partition,omitzero"`
	Checks     Partition   `json:"checks,omitzero"`      // likewise, by its instances' health checks
	Describing int         `json:"describing,omitempty"` // describe calls in flight
	Mute       Verdict     `json:"mute,omitzero"`        // why the last request for its types failed, if it did
	Unlisted   Verdict     `json:"unlisted,omitzero"`    // likewise for listing its instances
}

// Unfinished jobs, as the store and the shells use them.
type (
	Job      = queue.Job
	Element  = queue.Element
	Grown    = queue.Grown
	Range    = queue.Range
	Ranges   = queue.Ranges
	GroupKey = queue.Key
)

// RangesOf returns the indexes of an array, or the single index of a job without one.
func RangesOf(a drover.Array) Ranges { return queue.RangesOf(a) }

// NewJob makes a new job whose elements all wait. The caller sets its dependencies.
func NewJob(number int64, user string, spec drover.JobSpec) Job {
	return queue.NewJob(number, user, spec)
}

// Stats are the observed durations.
type Stats = forecast.Stats

// Instances and attempts, as the store and the shells use them.
type (
	Instance = fleet.Instance
	Observed = fleet.Observed
	Attempt  = fleet.Attempt
	Departed = fleet.Departed
	Sighting = fleet.Sighting
	Tagging  = fleet.Tagging
)
