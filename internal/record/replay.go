package record

import (
	"errors"
	"fmt"
	"io"

	"drover/internal/engine"
)

// Decider is what is replayed: an engine.
type Decider interface {
	Apply(engine.Event) engine.Decision
}

// Result is how a replay went.
type Result struct {
	Header  Header
	Events  int         // replayed with the same decisions
	Cut     bool        // the recording was cut short
	Differs *Difference // the first decision that is not the same; the replay ends there
}

// Difference is a decision that came out otherwise than when it was recorded.
type Difference struct {
	Index    int // of its event, the first being 0
	Event    engine.Event
	Want     string // digest, as recorded
	Got      string
	Decision engine.Decision // as it came out now
}

// Replay gives a recording's events to the engine that begin makes of its State, and compares the decisions.
func Replay(r io.Reader, begin func(engine.State) Decider) (Result, error) {
	segment, err := NewReader(r)
	if err != nil {
		return Result{}, err
	}
	result := Result{Header: segment.Header}
	decider := begin(segment.State)
	for ; ; result.Events++ {
		rec, err := segment.Next()
		switch {
		case errors.Is(err, io.EOF):
			return result, nil
		case errors.Is(err, ErrCut):
			result.Cut = true
			return result, nil
		case err != nil:
			return result, fmt.Errorf("reading event %d of the recording: %w", result.Events, err)
		}
		decision := decider.Apply(rec.Event)
		digest, err := Digest(decision)
		if err != nil {
			return result, fmt.Errorf("comparing the decision on event %d: %w", result.Events, err)
		}
		if digest != rec.Digest {
			result.Differs = &Difference{result.Events, rec.Event, rec.Digest, digest, decision}
			return result, nil
		}
	}
}
