package simulate

import (
	"context"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
	"drover/internal/eventqueue"
	"drover/internal/loop"
)

// world is what surrounds the engine: the clouds, their instances, what runs on them, and a store that forgets.
type world struct {
	in     Input
	m      *meter
	loop   *loop.Loop
	agenda eventqueue.Queue
	now    drover.Time
	wake   drover.Time // 0: none is asked for
	inbox  []engine.Event
	clouds map[string]*cloud
	vms    map[int64]*vm // by the engine's number
	made   int           // instances, ever
	next   int           // job of the trace that is submitted next
	open   map[int64]int // elements of submitted jobs that are not final, by number
	closed bool
	solver solver

	pools  map[string]*keeper // by name
	spells map[pool.Place]*spells
}

// runEngine has the engine decide.
func runEngine(ctx context.Context, in Input, m *meter) error {
	e, err := engine.New(engine.State{Version: engine.StateVersion, Fleet: "simulated", Nonce: "s", Epoch: 1})
	if err != nil {
		return err
	}
	w := &world{
		in: in, m: m, now: in.Begin(), clouds: map[string]*cloud{}, vms: map[int64]*vm{}, open: map[int64]int{}, spells: map[pool.Place]*spells{},
	}
	for _, c := range in.Settings.Clouds {
		w.clouds[c.Name] = &cloud{w: w, name: c.Name}
	}
	w.loop = &loop.Loop{Engine: e, Store: w, Outside: w}
	w.keepers()
	w.configure()
	if err := w.run(ctx); err != nil {
		return err
	}
	m.pools = w.kept()
	return nil
}

// configure tells the engine its settings, and again whenever a schedule changes them while pools are kept.
func (w *world) configure() {
	settings := unwatched(w.in.Settings)
	if w.in.Scheduled != nil && w.in.For > 0 {
		var next drover.Time
		if settings.Pools, next = w.in.Scheduled(w.now); next != 0 && next < w.ends() {
			w.after(next.Sub(w.now), w.configure)
		}
		w.follow(settings.Pools)
	}
	w.tell(engine.Configured{Settings: settings})
}

// unwatched has the engine asked less often when nothing happens: in this world nothing falls silent and the clock never stops, which is what
// it looks for. Up to the boot timeout no deadline follows from that. But while money is limited, that of idle instances is watched as it is
// configured.
func unwatched(s engine.Settings) engine.Settings {
	if s.MaxCost == 0 && len(s.Budgets) == 0 {
		s.Lifecycle.ProbeInterval = max(s.Lifecycle.ProbeInterval, s.Lifecycle.BootTimeout)
	}
	return s
}

// run lets the world go on until all jobs are final and all instances gone, or until nothing more will happen.
func (w *world) run(ctx context.Context) error {
	for steps := 0; ; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return errEnded(ctx, w.now.Sub(w.m.begin))
		}
		w.submit()
		if len(w.inbox) == 0 && w.wake != 0 && w.wake <= w.now {
			w.tell(engine.Ticked{})
		}
		if len(w.inbox) > 0 {
			if err := w.step(ctx); err != nil {
				return err
			}
		}
		if w.over() {
			return nil
		}
		w.now = w.following()
		w.m.at(w.now)
		w.agenda.Until(w.now)
	}
}

// step has the engine decide on what has come in.
func (w *world) step(ctx context.Context) error {
	events := w.inbox
	w.inbox = nil
	wake, err := w.loop.Step(ctx, events)
	w.wake = wake
	return err
}

// following is when something happens next, never before now.
func (w *world) following() drover.Time {
	next, _ := w.agenda.Next()
	for _, at := range []drover.Time{w.wake, w.arrival(), w.ends()} {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return max(next, w.now)
}

// arrival is when the next job is submitted; 0 if none is.
func (w *world) arrival() drover.Time {
	if w.next == len(w.in.Trace.Jobs) {
		return 0
	}
	return w.m.begin.Add(w.in.Trace.Jobs[w.next].Submit)
}

// over reports whether the simulation is at its end. A fleet that keeps instances though nothing is left to do is told to close.
func (w *world) over() bool {
	quiet := w.now.Sub(w.m.last)
	switch {
	case w.in.For > 0:
		if w.now < w.ends() {
			return false
		}
		w.endAll()
		return true
	case w.next < len(w.in.Trace.Jobs):
		return false
	case w.loop.Engine.AtRest():
		return true
	case len(w.open) == 0 && quiet > 24*time.Hour && !w.closed:
		w.closed = true
		w.tell(engine.CloseAsked{})
	}
	_, more := w.agenda.Next()
	return quiet > stalled && w.m.state.used == 0 || !more && w.wake == 0 && len(w.inbox) == 0
}

// tell brings the engine word of something, together with all else that happens at this moment.
func (w *world) tell(body engine.Body) {
	w.inbox = append(w.inbox, engine.Event{At: w.now, Body: body})
}

func (w *world) after(d time.Duration, do func()) { w.agenda.Add(w.now.Add(d), do) }

// answer tells the engine of something in a while.
func (w *world) answer(d time.Duration, body engine.Body) {
	w.after(d, func() { w.tell(body) })
}

// submit brings the jobs whose time has come. A job's number is its place in the trace, from 1 on.
func (w *world) submit() {
	var jobs []engine.Job
	for w.next < len(w.in.Trace.Jobs) && w.arrival() <= w.now {
		t := w.in.Trace.Jobs[w.next]
		w.next++
		j := engine.Job{
			Number: int64(w.next), Name: "job", User: t.User, Shape: w.in.shape(t), Priority: max(t.Priority, drover.DefaultPriority),
			Attempts: drover.DefaultAttempts, Expected: w.in.Expected.of(t), MaxWait: w.in.MaxWait, Queued: engine.Ranges{{First: -1, Last: -1}},
		}
		if w.in.Jobs != nil {
			j = w.in.Jobs[w.next-1]
		} else if t.Count > 1 {
			j.Array = drover.Array{Last: t.Count - 1, Set: true}
			j.Queued = engine.Ranges{{First: 0, Last: t.Count - 1}}
		}
		jobs = append(jobs, j)
		w.open[j.Number] = t.Count
		w.m.submitted(t.Count)
	}
	if len(jobs) > 0 {
		w.tell(engine.Submitted{Jobs: jobs})
	}
}

// Commit takes note of what is final and forgets the rest.
func (w *world) Commit(_ context.Context, writes []engine.Write) error {
	for _, write := range writes {
		switch {
		case write.Element != nil && write.Element.State.Final():
			w.open[write.Element.Job]--
			if write.Element.Started == 0 && write.Element.Element.Number == 0 {
				w.m.refuse(1)
			} else if write.Element.State != drover.JobSucceeded {
				w.m.failed++
			}
		case write.Instance != nil:
			w.wrote(*write.Instance)
		case write.Gone != nil:
			w.left(write.Gone.ID)
		case write.Ended != nil:
			if left := w.open[write.Ended.Number]; left > 0 { // they never had an attempt, and so no row
				w.m.refuse(left)
			}
			delete(w.open, write.Ended.Number)
		}
	}
	return nil
}
