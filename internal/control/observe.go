package control

import (
	"context"
	"maps"
	"sync"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
)

// Observer receives what a Controller does, for metrics. Its methods are called concurrently; they must not block or
// keep their arguments.
type Observer interface {
	// Begun is called first, with the State that the Controller continues from.
	Begun(s engine.State)

	// Decided reports which events were decided together, and how long that took without the commit.
	Decided(events []engine.Event, took time.Duration)

	// Committed reports which writes were committed, in order, how long that took, and the error if it failed.
	Committed(at drover.Time, writes []engine.Write, took time.Duration, err error)

	// LoggedIn reports that a login to an instance succeeded and its host key was verified.
	LoggedIn(instance int64, at drover.Time)

	// Probed reports the result of a boot probe on one of a cloud's instances.
	Probed(cloud string, passed bool)

	// HookRan reports that a hook has run, and its failure; nil if it succeeded.
	HookRan(hook drover.Hook, failure error)

	// Done reports that an effect was carried out, and the event that answers it: nil if none does. It is called before
	// the answer is decided on.
	Done(f engine.Effect, answer engine.Body, took time.Duration)
}

// unobserved is the Observer of a Controller without one.
type unobserved struct{}

func (unobserved) Begun(engine.State) {}

func (unobserved) Decided([]engine.Event, time.Duration) {}

func (unobserved) Committed(drover.Time, []engine.Write, time.Duration, error) {}

func (unobserved) LoggedIn(int64, drover.Time) {}

func (unobserved) Probed(string, bool) {}

func (unobserved) HookRan(drover.Hook, error) {}

func (unobserved) Done(engine.Effect, engine.Body, time.Duration) {}

// Load returns how many events wait to be decided on, and how many effects are in progress, by kind. It waits for
// nothing.
func (c *Controller) Load() (events int, effects map[string]int) {
	c.flights.mu.Lock()
	defer c.flights.mu.Unlock()
	return len(c.events), maps.Clone(c.flights.kinds)
}

// flights is the effects in progress.
type flights struct {
	mu     sync.Mutex
	flying map[int64]flight // by effect; guarded by mu
	kinds  map[string]int   // guarded by mu
}

// flight is an effect in progress, and since when.
type flight struct {
	effect engine.Effect
	began  time.Time
}

func (f *flights) begin(effect engine.Effect) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flying[effect.ID] = flight{effect, time.Now()}
	f.kinds[effect.Kind()]++
}

// done reports the end of an effect, unless that was reported before: one that was answered may continue, as a
// connection does.
func (c *Controller) done(effect int64, answer engine.Body) {
	c.flights.mu.Lock()
	f, ok := c.flights.flying[effect]
	if ok {
		delete(c.flights.flying, effect)
		c.flights.kinds[f.effect.Kind()]--
	}
	c.flights.mu.Unlock()
	if ok {
		took := time.Since(f.began)
		c.cfg.Observer.Done(f.effect, answer, took)
		c.logDone(f.effect, answer, took)
	}
}

// step lets the loop decide, and reports how long that took.
func (c *Controller) step(ctx context.Context, l *loop.Loop, events []engine.Event) (wake drover.Time, err error) {
	began := time.Now()
	c.committing = 0
	c.logSubmitted(events)
	wake, err = l.Step(ctx, events)
	c.show(l.Engine)
	c.cfg.Observer.Decided(events, time.Since(began)-c.committing)
	return wake, err
}
