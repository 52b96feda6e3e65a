package simulate

import (
	"context"
	"time"

	"drover"
	"drover/internal/eventqueue"
	"drover/internal/trace"
)

// older is a system that decides as older ones do. It makes its decisions in no time and knows of the end of a job at once.
//
// One per job: a job has an instance rented for it alone, the cheapest offering that holds it, which is destroyed when the job ends.
//
// First fit: a job takes the oldest instance, booting or ready, that has room for it; if there is none, the cheapest offering that holds it is
// rented. An instance that has been empty for the idle timeout is destroyed.
//
// Reuse: as one per job, but before an instance is rented a job waits for one of the same offering that is said to be free sooner than another would
// have booted. Nothing is known of when an instance is free whose job is not said to take any time, or takes longer than was said.
//
// With all, jobs for which nothing more may be rented wait, and are tried again in their order whenever something changes. What is lost
// with an instance that its cloud takes back waits again, first of all; notices are not listened to.
type older struct {
	in     Input
	policy Policy
	m      *meter
	prices map[drover.Shape]int // the offering that is the cheapest for a shape
	priced int                  // the step of the market for which prices hold
	agenda eventqueue.Queue
	now    drover.Time
	next   int // job of the trace that is submitted next
	queue  queue
	fleet  []*rented      // by age
	room   map[string]int // for instances, by cloud
	seen   int            // jobs, ever
	made   int            // instances, ever
}

// rented is an instance of an older system.
type rented struct {
	offering drover.Offering
	free     drover.Resources
	user     string // whose jobs it takes, if instances belong to users
	hire     *hire  // nil: its cloud has not made it yet
	ready    bool
	gone     bool      // it takes no jobs any more
	paid     bool      // its bill has ended
	jobs     []*placed // in the order in which they came
	line     []*placed // that begin one after the other once those have ended
	asked    drover.Time
	idle     int // how often it has fallen idle
}

// placed is a job that waits or runs.
type placed struct {
	seq   int // its place in the queue
	job   trace.Job
	shape drover.Shape
	tried bool
	begun drover.Time // 0: it does not run
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
		if steps%1024 == 0 && ctx.Err() != nil {
			return errEnded(ctx, o.now.Sub(m.begin))
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

// over reports whether all is done and paid.
func (o *older) over() bool {
	return o.next == len(o.in.Trace.Jobs) && len(o.queue) == 0 && len(o.fleet) == 0 && len(o.m.hires) == 0
}

// following is when something happens next; 0 for never.
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

// submit takes in the jobs whose time has come, each element of an array for itself.
func (o *older) submit() {
	for o.next < len(o.in.Trace.Jobs) && o.m.begin.Add(o.in.Trace.Jobs[o.next].Submit) <= o.now {
		t := o.in.Trace.Jobs[o.next]
		o.next++
		o.m.submitted(t.Count)
		shape := o.in.shape(t)
		if o.cheapest(shape) < 0 {
			o.m.refuse(t.Count)
			continue
		}
		for range t.Count {
			o.seen++
			o.place(&placed{seq: o.seen, job: t, shape: shape})
		}
	}
}
