package engine

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// An attempt is told to stop as soon as its runner is connected. It ends when the runner says so or the instance is
// gone. An attempt that cannot be killed makes its instance unhealthy.

// killGrace is how long after SIGKILL an attempt may take to end before its instance counts as broken.
const killGrace = 30 * time.Second

// stopAttempt stops a live attempt: SIGTERM, then SIGKILL after the grace.
func (e *Engine) stopAttempt(a *Attempt, why Verdict) {
	switch {
	case a == nil:
		return
	case a.Stop != nil && requeues(*a.Stop):
		e.stopPermanently(a, why)
		return
	case a.Stop != nil && !givenUp(a) || a.State == drover.AttemptCollecting && requeues(why):
		return
	}
	why.Since = e.s.Now
	a.Stop = &why
	e.writeAttempt(a, why)
	if a.State != drover.AttemptCollecting { // else it is only not to be tried again
		e.askStop(a)
	}
	e.needsPlacing = true // its end is no longer expected to start it again
	e.touch(e.fleet.Member(a.Instance))
}

func (e *Engine) askStop(a *Attempt) {
	if e.fleet.Member(a.Instance).Connected {
		e.effect(Effect{Stop: &Stop{Attempt: a.ID, Instance: a.Instance, Grace: e.life().TermTimeout}})
	}
}

// unkillableAt returns when an attempt that was told to stop counts as unkillable. Time during which the controller was
// suspended does not count.
func (e *Engine) unkillableAt(a *Attempt) drover.Time {
	return max(a.Stop.Since, e.s.Looking).Add(e.life().TermTimeout + killGrace)
}

// stopUnkillable marks an instance with an unkillable attempt as unhealthy: it gets no more work and is destroyed once
// it runs nothing else. The other attempts may finish, since what keeps a process from dying, such as a hanging file
// system, need not affect them.
func (e *Engine) stopUnkillable(in *fleet.Member) {
	at := slices.IndexFunc(in.Load, e.unkillable)
	if at < 0 {
		return
	}
	a := in.Load[at]
	why := e.verdict(drover.ReasonBroken, "attempt %v did not end %v after SIGKILL", a.ID, killGrace)
	if slices.ContainsFunc(in.Load, func(a *Attempt) bool { return !e.unkillable(a) }) {
		e.markUnhealthy(in, why)
		return
	}
	e.breakInstance(in, why)
}

// unkillable reports whether an attempt is still running long after it was told to stop.
func (e *Engine) unkillable(a *Attempt) bool {
	return a.Stop != nil && a.State == drover.AttemptRunning && e.unkillableAt(a) <= e.s.Now
}
