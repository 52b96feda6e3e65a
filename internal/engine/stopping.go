package engine

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// An attempt that is to end is told so once its runner can hear it; its end is what the runner says, or the end of its instance. One that nothing
// ends takes its instance with it.

// lastWord is how long after SIGKILL an attempt may take to end before its instance is held to be broken.
const lastWord = 30 * time.Second

// stopAttempt has a live attempt ended: SIGTERM, and SIGKILL after the grace.
func (e *Engine) stopAttempt(a *Attempt, why Verdict) {
	switch {
	case a == nil:
		return
	case a.Stop != nil && (putsOff(*a.Stop) || givenUp(a)):
		e.stopForGood(a, why)
		return
	case a.Stop != nil || a.State == drover.AttemptCollecting && putsOff(why):
		return
	}
	why.Since = e.s.Now
	a.Stop = &why
	e.writeAttempt(a, why)
	if a.State != drover.AttemptCollecting { // else it is only not to be tried again
		e.askStop(a)
	}
	e.replace = true // it is not expected back
	e.touch(e.fleet.Member(a.Instance))
}

func (e *Engine) askStop(a *Attempt) {
	if e.fleet.Member(a.Instance).Connected {
		e.effect(Effect{Stop: &Stop{Attempt: a.ID, Instance: a.Instance, Grace: e.life().TermTimeout}})
	}
}

// unstoppableAt is when an attempt that was told to end is held to be beyond that. Time in which Drover was not looking does not count.
func (e *Engine) unstoppableAt(a *Attempt) drover.Time {
	return max(a.Stop.Since, e.s.Looking).Add(e.life().TermTimeout + lastWord)
}

// stuck deals with attempts that nothing ends: their instance gets no more work, and goes once nothing else runs there. The others are let
// finish, since whatever keeps a process from dying, a file system that hangs, need not touch them.
func (e *Engine) stuck(in *fleet.Member) {
	at := slices.IndexFunc(in.Load, e.unstoppable)
	if at < 0 {
		return
	}
	a := in.Load[at]
	why := e.verdict(drover.ReasonBroken, "attempt %v did not end %v after SIGKILL", a.ID, lastWord)
	if slices.ContainsFunc(in.Load, func(a *Attempt) bool { return !e.unstoppable(a) }) {
		e.ail(in, why)
		return
	}
	e.breakInstance(in, why)
}

// unstoppable reports whether an attempt did not end although it was told to long ago.
func (e *Engine) unstoppable(a *Attempt) bool {
	return a.Stop != nil && a.State == drover.AttemptRunning && e.unstoppableAt(a) <= e.s.Now
}
