// Package replay repeats the decisions that a controller recorded, and reports whether each is the same. It stops at a
// time, at the first event that concerns a subject, or at the end. A Replay is for one goroutine.
package replay

import (
	"context"
	"errors"
	"os"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/record"
)

// Target is where a replay stops. The zero Target is the recording's end.
type Target struct {
	Timed   bool          // stop at a time: Until or, if that is 0, After
	Until   drover.Time   // no event before it
	After   time.Duration // the recording's first event
	Subject *Subject      // if not Timed, stop at the first event that concerns it; may be nil
}

// Replay plays segments, one after the other, up to its target or to a decision that differs.
type Replay struct {
	Target Target
	// Step, if set, is called with every event that concerns the target's subject, or with every event if there is
	// none. The replay then does not stop at the subject, only at the target's time.
	Step func(segment string, step record.Step) error
	// Progress, if set, is called after every event.
	Progress func()

	Segments []Segment   // played so far; in the last one a decision may differ
	Events   int         // decided the same
	First    drover.Time // the recording's first event, 0 before there was one
	Now      drover.Time // the last event played
	Moment   *Moment     // the target, once it is reached
	Stopped  bool        // the target is reached, or a decision differs
}

// Segment is how the replay of one segment went.
type Segment struct {
	Path     string      `json:"segment"`
	Program  string      `json:"program"`
	Settings string      `json:"settings"`
	Began    drover.Time `json:"began"`
	Ended    drover.Time `json:"ended"`
	Events   int         `json:"events"` // decided the same
	Cut      bool        `json:"cut"`
	Differs  *Moment     `json:"differs,omitempty"`
}

// Play replays the segment in a file. An error is the file's or of kind invalid; what was played until then is in
// Segments.
func (r *Replay) Play(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	s := Segment{Path: path}
	err = r.play(ctx, file, &s)
	if errors.Is(err, record.ErrCut) {
		s.Cut, err = true, nil
	}
	r.Segments = append(r.Segments, s)
	return err
}

// play decides every event of a segment.
func (r *Replay) play(ctx context.Context, file *os.File, s *Segment) error {
	reader, err := record.NewReader(file)
	if err != nil {
		return err
	}
	s.Program, s.Settings = reader.Header.Program, reader.Header.Settings
	e, err := begin(reader.State)
	if err != nil {
		return err
	}
	for step, err := range reader.Steps(e) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := r.take(e, s, step); err != nil || r.Stopped {
			return err
		}
	}
	return nil
}

// begin makes the engine of a replay. It may fail on a State that no controller recorded.
func begin(s engine.State) (e *engine.Engine, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = drover.Errorf(drover.KindInvalid, "the engine cannot start from the recording's state: %v", why)
		}
	}()
	return engine.New(s)
}

// take records one event that was decided again.
func (r *Replay) take(e *engine.Engine, s *Segment, step record.Step) error {
	r.Now = step.Event.At
	if r.First == 0 {
		r.First = r.Now
	}
	if s.Began == 0 {
		s.Began = r.Now
	}
	s.Ended = r.Now
	concerned := r.Target.Subject == nil || r.Target.Subject.In(e, step.Event, step.Decision)
	if r.Step != nil && concerned {
		if err := r.Step(s.Path, step); err != nil {
			return err
		}
	}
	switch {
	case !step.Same():
		r.Stopped, s.Differs = true, r.momentOf(e, s, step)
		return nil
	case r.reached(concerned):
		r.Stopped, r.Moment = true, r.momentOf(e, s, step)
	}
	s.Events++
	r.Events++
	if r.Progress != nil {
		r.Progress()
	}
	return nil
}

// reached reports whether the replay is at its target.
func (r *Replay) reached(concerned bool) bool {
	switch t := r.Target; {
	case t.Timed && t.Until != 0:
		return r.Now >= t.Until
	case t.Timed:
		return r.Now.Sub(r.First) >= t.After
	default:
		return t.Subject != nil && r.Step == nil && concerned
	}
}
