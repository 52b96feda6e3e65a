package fleet

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine/queue"
	"drover/internal/engine/verdict"
)

// Instance is the record of an instance that is not gone.
type Instance struct {
	ID              int64                `json:"id"`
	Name            string               `json:"name"`
	Cloud           string               `json:"cloud"`
	ProviderID      string               `json:"provider_id,omitempty"`
	Zone            string               `json:"zone"`
	Type            drover.InstanceType  `json:"type"`
	Market          drover.Market        `json:"market"`
	Price           drover.Money         `json:"price"`
	Rates           []drover.Rate        `json:"rates,omitempty"`      // earlier hourly prices, each until its end
	Resources       drover.Resources     `json:"resources"`            // all it has; its disk as created or grown
	Grow            drover.Bytes         `json:"grow,omitempty"`       // size to which its volume is being, or may have been, grown; it is billed for that
	GrowFailed      *verdict.Verdict     `json:"rigid,omitempty"`      // why its volume is not grown any more
	Candidates      []drover.Offering    `json:"candidates,omitempty"` // while it is being created; replaced, never changed in place
	HostKey         string               `json:"host_key,omitempty"`   // pinned fingerprint
	State           drover.InstanceState `json:"state"`
	Idle            drover.IdleBehavior  `json:"idle_behavior"`
	IdleReason      *verdict.Verdict     `json:"told,omitempty"`   // why it does not run as usual: the operator's words, or what made it drain
	Retag           bool                 `json:"retag,omitempty"`  // the cloud has not accepted Idle as a tag yet
	Reason          *verdict.Verdict     `json:"reason,omitempty"` // why it is in its state, or what is wrong with it
	Broken          bool                 `json:"broken,omitempty"`
	Used            bool                 `json:"used,omitempty"`      // a job has started on it
	Owner           string               `json:"owner,omitempty"`     // drover.OwnerMark of the only user whose jobs it runs, or drover.Everyones; empty: no owner yet
	User            string               `json:"user,omitempty"`      // who that is, if known
	Pool            string               `json:"pool,omitempty"`      // the pool it belongs to; empty: it was rented for jobs
	Prefix          string               `json:"prefix,omitempty"`    // of its name in the cloud
	Template        string               `json:"template,omitempty"`  // the pool template it was created from
	BrokenHookFired bool                 `json:"cried,omitempty"`     // HookBroken was fired
	Unhealthy       *verdict.Verdict     `json:"ailing,omitempty"`    // what is wrong with it: it takes no more work and is destroyed once it has none
	Reclaimed       *verdict.Verdict     `json:"reclaimed,omitempty"` // its cloud is interrupting, or interrupted, it: no more work, whatever Idle says
	Asked           drover.Time          `json:"asked"`               // when its cloud was first asked for it, or else when it was planned
	Begun           bool                 `json:"begun,omitempty"`     // a create call was made: it may exist
	Created         drover.Time          `json:"created,omitempty"`   // start of its bill
	Ready           drover.Time          `json:"ready,omitempty"`
	IdleSince       drover.Time          `json:"idle_since,omitempty"`
	Ended           drover.Time          `json:"ended,omitempty"` // end of its bill, known since its cloud accepted the destroy call; possibly in the future
	KeepUntil       drover.Time          `json:"keep_until,omitempty"`
	Seen            bool                 `json:"seen,omitempty"`  // a good list of its cloud has had it
	Reservations    []Reservation        `json:"bound,omitempty"` // waiting work it is rented for, until it is ready

	Unproven         bool             `json:"unproven,omitempty"` // it existed before attempts had proofs, so some of its attempts may have none
	Joined           drover.Time      `json:"joined,omitempty"`   // when its node joined its cluster
	Passed           drover.Time      `json:"passed,omitempty"`   // when its health check first passed since its last start
	ReadyHookPending bool             `json:"untold,omitempty"`   // HookReady waits for that
	Emptied          bool             `json:"emptied,omitempty"`  // its node has been drained and may be destroyed
	EndHookFired     bool             `json:"revived,omitempty"`  // HookDestroyed or HookVanished was fired: it counted as gone once, or its cloud stopped it
	Addresses        drover.Addresses `json:"addresses,omitzero"`
	Quiet            time.Duration    `json:"quiet,omitempty"`     // how long it had been silent at the last failed dial
	EndTold          drover.Time      `json:"end_told,omitempty"`  // beginning of the first list that shows that it ended; 0: none does, or a newer list that is no old copy shows it
	EndKnown         drover.Time      `json:"end_known,omitempty"` // when its cloud says it ended; 0: it does not say, or a newer list that is no old copy shows it

	// Of pools that keep stopped instances:
	Waking       bool         `json:"waking,omitempty"`    // it was stopped and is being started again
	Woken        drover.Time  `json:"woken,omitempty"`     // when that last began, or a list showed that somebody else had started it
	Switched     drover.Time  `json:"switched,omitempty"`  // when its cloud last accepted a stop or start call; 0: the stop is still pending
	StopAccepted bool         `json:"halted,omitempty"`    // its cloud accepted a stop, and no start since
	Lent         bool         `json:"lent,omitempty"`      // it was started for jobs, beyond its pool's size
	RunPrice     drover.Money `json:"run_price,omitempty"` // hourly price when running, of a stopped instance

	Observed
}

// Observed is what a controller has observed about an instance since it started. The next one must observe it again.
type Observed struct {
	Standby int           `json:"standby,omitempty"` // attempts for which room is held here: they have yet to end elsewhere, or wait for the rest of their gang
	ForGang bool          `json:"gathers,omitempty"` // the latter
	For     []Reservation `json:"for,omitempty"`     // what it was rented for, once it is ready
	Check   drover.Time   `json:"check,omitempty"`   // when it is to be checked next
	Aged    bool          `json:"aged,omitempty"`    // it has reached max_age

	Unfit           *verdict.Verdict   `json:"unfit,omitempty"`      // its health check fails
	Vouched         bool               `json:"vouched,omitempty"`    // another instance of its cloud has passed since
	Listed          bool               `json:"listed,omitempty"`     // its cloud's last good list had it
	Lacked          bool               `json:"lacked,omitempty"`     // an earlier list had it, and the last one does not
	Ending          bool               `json:"ending,omitempty"`     // the last list has it as being destroyed
	Over            bool               `json:"over,omitempty"`       // the last list says when it ended
	Shown           bool               `json:"shown,omitempty"`      // it is known to have kept running: a list showed it so, or nothing had destroyed it before
	Reshown         bool               `json:"reshown,omitempty"`    // a list shows it again, after one that showed its end
	Accepted        bool               `json:"accepted,omitempty"`   // the cloud has accepted the destroy call
	Refused         *verdict.Verdict   `json:"refused,omitempty"`    // why the last destroy or stop call failed; it counts while Fails does
	LastEnd         drover.Time        `json:"last_end,omitempty"`   // last answer to a destroy call: it may have ended then
	PrevEnd         drover.Time        `json:"prev_end,omitempty"`   // the one before the current list began, if different
	NextAsk         drover.Time        `json:"next_ask,omitempty"`   // when the call was made whose answer came next after that
	Missing         drover.Time        `json:"missing,omitempty"`    // beginning of the first in an unbroken series of good lists without it
	BrokenHookUntil drover.Time        `json:"crying,omitempty"`     // it is not destroyed before, since its hook may still run
	Known           drover.Time        `json:"known,omitempty"`      // when it was last known to exist
	Heard           bool               `json:"heard,omitempty"`      // its runner has reported what it runs
	Connected       bool               `json:"connected,omitempty"`  // its control stream is open
	LastHeard       drover.Time        `json:"last_heard,omitempty"` // last contact over a connection that has ended
	Silent          drover.Time        `json:"silent,omitempty"`     // silent since, not counting gaps in observation
	Tried           bool               `json:"tried,omitempty"`      // its address was dialled since Silent, without success
	Unlocated       bool               `json:"unlocated,omitempty"`  // the last dial failed because no address is known
	Unwanted        drover.Time        `json:"unwanted,omitempty"`   // it is booting, and nothing has waited for it since
	Lost            []int64            `json:"lost,omitempty"`       // jobs whose attempts it lost while alive: they are retried elsewhere
	Orphans         []drover.AttemptID `json:"orphans,omitempty"`    // unknown attempts on it that were told to stop
	Forged          []drover.AttemptID `json:"forged,omitempty"`     // orphans without a valid proof
	Call            int64              `json:"call,omitempty"`       // create or destroy call in flight
	Unsure          bool               `json:"unsure,omitempty"`     // a create call may have succeeded unnoticed: it may exist whatever the next call says
	ByName          bool               `json:"by_name,omitempty"`    // the destroy call in flight names no provider ID, so it may miss the instance
	Dial            int64              `json:"dial,omitempty"`       // connect in flight
	Describing      int64              `json:"describing,omitempty"` // describe call in flight
	Fails           int                `json:"fails,omitempty"`      // failures in a row of the last kind of effect
	Retry           drover.Time        `json:"retry,omitempty"`      // when it may be retried
	Tagging         Tagging            `json:"tagging,omitzero"`     // progress of Retag
	Growing         int64              `json:"growing,omitempty"`    // grow call in flight
	Regrown         bool               `json:"regrown,omitempty"`    // an earlier grow call was not answered
	Halting         bool               `json:"halting,omitempty"`    // this controller stops it
	Off             bool               `json:"off,omitempty"`        // the last list has it as stopped
	NodeWait        *verdict.Verdict   `json:"node_wait,omitempty"`  // what keeps its node from being ready, or from being emptied
}

// Tagging is the progress of tagging an instance with its idle behaviour.
type Tagging struct {
	Call  int64               `json:"call,omitempty"` // in flight
	Idle  drover.IdleBehavior `json:"idle_behavior,omitempty"`
	Off   bool                `json:"off,omitempty"`   // also that Drover has stopped it
	Fails int                 `json:"fails,omitempty"` // in a row
	Retry drover.Time         `json:"retry,omitempty"`
	Set   bool                `json:"set,omitempty"`  // a call was accepted
	Lost  bool                `json:"lost,omitempty"` // its cloud did not find it: not retried until it is listed again
}

// Reservation holds room for elements of a class on an instance that is not ready yet.
type Reservation struct {
	Group queue.Key `json:"group"`
	Count int       `json:"count"`
}

// Clone returns a copy that shares no mutable memory with the instance.
func (in Instance) Clone() Instance {
	c := in
	c.Rates = slices.Clone(in.Rates)
	c.Reservations = slices.Clone(in.Reservations)
	c.Lost = slices.Clone(in.Lost)
	c.Orphans, c.Forged = slices.Clone(in.Orphans), slices.Clone(in.Forged)
	return c
}

// Durable returns the instance without what must be observed again.
func (in Instance) Durable() Instance {
	in.Observed = Observed{}
	return in
}

// Tariff returns the current and earlier hourly prices.
func (in Instance) Tariff() drover.Tariff { return drover.Tariff{Rates: in.Rates, Price: in.Price} }

// PricedSince returns since when the instance has its current price.
func (in Instance) PricedSince() drover.Time {
	if n := len(in.Rates); n > 0 {
		return in.Rates[n-1].Until
	}
	return in.Created
}

// LastAsked returns when it was last requested: to be created or started again.
func (in Instance) LastAsked() drover.Time { return max(in.Asked, in.Woken) }

// Billed reports whether the instance's bill is running.
func (in Instance) Billed() bool { return in.Created != 0 && in.Ended == 0 }
