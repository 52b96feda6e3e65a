package engine

import (
	"fmt"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// Two kinds of faults. An unhealthy instance still works for its running attempts: it gets no more, and is destroyed
// when they have ended. A broken instance is given up: it is destroyed, and its jobs are restarted elsewhere once it is
// gone.
//
// Either may be kept for inspection for KeepBroken after the fault was found. But no job waits for that: a broken
// instance with attempts is destroyed immediately, since only its end proves that they have ended, and they are not
// restarted before. So is any broken instance while the records may be stale.

// healthReported handles an instance's own report of a fault, or of its end.
func (e *Engine) healthReported(b HealthReported) {
	if in := e.fleet.Member(b.Instance); in != nil {
		e.reportHealth(in, b.Text)
	}
}

// reportHealth records what an instance reports about itself; empty text means healthy. It does not clear faults that
// the controller found.
func (e *Engine) reportHealth(in *fleet.Member, text string) {
	switch {
	case text == "" && in.Unhealthy != nil && in.Unhealthy.Cause == verdict.Unhealthy:
		e.recover(in)
	case text != "" && in.Unhealthy == nil:
		e.markUnhealthy(in, e.verdict(drover.ReasonUnhealthy, "it reports: %.1000s", text))
	}
}

// markUnhealthy lets an instance take no more work and go when it has none, unless it is held.
func (e *Engine) markUnhealthy(in *fleet.Member, why Verdict) {
	if in.Unhealthy != nil && in.Unhealthy.Cause == why.Cause || in.Broken || in.State == drover.InstanceStopping {
		return
	}
	in.Unhealthy = &why
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s is unhealthy: %s", in.Name, why.Text), Instance: in.Name, Cloud: in.Cloud, Reason: new(why.Reason())})
	e.fireBroken(in, why)
	e.retire(in)
}

// recover lets a healthy instance take work again, unless something else prevents it.
func (e *Engine) recover(in *fleet.Member) {
	in.Unhealthy = nil
	if !in.Broken && in.State != drover.InstanceStopping {
		in.Reason = in.Remark()
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s is healthy again", in.Name), Instance: in.Name, Cloud: in.Cloud})
	if in.BrokenHookFired && in.State.Ready() && !e.leaving(in) { // whoever heeded it must hear that it is over
		in.BrokenHookFired = false
		if !in.ReadyHookPending {
			e.fireReady(in)
		}
	}
	e.pending.Place, e.pending.Plan = true, true
	e.writeRevised(in)
	e.touch(in)
}

// breakInstance gives up an instance: no more work, and it is destroyed, immediately unless it may be kept for
// inspection. A hold keeps it.
func (e *Engine) breakInstance(in *fleet.Member, why Verdict) {
	if in.Broken || in.State == drover.InstanceStopping {
		return
	}
	e.nodeFailed(in, string(why.Cause), why)
	in.Broken, in.Reason = true, &why
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s is broken: %s", in.Name, why.Text), Instance: in.Name, Reason: new(why.Reason())})
	e.fireBroken(in, why)
	if in.Ready == 0 {
		e.countTemplate(in, false)
	}
	switch {
	case in.Ready != 0 || !e.ours(in.Name): // an instance of another store may have been ready once
	case why.Cause == verdict.CreateFailed: // its offering is blocked already
	case why.Cause == verdict.BootTimeout && in.Created != 0 && e.lacked(in):
		e.vanishedBooting(in, why)
	default:
		e.blockUnusable(in, why)
	}
	if !in.Held() && !e.keepsBroken(in, why) {
		e.stop(in, why)
		return
	}
	e.dropAllReservations(in)
	e.writeRevised(in)
	e.touch(in)
}

// keepsBroken keeps a broken instance for inspection, if that is configured, it exists, and no job waits for its end.
func (e *Engine) keepsBroken(in *fleet.Member, why Verdict) bool {
	keep := e.life().KeepBroken
	if keep == 0 || in.Created == 0 || len(in.Load) > 0 || !e.recordsCurrent() || e.s.Draining || e.ledger.Overspent() {
		return false
	}
	in.KeepUntil = max(in.KeepUntil, e.s.Now.Add(keep))
	why.Until = in.KeepUntil
	in.Reason = &why
	return true
}

// brokenUntil returns when a broken instance is destroyed; 0 if the operator decides.
func (e *Engine) brokenUntil(in *fleet.Member) drover.Time {
	switch {
	case in.Held():
		return 0
	case len(in.Load) > 0 || !e.recordsCurrent() || e.s.Draining || e.ledger.Overspent():
		return 1
	}
	return max(in.KeepUntil, 1)
}

// checkBroken destroys a broken instance when its time has come.
func (e *Engine) checkBroken(in *fleet.Member) {
	if e.due(e.brokenUntil(in)) {
		e.stop(in, *in.Reason)
	}
}

// fireBroken fires the hook for a broken or unhealthy instance, once until it recovers.
func (e *Engine) fireBroken(in *fleet.Member, why Verdict) {
	if in.BrokenHookFired || in.Created == 0 {
		return
	}
	in.BrokenHookFired = true
	if e.s.Settings.BrokenHook {
		in.BrokenHookUntil = e.s.Now.Add(HookTime)
	}
	e.fire(drover.HookBroken, in, why)
}

// fired allows the destruction of an instance whose hook has ended.
func (e *Engine) fired(b Fired) {
	if in := e.fleet.Member(b.Instance); in != nil {
		in.BrokenHookUntil = 0
		e.touch(in)
	}
}

// fire runs a hook for an instance.
func (e *Engine) fire(hook drover.Hook, in *fleet.Member, why Verdict) {
	e.effect(Effect{Fire: &Fire{Hook: hook, Instance: in.ID, Name: in.Name, Prefix: in.Prefix, Cloud: in.Cloud, Zone: in.Zone, ProviderID: in.ProviderID, Pool: in.Pool, Reason: why.Reason()}})
}

// fireGone fires the hook of an instance that is gone: destroyed or vanished. A list may lack it before the destroy call
// is answered. Nothing is fired for one that never existed, or whose cloud was seen to have stopped it.
func (e *Engine) fireGone(in *fleet.Member, why Verdict) {
	switch {
	case in.Created == 0 || in.EndHookFired:
	case in.State == drover.InstanceStopping && (in.Ended != 0 || in.Call != 0) && why.Cause != verdict.Interrupted && why.Cause != verdict.Vanished:
		e.fire(drover.HookDestroyed, in, why)
	default:
		e.fire(drover.HookVanished, in, why)
	}
}

// creationFailed gives up an instance that its cloud accepted but could not create, or start again. Its offering is
// blocked as if the call had been refused. If it has been ready since then, it was created.
func (e *Engine) creationFailed(in *fleet.Member, err *drover.Error) {
	if in.State == drover.InstanceStopping || in.Ready != 0 && !in.Waking {
		e.stopped(in)
		return
	}
	what := "created"
	if in.Waking {
		what = "started"
	}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s could not be %s: %s", in.Name, what, err.Explained()), Instance: in.Name, Cloud: in.Cloud, Reason: failure(err)})
	e.blockRefused(in, e.offeringOf(in), err)
	e.endUncreated(in, err)
	e.dropBlocked(in.Cloud)
}

// endUncreated ends such an instance with its cloud's explanation. A held one is kept for inspection.
func (e *Engine) endUncreated(in *fleet.Member, err *drover.Error) {
	why := e.verdict(drover.ReasonCreateFailed, "%s", err.Explained())
	e.nodeFailed(in, string(err.Kind), why)
	if in.Held() {
		e.breakInstance(in, why)
	} else {
		e.stop(in, why)
	}
}

// stopped ends an instance that its cloud, not Drover, stopped. It counts as vanished immediately: it serves nobody any
// more, and destroying it may take long.
func (e *Engine) stopped(in *fleet.Member) {
	why := e.verdict(drover.ReasonVanished, "its cloud stopped it")
	if in.Reclaimed != nil && !in.Held() {
		why = e.verdict(drover.ReasonInterrupted, "its cloud reclaimed it and left it stopped")
	}
	if in.State != drover.InstanceStopping && !in.EndHookFired {
		in.EndHookFired = true
		e.fire(drover.HookVanished, in, why)
		e.writeInstance(in)
	}
	e.endedInCloud(in, why)
}

// endedInCloud ends an instance that is of no more use, and may still be there, because its cloud ended it. A held one
// is kept.
func (e *Engine) endedInCloud(in *fleet.Member, why Verdict) {
	e.nodeFailed(in, drover.ReasonVanished, why)
	switch {
	case in.State == drover.InstanceStopping:
	case in.Held():
		e.breakInstance(in, why)
	default:
		if in.Reclaimed == nil { // otherwise it has been counted as an interruption
			e.endedBooting(in, why)
		}
		e.stop(in, why)
	}
}
