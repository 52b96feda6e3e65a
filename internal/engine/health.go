package engine

import (
	"fmt"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// What is wrong with an instance is of two kinds. One that ails still works for what runs on it: it gets no more, and goes when that has
// ended. One that is broken is given up: it is destroyed, and its jobs begin again elsewhere once it is gone.
//
// Either may be left for a look for KeepBroken, from when that was found. But a job never waits for that: a broken instance with attempts
// on it is destroyed at once, since only its end proves that they have ended, and no other attempt of theirs may begin before. So is any while the records are not proved.

// ailing takes an instance's word that something is wrong with it, or is no longer.
func (e *Engine) ailing(b Ailing) {
	if in := e.fleet.Member(b.Instance); in != nil {
		e.reportHealth(in, b.Text)
	}
}

// unwell notes what an instance says is wrong with it; nothing, if it says so. What the controller itself found out is not taken back.
func (e *Engine) reportHealth(in *fleet.Member, text string) {
	switch {
	case text == "" && in.Ailing != nil && in.Ailing.Cause == verdict.Unhealthy:
		e.recover(in)
	case text != "" && in.Ailing == nil:
		e.markUnhealthy(in, e.verdict(drover.ReasonUnhealthy, "it reports: %.1000s", text))
	}
}

// ail has an instance take no more work and go when it has none, an operator's hold apart.
func (e *Engine) markUnhealthy(in *fleet.Member, why Verdict) {
	if in.Ailing != nil && in.Ailing.Cause == why.Cause || in.Broken || in.State == drover.InstanceStopping {
		return
	}
	in.Ailing = &why
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s is unhealthy: %s", in.Name, why.Text), Instance: in.Name, Cloud: in.Cloud, Reason: new(why.Reason())})
	e.cry(in, why)
	e.retire(in)
}

// recover gives work again to an instance that is well again, unless something else keeps it from that.
func (e *Engine) recover(in *fleet.Member) {
	in.Ailing = nil
	if !in.Broken && in.State != drover.InstanceStopping {
		in.Reason = in.Remark()
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s is healthy again", in.Name), Instance: in.Name, Cloud: in.Cloud})
	e.needsPlacing, e.needsPlan = true, true
	e.fleet.Moved()
	e.writeInstance(in)
	e.touch(in)
}

// breakInstance gives up on an instance for a reason: no more work, and it goes, at once unless it may be left for a look. A hold keeps it.
func (e *Engine) breakInstance(in *fleet.Member, why Verdict) {
	if in.Broken || in.State == drover.InstanceStopping {
		return
	}
	e.nodeFailed(in, string(why.Cause), why)
	in.Broken, in.Reason = true, &why
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s is broken: %s", in.Name, why.Text), Instance: in.Name, Reason: new(why.Reason())})
	e.cry(in, why)
	if in.Ready == 0 {
		e.proves(in, false)
	}
	switch {
	case in.Ready != 0 || !e.ours(in.Name): // of the latter, it may well have been ready once
	case why.Cause == verdict.CreateFailed: // what its cloud lacks is left alone already
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
	e.writeInstance(in)
	e.fleet.Moved()
	e.touch(in)
}

// keepsBroken has a broken instance left for a look, if that is wanted, there is something to look at, and no job waits for its end.
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

// brokenUntil is when a broken instance goes; 0 if that is an operator's to say.
func (e *Engine) brokenUntil(in *fleet.Member) drover.Time {
	switch {
	case in.Held():
		return 0
	case len(in.Load) > 0 || !e.recordsCurrent() || e.s.Draining || e.ledger.Overspent():
		return 1
	}
	return max(in.KeepUntil, 1)
}

// checkBroken destroys what is broken once it need not be kept.
func (e *Engine) checkBroken(in *fleet.Member) {
	if at := e.brokenUntil(in); at != 0 && at <= e.s.Now {
		e.stop(in, *in.Reason)
	}
}

// cry runs the hook of what is broken or ails, once in the life of an instance.
func (e *Engine) cry(in *fleet.Member, why Verdict) {
	if in.Cried || in.Created == 0 {
		return
	}
	in.Cried = true
	if e.s.Settings.BrokenHook {
		in.Crying = e.s.Now.Add(HookTime)
	}
	e.fire(drover.HookBroken, in, why)
}

// fired lets an instance be destroyed whose hook has ended.
func (e *Engine) fired(b Fired) {
	if in := e.fleet.Member(b.Instance); in != nil {
		in.Crying = 0
		e.touch(in)
	}
}

// fire has a hook run for an instance.
func (e *Engine) fire(hook drover.Hook, in *fleet.Member, why Verdict) {
	e.effect(Effect{Fire: &Fire{Hook: hook, Instance: in.ID, Name: in.Name, Prefix: in.Prefix, Cloud: in.Cloud, Zone: in.Zone, ProviderID: in.ProviderID, Pool: in.Pool, Reason: why.Reason()}})
}

// tellGone runs the hook of an instance that is gone: it was destroyed, or it vanished, as one did that its cloud only stopped. Of one that
// never was there is nothing to tell.
func (e *Engine) tellGone(in *fleet.Member, why Verdict) {
	switch {
	case in.Created == 0 || in.Revived:
	case in.State == drover.InstanceStopping && in.Ended != 0 && why.Cause != verdict.Interrupted && why.Cause != verdict.Vanished:
		e.fire(drover.HookDestroyed, in, why)
	default:
		e.fire(drover.HookVanished, in, why)
	}
}

// failed ends an instance that its cloud accepted and then could not make. What was lacking is left alone, as if the create had been refused;
// one that was ready has been made.
func (e *Engine) failed(in *fleet.Member, err *drover.Error) {
	if in.State == drover.InstanceStopping || in.Ready != 0 {
		e.stopped(in)
		return
	}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s could not be created: %s", in.Name, err.Message), Instance: in.Name, Cloud: in.Cloud, Reason: failure(err)})
	o := e.offeringOf(in)
	e.blockRefused(in, o, err)
	e.unmade(in, err)
	e.dropBlocked(in.Cloud)
}

// unmade ends an instance in its cloud's words for why it is none. An operator's hold keeps it, to be looked at.
func (e *Engine) unmade(in *fleet.Member, err *drover.Error) {
	why := e.verdict(drover.ReasonCreateFailed, "%s", err.Message)
	e.nodeFailed(in, string(err.Kind), why)
	if in.Held() {
		e.breakInstance(in, why)
	} else {
		e.stop(in, why)
	}
}

// stopped ends an instance that its cloud stopped, and not Drover. An operator's hold keeps it.
func (e *Engine) stopped(in *fleet.Member) {
	e.nodeFailed(in, drover.ReasonVanished, e.verdict(drover.ReasonVanished, "its cloud stopped it"))
	switch {
	case in.State == drover.InstanceStopping:
	case in.Held():
		e.breakInstance(in, e.verdict(drover.ReasonVanished, "its cloud stopped it"))
	case in.Reclaimed != nil:
		e.stop(in, e.verdict(drover.ReasonInterrupted, "its cloud took it back, and left it stopped"))
	default:
		e.stop(in, e.verdict(drover.ReasonVanished, "its cloud stopped it"))
	}
}
