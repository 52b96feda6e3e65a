package fleet

import (
	"drover"
	"drover/internal/engine/verdict"
	"drover/internal/runtimes"
)

// Attempt is a live attempt.
type Attempt struct {
	ID       drover.AttemptID    `json:"id"`
	Instance int64               `json:"instance"`
	State    drover.AttemptState `json:"state"`
	Started  drover.Time         `json:"started"` // committed
	Ended    drover.Time         `json:"ended,omitempty"`
	Exit     *drover.Exit        `json:"exit,omitempty"`     // once collecting
	Stop     *verdict.Verdict    `json:"stop,omitempty"`     // why it was told to stop
	Unproven bool                `json:"unproven,omitempty"` // started before attempts had proofs, so none is required

	Likely runtimes.Dist `json:"likely,omitzero"` // its likely run time when it began

	// Observed.
	Effect int64           `json:"effect,omitempty"` // start or collect in flight
	Fails  int             `json:"fails,omitempty"`  // of that effect, in a row
	Unkept verdict.Verdict `json:"unkept,omitzero"`  // why its output could not be stored at the last try
	Missed int             `json:"missed,omitempty"` // how often, in a row, its instance did not have its output
	Retry  drover.Time     `json:"retry,omitempty"`  // when it may be retried
}

// Doomed reports whether the attempt, whose instance is being interrupted, will probably have to be retried.
func (a *Attempt) Doomed() bool {
	if a.State == drover.AttemptCollecting {
		return a.Exit.Cause == drover.CauseInterrupted
	}
	return a.Stop == nil
}
