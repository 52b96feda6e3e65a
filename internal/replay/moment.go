package replay

import (
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/record"
)

// Moment is one event of a recording, the decision on it, and the engine's state then.
type Moment struct {
	Segment  string               `json:"segment"`
	Index    int                  `json:"index"` // of the event in the segment
	Event    engine.Event         `json:"event"`
	Decision engine.Decision      `json:"decision"`           // the replayed one
	Recorded *record.Mark         `json:"recorded,omitempty"` // the recorded decision's mark, if it differs
	Differs  []string             `json:"differs,omitempty"`  // the parts in which it differs
	Status   engine.Status        `json:"status"`
	Explains []drover.Explanation `json:"explanations"`
	State    engine.State         `json:"state"`

	After   time.Duration `json:"-"` // the recording's first event
	Subject string        `json:"-"` // empty if everything is explained
}

// maxExplained limits the explanations if there is no subject.
const maxExplained = 20

// momentOf returns the moment at which a replay has arrived.
func (r *Replay) momentOf(e *engine.Engine, s *Segment, step record.Step) *Moment {
	m := &Moment{
		Segment: s.Path, Index: step.Index, Event: step.Event, Decision: step.Decision, Status: e.Status(), Explains: []drover.Explanation{}, State: e.State(),
		After: r.Now.Sub(r.First),
	}
	if !step.Same() {
		m.Recorded, m.Differs = &step.Recorded, step.Recorded.Differs(step.Now)
	}
	subject := r.Target.Subject
	if subject == nil {
		m.Explains, _ = e.ExplainAll(maxExplained)
		return m
	}
	m.Subject = subject.String()
	if x, ok := subject.Explain(e); ok {
		m.Explains = append(m.Explains, x)
	}
	return m
}
