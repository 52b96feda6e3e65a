package simulate

import (
	"context"
	"time"

	"drover"
	"drover/internal/eventqueue"
	"drover/internal/trace"
)

// older is a scheduler with one of the simpler policies. Its decisions take no time, and it immediately notices that a
// job has ended.
//
// One per job: the scheduler rents the cheapest offering that can hold a job for that job alone, and destroys the
// instance when the job ends.
//
// First fit: a job goes to the oldest instance, booting or ready, that has room for it. If there is none, the scheduler
// rents the cheapest offering that can hold the job. It destroys an instance that has been empty for the idle timeout.
//
// Reuse: the same as one per job, but instead of renting, a job waits for an instance of the same offering if that
// instance is expected to be free before a new one would have booted. If the expected run time of a job is unknown or
// already exceeded, it is unknown when its instance will be free.
//
// With every policy, a job waits if nothing more may be rented for it. Waiting jobs are retried in order whenever
// something changes. Jobs that lose their instance to an interruption go to the front of the queue. Interruption
// notices are ignored.
type older struct {
	in     Input
	policy Policy
	m      *meter
	prices map[drover.Shape]int // the index of the cheapest offering for each shape
	priced int                  // the market step that prices belongs to
	agenda eventqueue.Queue
	now    drover.Time
	next   int // index of the trace's next job
	queue  queue
	fleet  []*rented      // oldest first
	room   map[string]int // how many more instances each cloud may have
	seen   int            // jobs submitted in total
	made   int            // instances requested in total
}

// rented is an instance of such a scheduler.
type rented struct {
	offering drover.Offering
	free     drover.Resources
	user     string // of its jobs, see kind
	hire     *hire  // nil until its cloud has created it
	ready    bool
	gone     bool      // it takes no more jobs
	paid     bool      // its bill has ended
	jobs     []*placed // in order of arrival
	line     []*placed // start one after another once jobs have ended
	asked    drover.Time
	idle     int // how often it has become idle
}

// placed is a waiting or running job.
type placed struct {
	kind
	seq   int // its place in the queue
	job   trace.Job
	tried bool
	begun drover.Time // 0: it is not running
}

// kind is what decides where a job may be placed.
type kind struct {
	shape drover.Shape
	user  string // empty if users share instances
}

func runOlder(ctx context.Context, in Input, p Policy, m *meter) error {
	o := &older{in: in, policy: p, m: m, prices: map[drover.Shape]int{}, now: m.begin, room: map[string]int{}, queue: queue{}}
	const unlimited = 1 << 30
	for _, c := range in.Settings.Clouds {
		if o.room[c.Name] = c.MaxInstances; c.MaxInstances == 0 {
			o.room[c.Name] = unlimited
		}
	}
	for steps := 0; ; steps++ {
		if err := cutOff(ctx, steps, o.now.Sub(m.begin)); err != nil {
			return err
		}
		o.submit()
		at := o.following()
		if at == 0 || o.over() {
			return nil
		}
		o.now = at
		m.at(at)
		o.agenda.Until(at)
	}
}

// over reports whether all jobs have ended and all bills are settled.
func (o *older) over() bool {
	return o.next == len(o.in.Trace.Jobs) && len(o.queue) == 0 && len(o.fleet) == 0 && len(o.m.hires) == 0
}

// following returns the time of the next event; 0 if there is none.
func (o *older) following() drover.Time {
	next, _ := o.agenda.Next()
	if o.next < len(o.in.Trace.Jobs) {
		if at := o.m.begin.Add(o.in.Trace.Jobs[o.next].Submit); next == 0 || at < next {
			return at
		}
	}
	return next
}

func (o *older) after(d time.Duration, do func()) { o.agenda.Add(o.now.Add(d), do) }

// submit submits the jobs that are due, each element of an array separately.
func (o *older) submit() {
	for o.next < len(o.in.Trace.Jobs) && o.m.begin.Add(o.in.Trace.Jobs[o.next].Submit) <= o.now {
		t := o.in.Trace.Jobs[o.next]
		o.next++
		o.m.submitted(t.Count)
		k := kind{shape: o.in.shape(t)}
		if o.in.Settings.Lifecycle.Sharing == drover.ShareUser {
			k.user = t.User
		}
		if o.cheapest(k.shape) < 0 {
			o.m.refuse(t.Count)
			continue
		}
		for range t.Count {
			o.seen++
			o.place(&placed{kind: k, seq: o.seen, job: t})
		}
	}
}
