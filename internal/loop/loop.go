// Package loop turns events into what follows from them: it has the engine decide, commits the decisions' writes in one
// group, and only then releases their effects. The controller, the simulator and a replay run the same loop around the
// same engine.
package loop

import (
	"context"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine"
)

// Store commits writes, all of them or none, in their order.
type Store interface {
	Commit(ctx context.Context, writes []engine.Write) error
}

// Outside carries out what was decided. Release must not block and must not call back into the loop.
type Outside interface {
	Release(effects []engine.Effect, notes []engine.Note)
}

// Recorder keeps what happened and what was decided, for replay. It must not block for long; it has no way to fail the
// loop.
type Recorder interface {
	Append(ev engine.Event, d engine.Decision)
}

// Loop is one engine and what surrounds it. One goroutine at a time may call Step and Query.
type Loop struct {
	Engine   *engine.Engine
	Store    Store
	Outside  Outside
	Recorder Recorder // may be nil

	last   drover.Time
	broken error
}

// Step takes events that came in together and returns when the engine wants to be asked next, 0 for not at all.
//
// The writes of all of them are committed as one group, so that many events cost one commit; no effect of any leaves
// before. If the commit fails the engine has decided what is not so: the Loop is then broken for good, every later Step
// returns the same error, and whoever owns it begins again from the store.
func (l *Loop) Step(ctx context.Context, events []engine.Event) (wake drover.Time, err error) {
	if l.broken != nil {
		return 0, l.broken
	}
	var all engine.Decision
	for i, ev := range events {
		ev.At = max(ev.At, l.last)
		l.last = ev.At
		d := l.Engine.Apply(ev)
		if l.Recorder != nil {
			l.Recorder.Append(ev, d)
		}
		if i == 0 { // usually the only one; clipped, because the recorder has these slices too
			all = engine.Decision{Writes: slices.Clip(d.Writes), Effects: slices.Clip(d.Effects), Notes: slices.Clip(d.Notes)}
		} else {
			all.Writes = append(all.Writes, d.Writes...)
			all.Effects = append(all.Effects, d.Effects...)
			all.Notes = append(all.Notes, d.Notes...)
		}
		for _, f := range d.Effects {
			if f.Fire != nil { // they outlive the controller
				all.Writes = append(all.Writes, engine.Write{Hook: &engine.HookRow{Effect: f.ID, Fire: *f.Fire}})
			}
		}
		wake = d.Wake
	}
	if len(all.Writes) > 0 {
		if err := l.Store.Commit(ctx, all.Writes); err != nil {
			l.broken = fmt.Errorf("committing a decision: %w", err)
			return 0, l.broken
		}
	}
	l.Outside.Release(all.Effects, all.Notes)
	return wake, nil
}
