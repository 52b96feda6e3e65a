package simtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover"
	"drover/internal/billing"
	"drover/internal/engine"
)

// Disk is a store in memory: it holds what a new controller would find. A commit is all or nothing. The disk owns what
// is written: the engine does not modify it afterwards, and gets a copy that it may modify.
type Disk struct {
	Final map[drover.JobID]drover.JobState // final elements, and final jobs that are not arrays
	Spent drover.Money                     // by departed instances

	jobs      map[int64]engine.Job
	ended     map[int64]engine.JobEnd
	elements  map[drover.JobID]engine.Element
	attempts  map[drover.JobID]engine.Attempt
	instances map[int64]engine.Instance
	departed  []*engine.Departed
	had       map[int64][]share     // by instance: what attempts used of it
	spent     map[span]drover.Money // by finished claims, in each window of each possible budget
	blocks    []engine.Block
	spending  map[string]engine.Spending // by scope
	pools     map[string]engine.PoolRow  // by name
	closing   bool
	paused    *drover.Reason
	last      int64 // instance number
	lastJob   int64
	lastAgain int64                // the last Again that was taken
	given     int64                // the last Again that was given
	again     map[int64]int64      // by job: its current life
	numbers   map[drover.JobID]int // of each element's last attempt, by its row
	begun     map[drover.JobID]int // of each element's last attempt
	lost      map[drover.JobID]int // attempts of each element that count as lost to their instances
	wishes    map[int64]engine.Body
	lastWish  int64
	nonce     string
	epoch     int64
	leapt     int                  // attempt numbers to skip, since lost copies may have given them
	stale     *drover.Reason       // why the records may be an older copy
	successes []engine.Success     // all successes, even those unknown to a copy that was put back
	done      map[drover.JobID]int // successful attempts that the last engine was given at its start, of jobs that could start: none of these may begin again
}

var errDisk = errors.New("disk: no space left")

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	return &Disk{
		Final:     map[drover.JobID]drover.JobState{},
		jobs:      map[int64]engine.Job{},
		ended:     map[int64]engine.JobEnd{},
		elements:  map[drover.JobID]engine.Element{},
		attempts:  map[drover.JobID]engine.Attempt{},
		instances: map[int64]engine.Instance{},
		had:       map[int64][]share{},
		spending:  map[string]engine.Spending{},
		pools:     map[string]engine.PoolRow{},
		spent:     map[span]drover.Money{},
		numbers:   map[drover.JobID]int{},
		begun:     map[drover.JobID]int{},
		lost:      map[drover.JobID]int{},
		wishes:    map[int64]engine.Body{},
		again:     map[int64]int64{},
		nonce:     "n",
	}
}

// Commit applies the writes.
func (d *Disk) Commit(_ context.Context, writes []engine.Write) error {
	for _, w := range writes {
		if err := d.write(w); err != nil {
			return err
		}
	}
	return nil
}

func (d *Disk) write(w engine.Write) error {
	switch {
	case w.Job != nil:
		d.jobs[w.Job.Number] = *w.Job
		d.lastJob, d.lastAgain = max(d.lastJob, w.Job.Number), max(d.lastAgain, w.Job.Again)
	case w.Ended != nil:
		if err := d.ownLife(w.Ended.Number, w.Ended.Reason); err != nil {
			return err
		}
		delete(d.jobs, w.Ended.Number)
		d.ended[w.Ended.Number] = *w.Ended
		maps.DeleteFunc(d.done, func(id drover.JobID, _ int) bool { return id.Number == w.Ended.Number }) // a person may want it to run again
	case w.Element != nil:
		return d.writeElement(*w.Element)
	case w.Attempt != nil:
		return d.writeAttempt(*w.Attempt)
	case w.Instance != nil:
		d.returns(w.Instance.ID)
		d.instances[w.Instance.ID] = *w.Instance
		d.last = max(d.last, w.Instance.ID)
	case w.Gone != nil:
		if in := d.instances[w.Gone.ID]; in.Created != 0 {
			d.spend("fleet", claim{bill: billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: w.Gone.At}})
		}
		delete(d.instances, w.Gone.ID)
		d.Spent += w.Gone.Cost
		if w.Gone.Departed != nil {
			d.departed = append(d.departed, w.Gone.Departed)
		}
	case w.Blocks != nil:
		d.blocks = *w.Blocks
	case w.Spending != nil && w.Spending.Dropped:
		delete(d.spending, w.Spending.Scope)
	case w.Spending != nil:
		d.spending[w.Spending.Scope] = *w.Spending
	case w.Closing:
		d.closing = true
	case w.Queue != nil:
		d.paused = w.Queue.Paused
	case w.Pool != nil && w.Pool.Gone:
		delete(d.pools, w.Pool.Name)
	case w.Pool != nil:
		d.pools[w.Pool.Name] = *w.Pool
	case w.Reply != nil:
		delete(d.wishes, w.Reply.Wish)
	case w.Stale != nil:
		d.stale, d.last, d.leapt = &w.Stale.Reason, w.Stale.LastInstance, w.Stale.LastAttempt
	case w.Current:
		d.stale = nil
	}
	return nil
}

// returns removes an instance from those that are gone, if it exists again.
func (d *Disk) returns(id int64) {
	at := slices.IndexFunc(d.departed, func(o *engine.Departed) bool { return o.Instance.ID == id })
	if at < 0 {
		return
	}
	was := d.departed[at]
	d.departed = slices.Delete(slices.Clone(d.departed), at, at+1)
	d.Spent -= was.Cost
	d.unspend("fleet", claim{bill: billing.Bill{Tariff: was.Instance.Tariff(), Created: was.Instance.Created, End: was.Instance.Ended}})
}

func (d *Disk) writeElement(row engine.ElementRow) error {
	id := drover.JobID{Number: row.Job, Index: row.Element.Index}
	if was, ok := d.Final[id]; ok {
		return fmt.Errorf("job %v is %s and was to become %s", id, was, row.State)
	}
	if err := d.ownLife(row.Job, row.Reason); err != nil {
		return err
	}
	d.elements[id], d.numbers[id] = row.Element, row.Element.Number
	if row.State.Final() {
		d.Final[id] = row.State
		delete(d.elements, id)
	}
	return nil
}

func (d *Disk) writeAttempt(row engine.AttemptRow) error {
	a := row.Attempt
	if before := d.done[a.ID.Job]; before != 0 && a.State == drover.AttemptStarting {
		return fmt.Errorf("attempt %v is to start, although it was told that attempt %d had succeeded", a.ID, before)
	}
	a.Effect, a.Fails, a.Retry = 0, 0, 0
	d.begun[a.ID.Job] = max(d.begun[a.ID.Job], a.ID.Number)
	d.attempts[a.ID.Job] = a
	if !a.State.Live() {
		delete(d.attempts, a.ID.Job)
		d.pay(row)
	}
	if a.State == drover.AttemptLost && a.Stop == nil {
		d.lost[a.ID.Job]++
	}
	if a.State == drover.AttemptSucceeded {
		d.successes = append(d.successes, engine.Success{Attempt: a.ID, Exit: *a.Exit, Ended: a.Ended})
	}
	return nil
}

// Forget loses the log of successes.
func (d *Disk) Forget() { d.successes = nil }

// told records which jobs a new engine must treat as done.
func (d *Disk) told(s engine.State) {
	d.done = map[drover.JobID]int{}
	for _, won := range s.Successes {
		id := won.Attempt
		_, there := d.jobs[id.Job.Number]
		_, final := d.Final[id.Job] // then it runs again only if a person wants that
		a, lives := d.attempts[id.Job]
		if there && !final && id.Number >= d.numbers[id.Job] && !(lives && a.Stop != nil) {
			d.done[id.Job] = id.Number
		}
	}
}

// live returns how many live attempts a job has.
func (d *Disk) live(number int64) (n int) {
	for id := range d.attempts {
		if id.Number == number {
			n++
		}
	}
	return n
}

// used reports whether an instance has a live attempt.
func (d *Disk) used(instance int64) bool {
	for _, a := range d.attempts {
		if a.Instance == instance {
			return true
		}
	}
	return false
}

// missed reports whether an instance has an attempt that nobody has ordered to end permanently.
func (d *Disk) missed(in engine.Instance) bool {
	for _, a := range d.attempts {
		if a.Instance == in.ID && (a.Stop == nil || a.Stop.Cause == drover.ReasonPreempted || a.Stop.Cause == drover.ReasonGang) {
			return true
		}
	}
	return false
}

// named reports whether this store gave an instance its name.
func (d *Disk) named(name string) bool { return strings.Contains(name, "-"+d.nonce+"-") }

// ownLife checks that a person's cancel ends the job in the life in which the person saw it.
func (d *Disk) ownLife(job int64, why drover.Reason) error {
	if own := lifeText(d.jobs[job].Again); why.Code == drover.ReasonCancelled && strings.HasPrefix(why.Text, lifeWords) && why.Text != own {
		return fmt.Errorf("job %d ended because it was %q, but its state is %q", job, why.Text, own)
	}
	return nil
}

// Retry requeues what did not succeed of a final job, as a person's wish, and returns the job as the engine must
// receive it. The caller passes the job as it was submitted.
func (d *Disk) Retry(j engine.Job) engine.Job {
	d.given++
	j.Again, d.again[j.Number] = d.given, d.given
	waiting := j.Queued
	j.Queued = nil
	for _, run := range waiting {
		for i := run.First; i <= run.Last; i++ {
			d.requeue(&j, i)
		}
	}
	delete(d.ended, j.Number)
	return d.waiting(j)
}

// waiting returns a job without the dependencies that are met.
func (d *Disk) waiting(j engine.Job) engine.Job {
	j.After = slices.DeleteFunc(slices.Clone(j.After), func(n int64) bool { return d.ended[n].State == drover.JobSucceeded })
	j.AfterAny = slices.DeleteFunc(slices.Clone(j.AfterAny), func(n int64) bool { return d.ended[n].State != "" })
	return j
}

func (d *Disk) requeue(j *engine.Job, index int) {
	id := drover.JobID{Number: j.Number, Index: index}
	if d.Final[id] == drover.JobSucceeded {
		j.Succeeded++
		return
	}
	j.Queued.Add(index)
	delete(d.Final, id)
	delete(d.lost, id)
	if n := d.numbers[id]; n > 0 {
		el := engine.Element{Index: index, Number: n}
		d.elements[id] = el
		j.Tried = append(j.Tried, el)
	}
}

// Begin returns the State that a new controller finds, as the real store does: observed values are zero.
func (d *Disk) Begin() engine.State {
	d.epoch++
	s := engine.State{
		Version: engine.StateVersion, Fleet: "f", Nonce: d.nonce, Epoch: d.epoch, LastInstance: d.last, LastJob: d.lastJob, LastAgain: d.lastAgain,
		LastAttempt: d.leapt, StaleRecords: d.stale, Closing: d.closing, Paused: d.paused, Spent: d.Spent, Blocks: slices.Clone(d.blocks),
	}
	tried := map[int64][]engine.Element{}
	for id, el := range d.elements {
		tried[id.Number] = append(tried[id.Number], el)
	}
	for _, n := range slices.Sorted(maps.Keys(d.jobs)) {
		was := d.jobs[n]
		j := was.Clone()
		j.Tried = tried[n]
		slices.SortFunc(j.Tried, func(a, b engine.Element) int { return cmp.Compare(a.Index, b.Index) })
		s.Jobs = append(s.Jobs, j)
	}
	for _, id := range slices.Sorted(maps.Keys(d.instances)) {
		s.Instances = append(s.Instances, asFound(d.instances[id]))
	}
	for _, scope := range slices.Sorted(maps.Keys(d.spending)) {
		s.Spending = append(s.Spending, d.spending[scope])
	}
	for _, name := range slices.Sorted(maps.Keys(d.pools)) {
		s.Pools = append(s.Pools, d.pools[name])
	}
	if d.stale != nil {
		s.Successes = slices.Clone(d.successes)
	}
	s.Departed = slices.Clone(d.departed)
	s.Attempts = slices.SortedFunc(maps.Values(d.attempts), func(a, b engine.Attempt) int {
		return a.ID.Job.Compare(b.ID.Job)
	})
	return s
}

// asFound returns an instance without what was observed of it.
func asFound(in engine.Instance) engine.Instance {
	in.Candidates, in.Reservations, in.Rates = slices.Clone(in.Candidates), slices.Clone(in.Reservations), slices.Clone(in.Rates)
	return in.Durable()
}
