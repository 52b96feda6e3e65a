package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// instruct applies an operator's verb to an instance. One that is gone, or being destroyed, accepts only the kill that
// it follows already.
func (e *Engine) instruct(b InstructAsked) {
	in := e.fleet.Member(b.Instance)
	switch late := in == nil || in.State == drover.InstanceStopping; {
	case late && b.Verb == drover.VerbKill:
		e.reply(b.Wish, nil)
	case in == nil:
		e.reply(b.Wish, drover.Errorf(drover.KindConflict, "instance %d is gone", b.Instance))
	case late:
		e.reply(b.Wish, drover.Errorf(drover.KindConflict, "instance %s is being destroyed", in.Name))
	default:
		e.reply(b.Wish, nil)
		e.applyVerb(in, b.Verb, e.verdict(drover.ReasonOperator, "%s", cmp.Or(b.Reason.Text, b.Verb.Told())))
	}
}

func (e *Engine) applyVerb(in *fleet.Member, verb drover.Verb, why Verdict) {
	if verb == drover.VerbKill {
		e.stop(in, why)
		return
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s is %s", in.Name, why.Text), Instance: in.Name, Reason: new(why.Reason())})
	switch verb {
	case drover.VerbHold:
		e.setIdleBehavior(in, drover.IdleHold, &why)
	case drover.VerbDrain:
		in.KeepUntil = 0
		e.setIdleBehavior(in, drover.IdleDrain, &why)
	case drover.VerbRelease:
		if in.IdleSince != 0 {
			in.IdleSince = e.s.Now
		}
		e.setIdleBehavior(in, drover.IdleRun, nil)
	}
}

// setIdleBehavior sets an instance's idle behaviour, and why; nil for the usual one. Work reserved on the instance is
// placed or planned for again.
func (e *Engine) setIdleBehavior(in *fleet.Member, idle drover.IdleBehavior, why *Verdict) {
	if in.Idle != idle {
		in.Idle = idle
		e.retag(in)
	}
	in.IdleReason = why
	if idle != drover.IdleRun {
		e.dropAllReservations(in)
	}
	e.pending.Place, e.pending.Plan = true, true
	e.fleet.Revise(in)
	if in.Broken && !in.Held() {
		e.stop(in, *in.Reason)
		return
	}
	if !in.Broken {
		in.Reason = in.Remark()
	}
	e.writeInstance(in)
	e.touch(in)
}

// departs returns why the instance takes no more work and is destroyed as soon as it has none, if so.
func (e *Engine) departs(in *fleet.Member) (why Verdict, so bool) {
	switch {
	case in.Held():
	case in.Idle == drover.IdleDrain && in.IdleReason != nil:
		return *in.IdleReason, true
	case in.Idle == drover.IdleDrain:
		return e.verdict(drover.ReasonOperator, "drained"), true
	case in.Reclaimed != nil:
		return *in.Reclaimed, true
	case in.Unhealthy != nil:
		return *in.Unhealthy, true
	case in.Aged, in.UseOnce && in.Used:
		return e.whyRetired(in)
	case e.s.Draining:
		return e.verdict(drover.ReasonDraining, "the controller is shutting down"), true
	case in.Leaving:
		return e.verdict(drover.ReasonTypeRemoved, "its cloud is no longer configured"), true
	case e.typeRemoved(in):
		return e.verdict(drover.ReasonTypeRemoved, "its type %s is no longer configured", in.Type.ProviderType), true
	}
	return Verdict{}, false
}

// drain lets this controller start nothing any more. Waiting work is left to the next one.
func (e *Engine) drain() {
	if e.s.Draining {
		return
	}
	e.s.Draining, e.s.ShutdownSince = true, e.s.Now
	e.note(Note{Level: Info, Text: "draining: no more jobs start, and idle instances are destroyed"})
	for _, in := range e.fleet.All() {
		e.unneeded(in)
	}
	for _, c := range e.clouds {
		e.scheduleSecondList(c)
	}
}

// stopAll stops all attempts and requeues their jobs for the next controller. An empty reason does nothing.
func (e *Engine) stopAll(why string) {
	if why == "" {
		return
	}
	for _, in := range e.fleet.All() {
		for _, a := range slices.Clone(in.Load) {
			e.stopAttempt(a, e.verdict(drover.ReasonDraining, "%s", why))
		}
	}
}

// unneeded drops an instance's reservations, since they will never run there.
func (e *Engine) unneeded(in *fleet.Member) {
	if len(in.Reservations) > 0 {
		e.dropAllReservations(in)
		e.writeInstance(in)
	}
	e.touch(in)
}

// setPaused pauses or resumes the queue, for all later controllers too. While it is paused nothing is started or rented
// for. Running jobs continue, and idle instances are destroyed as usual.
func (e *Engine) setPaused(b QueueAsked) {
	e.reply(b.Wish, nil)
	why := b.Reason
	why.Since = e.s.Now
	e.note(Note{Level: Info, Text: why.Text, Reason: &why})
	e.s.Paused, e.pending.Place, e.pending.Plan = &why, true, true
	if b.Resume {
		e.s.Paused = nil
	}
	e.write(Write{Queue: &Queue{Paused: e.s.Paused}})
	if e.s.Paused != nil {
		for _, in := range e.fleet.All() {
			e.unneeded(in)
		}
	}
}

// nothingStarts reports whether nothing may be started or rented for.
func (e *Engine) nothingStarts() bool {
	return e.s.Draining || !e.recordsCurrent() || e.s.Paused != nil
}

// whyNothingStarts explains nothingStarts.
func (e *Engine) whyNothingStarts() Verdict {
	switch {
	case e.s.Draining:
		return Verdict{Cause: drover.ReasonDraining, Text: drainingText, Since: e.s.ShutdownSince}
	case !e.recordsCurrent():
		return e.whyStale()
	}
	return verdict.Of(*e.s.Paused)
}
