// Package verdict says what stops something, or ends it, in a form that decisions may read.
//
// The model: a decision that something waits, stops or goes is recorded as a Verdict: its cause, since when it holds,
// when to try again, and words for people. The parts of the State that later decisions depend on hold Verdicts. A
// Reason is what people and other programs see; it is rendered from a Verdict as it leaves the engine.
//
// The invariants: a decision reads a Verdict's cause and times, never its text, and never a Reason. So words and codes
// can change freely; a test of the engine changes all of them and expects the same decisions.
package verdict

import "drover"

// Verdict is why something waits, stops or goes.
type Verdict struct {
	Cause Cause       `json:"code"`
	Text  string      `json:"text"`            // for people
	Since drover.Time `json:"since,omitempty"` // holds since
	Until drover.Time `json:"until,omitempty"` // when it ends, or is worth another try; 0: not by time alone
}

// Reason renders the verdict for people.
func (v Verdict) Reason() drover.Reason {
	return drover.Reason{Code: string(v.Cause), Text: v.Text, Since: v.Since, Until: v.Until}
}

// Of returns the verdict for a Reason from outside.
func Of(r drover.Reason) Verdict {
	return Verdict{Cause: Cause(r.Code), Text: r.Text, Since: r.Since, Until: r.Until}
}

// Cause is what stopped something. Decisions branch on those named here; others only distinguish causes.
type Cause string

// The causes on which decisions branch.
const (
	Budget    Cause = drover.ReasonBudget
	Blocked   Cause = drover.ReasonBlocked
	Limit     Cause = drover.ReasonLimit
	UserLimit Cause = drover.ReasonUserLimit
	Gang      Cause = drover.ReasonGang
	Replace   Cause = drover.ReasonReplace // a pool's changed template does not work
	Booting   Cause = drover.ReasonBooting
	Planning  Cause = drover.ReasonPlanning

	Draining   Cause = drover.ReasonDraining
	Preempted  Cause = drover.ReasonPreempted
	NoStart    Cause = drover.ReasonNoStart
	Cancelled  Cause = drover.ReasonCancelled
	Dependency Cause = drover.ReasonDependency
	Memory     Cause = drover.ReasonMemory

	GivesWay     Cause = drover.ReasonGivesWay
	Unreachable  Cause = drover.ReasonUnreachable
	Unhealthy    Cause = drover.ReasonUnhealthy // reported by the instance itself
	CreateFailed Cause = drover.ReasonCreateFailed
	BootTimeout  Cause = drover.ReasonBootTimeout
	Interrupted  Cause = drover.ReasonInterrupted
	Vanished     Cause = drover.ReasonVanished

	Capacity = Cause(drover.KindCapacity)
	Quota    = Cause(drover.KindQuota)
)

// At renders the verdict for people, with an Until only if that is to come.
func (v Verdict) At(now drover.Time) drover.Reason {
	r := v.Reason()
	if r.Until <= now {
		r.Until = 0
	}
	return r
}

// Reasons renders verdicts for people, like At.
func Reasons(now drover.Time, all ...Verdict) []drover.Reason {
	told := make([]drover.Reason, len(all))
	for i, v := range all {
		told[i] = v.At(now)
	}
	return told
}
