package record

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"drover"
	"drover/internal/engine"
)

// Decider is the engine of a replay.
type Decider interface {
	Apply(engine.Event) engine.Decision
}

// Step is one event, decided again.
type Step struct {
	Index    int // of the event, the first being 0
	Event    engine.Event
	Decision engine.Decision // the new one
	Recorded Mark
	Now      Mark
}

// Same reports whether the decision is as it was recorded.
func (s Step) Same() bool { return s.Recorded == s.Now }

// Steps gives the rest of a recording's events to a Decider that began with the recording's State. It continues after a
// decision that differs, though later differences mean little. An error ends it: ErrCut where the recording was cut
// short.
func (r *Reader) Steps(decider Decider) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		for i := 0; ; i++ {
			rec, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			step := Step{Index: i, Event: rec.Event, Recorded: rec.Mark}
			if err == nil {
				step.Decision, err = decide(decider, rec.Event)
			}
			if err == nil {
				step.Now, err = MarkOf(step.Decision)
			}
			if err != nil && !errors.Is(err, ErrCut) {
				err = fmt.Errorf("replaying event %d of the recording: %w", i, err)
			}
			if !yield(step, err) || err != nil {
				return
			}
		}
	}
}

// decide returns the decision on an event. The engine may panic on events that no controller recorded: that is the
// recording's fault.
func decide(decider Decider, ev engine.Event) (_ engine.Decision, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = drover.Errorf(drover.KindInvalid, "the engine rejects it: %v", why)
		}
	}()
	return decider.Apply(ev), nil
}

// Result is how a replay went.
type Result struct {
	Header  Header
	Events  int   // replayed with the same decisions
	Cut     bool  // the recording was cut short
	Differs *Step // the first whose decision differs; the replay ends there
}

// Replay gives a recording's events to the Decider that begin makes from its State, and compares the decisions.
func Replay(from io.Reader, begin func(engine.State) (Decider, error)) (Result, error) {
	r, err := NewReader(from)
	if err != nil {
		return Result{}, err
	}
	result := Result{Header: r.Header}
	decider, err := begin(r.State)
	if err != nil {
		return result, fmt.Errorf("loading the recording's initial state: %w", err)
	}
	for step, err := range r.Steps(decider) {
		switch {
		case errors.Is(err, ErrCut):
			result.Cut = true
			return result, nil
		case err != nil:
			return result, err
		case !step.Same():
			result.Differs = &step
			return result, nil
		}
		result.Events++
	}
	return result, nil
}
