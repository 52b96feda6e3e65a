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
	Stop     *verdict.Verdict    `json:"stop,omitempty"`     // it was told to end
	Unproven bool                `json:"unproven,omitempty"` // it was started before attempts were given proofs, so none is asked for

	Likely runtimes.Dist `json:"likely,omitzero"` // how long it was likely to run when it began

	// Observed.
	Effect int64       `json:"effect,omitempty"` // start or collect in flight
	Fails  int         `json:"fails,omitempty"`  // of that effect, in a row
	Retry  drover.Time `json:"retry,omitempty"`  // when it may be tried again
}

// Doomed reports whether the attempt, whose instance is taken back, will have to be made again as far as is known.
func (a *Attempt) Doomed() bool {
	if a.State == drover.AttemptCollecting {
		return a.Exit.Cause == drover.CauseInterrupted
	}
	return a.Stop == nil
}
