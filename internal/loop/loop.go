// Package loop feeds events to the engine, commits the writes that it decides in one group, and only then releases its
// effects. The controller, the simulator and a replay run the same loop around the same engine.
package loop

import (
	"context"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine"
)

// Store commits writes atomically and in order.
type Store interface {
	Commit(ctx context.Context, writes []engine.Write) error
}

// Outside carries out the engine's effects. Release must not block and must not call back into the loop.
type Outside interface {
	Release(effects []engine.Effect, notes []engine.Note)
}

// Recorder stores events and decisions for replay. It must not block for long; it has no way to fail the loop.
type Recorder interface {
	Append(ev engine.Event, d engine.Decision)
}

// Loop is one engine and what surrounds it. Only one goroutine at a time may call Step.
type Loop struct {
	Engine   *engine.Engine
	Store    Store
	Outside  Outside
	Recorder Recorder // may be nil

	last   drover.Time
	broken error
}

// Step applies events that arrived together and returns when the engine next wants to be called; 0 means never.
//
// Step commits the writes of all events as one group, so that many events cost one commit, and releases effects only
// afterwards. If the commit fails, the engine's state no longer matches the store: every later Step returns the same
// error, and the Loop's owner must start again from the store.
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
			if f.Fire != nil { // hooks outlive the controller
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
