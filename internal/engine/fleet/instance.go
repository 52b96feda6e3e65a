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
	Rates           []drover.Rate        `json:"rates,omitempty"`      // what it cost an hour before, each up to its end
	Resources       drover.Resources     `json:"resources"`            // all it has, its disk as it was created or grown
	Grow            drover.Bytes         `json:"grow,omitempty"`       // its volume is to be grown to that, or may have been, and is paid as if it were
	GrowFailed      *verdict.Verdict     `json:"rigid,omitempty"`      // why its volume is not grown, or not any more
	Candidates      []drover.Offering    `json:"candidates,omitempty"` // while it is being created
	HostKey         string               `json:"host_key,omitempty"`   // pinned fingerprint
	State           drover.InstanceState `json:"state"`
	Idle            drover.IdleBehavior  `json:"idle_behavior"`
	Told            *verdict.Verdict     `json:"told,omitempty"`   // why it does not run as usual: the operator's words, or what made it drain
	Retag           bool                 `json:"retag,omitempty"`  // the cloud has not yet accepted Idle as a tag of it
	Reason          *verdict.Verdict     `json:"reason,omitempty"` // why it is in its state, or what is wrong with it
	Broken          bool                 `json:"broken,omitempty"`
	Used            bool                 `json:"used,omitempty"`      // a job has begun on it
	Owner           string               `json:"owner,omitempty"`     // drover.OwnerMark of the user whose jobs alone it runs, or drover.Everyones; empty: nobody's yet
	User            string               `json:"user,omitempty"`      // who that is, as far as it is known
	Pool            string               `json:"pool,omitempty"`      // the pool that it belongs to; empty: it was rented for jobs
	Prefix          string               `json:"prefix,omitempty"`    // of the name by which its cloud knows it
	Template        string               `json:"template,omitempty"`  // the pool's template that it was made from
	BrokenHookFired bool                 `json:"cried,omitempty"`     // its HookBroken was run
	Unhealthy       *verdict.Verdict     `json:"ailing,omitempty"`    // it takes no more work and goes once it has none, since that is wrong with it
	Reclaimed       *verdict.Verdict     `json:"reclaimed,omitempty"` // its cloud is taking it back, or took it: no more work, whatever Idle says
	Asked           drover.Time          `json:"asked"`               // its cloud was first asked for it; planned, until it is
	Begun           bool                 `json:"begun,omitempty"`     // a create call was made: it may exist
	Created         drover.Time          `json:"created,omitempty"`   // its bill begins
	Ready           drover.Time          `json:"ready,omitempty"`
	IdleSince       drover.Time          `json:"idle_since,omitempty"`
	Ended           drover.Time          `json:"ended,omitempty"` // up to when it is paid, since its cloud has accepted its destruction; that may be to come
	KeepUntil       drover.Time          `json:"keep_until,omitempty"`
	Seen            bool                 `json:"seen,omitempty"`  // a good list of its cloud's has had it
	Reservations    []Reservation        `json:"bound,omitempty"` // waiting work it is rented for, until it is ready

	Unproven         bool             `json:"unproven,omitempty"` // it was there before attempts were given proofs, so it may have some without
	Joined           drover.Time      `json:"joined,omitempty"`   // when its node joined its cluster
	Passed           drover.Time      `json:"passed,omitempty"`   // when its health check passed first
	ReadyHookPending bool             `json:"untold,omitempty"`   // its HookReady waits for that
	Emptied          bool             `json:"emptied,omitempty"`  // nothing is left on its node that is to be moved before it goes
	Revived          bool             `json:"revived,omitempty"`  // a list showed it after it was held to be gone; hooks were told of its end
	Addresses        drover.Addresses `json:"addresses,omitzero"`
	Quiet            time.Duration    `json:"quiet,omitempty"`     // how long it had been silent when the last try to reach it failed
	EndTold          drover.Time      `json:"end_told,omitempty"`  // when the first list began that shows that it has ended; 0: none does, or one since that cannot be an old copy
	EndKnown         drover.Time      `json:"end_known,omitempty"` // when it ended, as its cloud says; 0: it does not say, or a list since shows it that cannot be an old copy

	// Of a pool that keeps some stopped:
	Waking   bool         `json:"waking,omitempty"`    // it was stopped, and is started again, until it is ready
	Woken    drover.Time  `json:"woken,omitempty"`     // when that began last, or a list showed that somebody else had started it
	Switched drover.Time  `json:"switched,omitempty"`  // when its cloud last accepted to stop it, or to start it again; 0: it has yet to stop it
	Halted   bool         `json:"halted,omitempty"`    // it accepted the former, and not the latter since
	Lent     bool         `json:"lent,omitempty"`      // it was started for jobs, beside its pool's number
	RunPrice drover.Money `json:"run_price,omitempty"` // what it would cost an hour if it ran, of one that is stopped

	Observed
}

// Observed is what a controller has seen of an instance since it began. The next one has to see it for itself.
type Observed struct {
	Standby int           `json:"standby,omitempty"` // how many attempts it is kept for that have yet to end elsewhere, or wait for the rest of their gang
	ForGang bool          `json:"gathers,omitempty"` // the latter
	For     []Reservation `json:"for,omitempty"`     // what it was rented for, once it is ready
	Check   drover.Time   `json:"check,omitempty"`   // when it is to be looked at next
	Aged    bool          `json:"aged,omitempty"`    // it is older than any may be

	Unfit           *verdict.Verdict   `json:"unfit,omitempty"`      // its health check fails
	Vouched         bool               `json:"vouched,omitempty"`    // while that of another of its cloud has passed
	Listed          bool               `json:"listed,omitempty"`     // its cloud's last good list had it
	Lacked          bool               `json:"lacked,omitempty"`     // one before had it, and the last has not
	Ending          bool               `json:"ending,omitempty"`     // the last has it as one that is being destroyed
	Over            bool               `json:"over,omitempty"`       // the last has it, and says when it ended
	Shown           bool               `json:"shown,omitempty"`      // this controller knows that it went on, since a list had it so or nobody had destroyed it before
	Reshown         bool               `json:"reshown,omitempty"`    // a list shows it, after one that told its end
	Accepted        bool               `json:"accepted,omitempty"`   // the cloud has accepted its destruction
	LastEnd         drover.Time        `json:"last_end,omitempty"`   // when it may have been destroyed: the last answer to a call
	PrevEnd         drover.Time        `json:"prev_end,omitempty"`   // and the last before the present list began, if that is another
	NextAsk         drover.Time        `json:"next_ask,omitempty"`   // when the call was made whose answer came next after that
	Missing         drover.Time        `json:"missing,omitempty"`    // when the first of the good lists in a row began that lack it, since it was last known to be there
	BrokenHookUntil drover.Time        `json:"crying,omitempty"`     // until when it is not destroyed, since the hook of its fault may still run
	Known           drover.Time        `json:"known,omitempty"`      // when it was last known to be there
	Heard           bool               `json:"heard,omitempty"`      // its runner has said what runs there
	Connected       bool               `json:"connected,omitempty"`  // its control stream is up
	LastHeard       drover.Time        `json:"last_heard,omitempty"` // when it was heard last over one that has ended
	Silent          drover.Time        `json:"silent,omitempty"`     // not heard since, as far as Drover was looking
	Tried           bool               `json:"tried,omitempty"`      // its address was dialled since Silent, and it did not prove to be there
	Unlocated       bool               `json:"unlocated,omitempty"`  // the last try to reach it dialled nobody, since no address is known
	Unwanted        drover.Time        `json:"unwanted,omitempty"`   // it boots, and nothing waits for it since then
	Lost            []int64            `json:"lost,omitempty"`       // jobs whose attempts were lost on it while it lived: they are tried elsewhere
	Orphans         []drover.AttemptID `json:"orphans,omitempty"`    // attempts on it that are not known and were told to end
	Forged          []drover.AttemptID `json:"forged,omitempty"`     // those of them of which it showed no proof
	Call            int64              `json:"call,omitempty"`       // create or destroy in flight
	Unsure          bool               `json:"unsure,omitempty"`     // a create call was not answered, or who knows: it may be there whatever the next one says
	ByName          bool               `json:"by_name,omitempty"`    // the destroy in flight bears no id of the cloud's, so it may miss what is to go
	Dial            int64              `json:"dial,omitempty"`       // connect in flight
	Describing      int64              `json:"describing,omitempty"` // describe in flight
	Fails           int                `json:"fails,omitempty"`      // of the last kind of effect, in a row
	Retry           drover.Time        `json:"retry,omitempty"`      // when the next may be tried
	Tagging         Tagging            `json:"tagging,omitzero"`     // how far Retag has come
	Growing         int64              `json:"growing,omitempty"`    // the call in flight that grows its volume
	Regrown         bool               `json:"regrown,omitempty"`    // one before that was not answered
	Halting         bool               `json:"halting,omitempty"`    // this controller has it stopped
	Off             bool               `json:"off,omitempty"`        // the last list has it as stopped
}

// Tagging is what became of the calls that are to note an instance's idle behaviour on it.
type Tagging struct {
	Call  int64               `json:"call,omitempty"` // in flight
	Idle  drover.IdleBehavior `json:"idle_behavior,omitempty"`
	Off   bool                `json:"off,omitempty"`   // and that Drover has stopped it
	Fails int                 `json:"fails,omitempty"` // in a row
	Retry drover.Time         `json:"retry,omitempty"`
	Set   bool                `json:"set,omitempty"`  // a call was accepted
	Lost  bool                `json:"lost,omitempty"` // its cloud did not find it: nothing is tried until it is seen again
}

// Reservation keeps room for elements of one class on an instance that is not ready yet.
type Reservation struct {
	Group queue.Key `json:"group"`
	Count int       `json:"count"`
}

// Clone returns a copy that shares no memory with the instance that may change.
func (in Instance) Clone() Instance {
	c := in
	c.Candidates = slices.Clone(in.Candidates)
	c.Rates = slices.Clone(in.Rates)
	c.Reservations = slices.Clone(in.Reservations)
	c.Lost = slices.Clone(in.Lost)
	c.Orphans, c.Forged = slices.Clone(in.Orphans), slices.Clone(in.Forged)
	return c
}

// Durable is the instance without what has to be observed again.
func (in Instance) Durable() Instance {
	in.Observed = Observed{}
	return in
}

// Tariff is the present and earlier hourly price of the instance.
func (in Instance) Tariff() drover.Tariff { return drover.Tariff{Rates: in.Rates, Price: in.Price} }

// PricedSince is from when on the instance's price is that which it has.
func (in Instance) PricedSince() drover.Time {
	if n := len(in.Rates); n > 0 {
		return in.Rates[n-1].Until
	}
	return in.Created
}

// LastAsked is when it was asked for: to be created or, later, to be started again.
func (in Instance) LastAsked() drover.Time { return max(in.Asked, in.Woken) }

// Billed reports whether the instance is paid for and still will be.
func (in Instance) Billed() bool { return in.Created != 0 && in.Ended == 0 }
