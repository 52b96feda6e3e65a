package simulate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
	"drover/internal/eventqueue"
	"drover/internal/loop"
)

// world is the engine's environment: the clouds, their instances, the attempts on them, and a store that forgets.
type world struct {
	in     Input
	m      *meter
	loop   *loop.Loop
	agenda eventqueue.Queue
	now    drover.Time
	wake   drover.Time // 0: no wake-up is requested
	inbox  []engine.Event
	clouds map[string]*cloud
	vms    map[int64]*vm // by the engine's number
	made   int           // instances created in total
	next   int           // index of the trace's next job
	open   map[int64]int // elements of submitted jobs that are not final, by number
	closed bool
	solver solver

	pools  map[string]*keeper // by name
	spells map[pool.Place]*spells
}

// runEngine runs the simulation with the engine.
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
	m.pools, m.stuck = w.kept(), w.stuck()
	return nil
}

// stuck says why the first job that has not ended waits, or what it does; empty if all have ended.
func (w *world) stuck() string {
	if len(w.open) == 0 {
		return ""
	}
	first := slices.Min(slices.Collect(maps.Keys(w.open)))
	x, _ := w.loop.Engine.Explain(drover.JobID{Number: first, Index: -1})
	var said []string
	for _, r := range x.Reasons {
		said = append(said, r.Text)
	}
	return w.in.about(int(first)-1) + strings.Join(said, "; ")
}

// configure gives the engine its settings, and again whenever a schedule changes the pools.
func (w *world) configure() {
	settings := unwatched(w.in.Settings)
	switch {
	case w.in.For == 0:
		settings.Pools = nil
	case w.in.Scheduled != nil:
		var next drover.Time
		if settings.Pools, next = w.in.Scheduled(w.now); next != 0 && next < w.ends() {
			w.after(next.Sub(w.now), w.configure)
		}
		w.follow(settings.Pools)
	}
	w.tell(engine.Configured{Settings: settings})
}

// unwatched makes the engine check less often when nothing happens: in this world, no instance falls silent and the
// clock never stops, so these checks have nothing to find. The boot timeout is the longest interval that moves no
// deadline. If there are budgets, idle instances are still checked as often as configured.
func unwatched(s engine.Settings) engine.Settings {
	if s.MaxCost == 0 && len(s.Budgets) == 0 {
		s.Lifecycle.ProbeInterval = max(s.Lifecycle.ProbeInterval, s.Lifecycle.BootTimeout)
	}
	return s
}

// run simulates until all jobs are final and all instances are gone, or until no more events are due.
func (w *world) run(ctx context.Context) error {
	for steps := 0; ; steps++ {
		if err := cutOff(ctx, steps, w.now.Sub(w.m.begin)); err != nil {
			return err
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

// step makes the engine decide on the pending events.
func (w *world) step(ctx context.Context) error {
	events := w.inbox
	w.inbox = nil
	wake, err := w.loop.Step(ctx, events)
	w.wake = wake
	return err
}

// following returns the time of the next event, which is never before now.
func (w *world) following() drover.Time {
	next, _ := w.agenda.Next()
	for _, at := range []drover.Time{w.wake, w.arrival(), w.ends()} {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return max(next, w.now)
}

// arrival returns when the next job is submitted; 0 if there is none.
func (w *world) arrival() drover.Time {
	if w.next == len(w.in.Trace.Jobs) {
		return 0
	}
	return w.m.begin.Add(w.in.Trace.Jobs[w.next].Submit)
}

// over reports whether the simulation has ended. It closes a fleet that keeps instances although no work is left.
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

// tell sends the engine an event, together with the other events of this moment.
func (w *world) tell(body engine.Body) {
	w.inbox = append(w.inbox, engine.Event{At: w.now, Body: body})
}

func (w *world) after(d time.Duration, do func()) { w.agenda.Add(w.now.Add(d), do) }

// answer sends the engine an event after a delay.
func (w *world) answer(d time.Duration, body engine.Body) {
	w.after(d, func() { w.tell(body) })
}

// submit submits the jobs that are due. A job's number is its position in the trace, from 1.
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

// Commit records final jobs and forgets the other writes.
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
			if left := w.open[write.Ended.Number]; left > 0 { // they never had an attempt, so they have no row
				w.m.refuse(left)
			}
			delete(w.open, write.Ended.Number)
		}
	}
	return nil
}
