package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/timers"
)

// What an instance and its runner report, and what silence means.

func (e *Engine) connected(b Connected) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Dial) {
		return
	}
	in.Dial, in.Fails, in.Retry = 0, 0, 0
	if in.State == drover.InstanceStopping {
		return
	}
	in.Connected, in.Silent, in.Tried, in.Unlocated, in.Missing, in.Known = true, 0, false, false, 0, e.s.Now
	learned := in.HostKey != b.HostKey
	in.HostKey, in.Heard = b.HostKey, true
	e.endPartition(in)
	e.endQuiet(in)
	e.clearUnreachable(in)
	if b.Notice != nil {
		e.reclaim(in, noticeText(*b.Notice))
	}
	e.reportHealth(in, b.Unhealthy)
	if learned && in.State.Ready() { // its pool was set to login: none after the dial began
		e.writeInstance(in)
	}
	e.ready(in)
	if b.ProbeFailed != "" {
		e.probeFailed(in, b.ProbeFailed)
	}
	e.reconcile(in, b)
	e.pending.Place = true
	e.touch(in)
}

// probeFailed drains an instance with running attempts whose boot probe fails. An operator's hold or drain takes
// precedence.
func (e *Engine) probeFailed(in *fleet.Member, how string) {
	why := e.verdict(drover.ReasonBroken, "its boot probe failed while attempts were running on it: %s", how)
	if in.Idle == drover.IdleRun {
		e.setIdleBehavior(in, drover.IdleDrain, &why)
	}
	does := map[drover.IdleBehavior]string{drover.IdleHold: "is held", drover.IdleDrain: "is draining"}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s %s: %s", in.Name, does[in.Idle], why.Text), Instance: in.Name, Reason: new(why.Reason())})
}

// clearUnreachable clears the reason why an instance could not be reached.
func (e *Engine) clearUnreachable(in *fleet.Member) {
	said := in.Remark()
	if !in.Broken && in.Reason != nil && (said == nil || *in.Reason != *said) {
		in.Reason = said
		e.writeInstance(in)
	}
}

// ready ends an instance's boot, or its time as unknown.
func (e *Engine) ready(in *fleet.Member) {
	if in.State.Ready() {
		return
	}
	if in.Waking {
		e.noteRestarted(in)
	}
	if in.Ready == 0 {
		in.Ready = e.s.Now
		if in.Begun && in.Created != 0 {
			e.forecast.Booted(in.Cloud, in.Type.Name, e.s.Now.Sub(in.Created), e.s.Now)
		}
		e.boots(in)
		e.announceReady(in)
		e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s ready after %v", in.Name, in.Ready.Sub(in.Asked).Round(time.Millisecond)), Instance: in.Name, Cloud: in.Cloud})
	}
	e.dropAllReservations(in)
	next := drover.InstanceIdle
	if len(in.Load) > 0 {
		next = drover.InstanceRunning
	}
	idle := in.IdleSince
	e.setState(in, next)
	if next == drover.InstanceIdle && idle != 0 {
		in.IdleSince = idle
		e.writeInstance(in)
	}
}

// reconcile compares a runner's attempts with the engine's. The runner is right about what it runs, the engine about
// what should run. Nothing starts where the boot probe failed.
func (e *Engine) reconcile(in *fleet.Member, b Connected) {
	in.Orphans, in.Forged = nil, nil
	has, forged := map[drover.AttemptID]bool{}, map[drover.AttemptID]bool{}
	for _, r := range b.Attempts {
		believed := e.reported(in, r)
		has[r.ID], forged[r.ID] = has[r.ID] || believed, !believed
	}
	for _, a := range slices.Clone(in.Load) {
		switch {
		case has[a.ID]:
		case forged[a.ID]:
			e.lose(a, "its instance has a different attempt with the same number")
		case a.State == drover.AttemptStarting && a.Stop != nil:
			e.end(a, drover.AttemptCancelled, *a.Stop)
		case a.State == drover.AttemptStarting && in.Reclaimed != nil:
			e.lose(a, "not started: %s", in.Reclaimed.Text)
		case a.State == drover.AttemptStarting && b.ProbeFailed != "":
			e.lose(a, "not started because its instance's boot probe failed: %s", b.ProbeFailed)
		case a.State == drover.AttemptStarting && e.recordsCurrent(): // otherwise it may have been started and forgotten
			e.start(in, a)
		default:
			e.lose(a, "its runner has no record of it")
		}
	}
}

// reported handles one attempt of a runner's report, and reports whether it is believed: it was placed on the instance,
// and is live or is adopted.
func (e *Engine) reported(in *fleet.Member, r Report) bool {
	a := e.live(r.ID)
	if a == nil && r.Proof == ProofValid {
		e.checkAttemptNumber(in, r.ID)
		a = e.adoptAttempt(in, r)
	}
	switch {
	case !believed(a, in.ID, r.Proof):
		e.disown(in, r)
		return false
	case a.State == drover.AttemptCollecting:
		if a.Effect == 0 {
			e.collect(a)
		}
	case r.Exit != nil:
		e.exited(Exited{in.ID, r.ID, *r.Exit, r.Proof})
	default:
		a.Effect, a.Fails, a.Retry = 0, 0, 0
		e.running(a)
		if a.Stop != nil {
			e.askStop(a)
		}
	}
	return true
}

// believed reports whether an instance's report about an attempt counts: the attempt is live there, and was placed
// there.
func believed(a *Attempt, instance int64, proof Proof) bool {
	return a != nil && a.Instance == instance && (proof == ProofValid || a.Unproven)
}

// disown stops and forgets an attempt that the engine does not know, or not on this instance (behaviour D14).
func (e *Engine) disown(in *fleet.Member, r Report) {
	if r.Proof == ProofMissing {
		e.distrust(in, r.ID)
	}
	if r.Exit != nil {
		if e.s.Now >= in.KeepUntil {
			e.forget(in, r.ID, r.Proof)
		}
		return
	}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("stopping attempt %v on %s: it is not in the records", r.ID, in.Name), Instance: in.Name, Attempt: &r.ID})
	in.Orphans = append(in.Orphans, r.ID)
	if r.Proof == ProofForeign || r.Proof == ProofMissing && !in.Unproven {
		in.Forged = append(in.Forged, r.ID)
	}
	e.effect(Effect{Stop: &Stop{Attempt: r.ID, Instance: in.ID, Grace: e.life().TermTimeout}})
}

// distrust marks an instance unhealthy that reports an attempt never placed there: something there impersonates its
// runner.
func (e *Engine) distrust(in *fleet.Member, id drover.AttemptID) {
	if !in.Unproven {
		e.markUnhealthy(in, e.verdict(drover.ReasonForged, "it reports attempt %v without proof that Drover started it there: a job may be impersonating the runner", id))
	}
}

func (e *Engine) connectFailed(b ConnectFailed) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Dial) {
		return
	}
	in.Dial = 0
	in.Unlocated = b.Err.Kind == drover.KindNotFound
	e.fleet.Relist(in)
	in.Tried = in.Tried || !in.Unlocated
	if in.State == drover.InstanceStopping {
		return
	}
	if e.provedGone(in) {
		e.vanish(in)
		return
	}
	e.noteQuiet(in)
	in.Fails++
	first, most := 20*time.Millisecond, 2*time.Second
	if in.Ready != 0 {
		first, most = 250*time.Millisecond, 10*time.Second
	}
	in.Retry = e.s.Now.Add(timers.Backoff(in.Fails, first, most))
	switch {
	case in.Unlocated:
		if c := e.cloud(in.Cloud); c != nil {
			if c.Listed < e.s.Looking { // without an address it cannot be reached
				e.beginSilence(in)
			}
			e.listSoon(c)
		}
	case b.Err.Kind == drover.KindHostKey && in.Waking && e.s.Now < in.Switched.Add(e.lag(in)): // the dialled address may be from before the stop
	case b.Err.Kind == drover.KindHostKey:
		e.breakInstance(in, e.verdict(drover.ReasonHostKey, "%s", b.Err.Explained()))
	case b.Err.Kind == drover.KindUnsupported && in.Ready == 0:
		e.breakInstance(in, e.verdict(drover.ReasonBroken, "%s", b.Err.Explained()))
	case b.Err.Kind == drover.KindAuthentication && in.Fails == 1:
		e.note(Note{Level: Warn, Text: fmt.Sprintf("connecting to instance %s failed: %s", in.Name, b.Err.Explained()), Instance: in.Name, Reason: failure(b.Err)})
	}
	if !in.Broken {
		why := e.verdict(drover.ReasonUnreachable, "%s", b.Err.Explained())
		in.Reason = &why
		if !in.Unlocated && in.Fails&(in.Fails-1) == 0 { // the 1st, 2nd, 4th and so on, so that the records tell why without a write for each failure
			e.writeInstance(in)
		}
	}
	e.touch(in)
}

// beginSilence starts an instance's silence now, whatever was recorded.
func (e *Engine) beginSilence(in *fleet.Member) {
	in.Silent = e.s.Now
	if in.Quiet != 0 {
		in.Quiet = 0
		e.writeInstance(in)
	}
}

// noteQuiet records from time to time how long an instance has been silent, for the next controller to continue from.
func (e *Engine) noteQuiet(in *fleet.Member) {
	quiet := e.s.Now.Sub(in.Silent)
	if in.ShouldBeConnected() && (quiet < in.Quiet || quiet >= in.Quiet+e.life().ProbeInterval) {
		in.Quiet = quiet
		e.writeInstance(in)
	}
}

// endQuiet clears that, and recorded ends, when the instance is connected.
func (e *Engine) endQuiet(in *fleet.Member) {
	if in.Quiet != 0 || in.EndTold != 0 || in.EndKnown != 0 {
		in.Quiet, in.EndTold, in.EndKnown = 0, 0, 0
		e.writeInstance(in)
	}
}

func (e *Engine) disconnected(b Disconnected) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !in.Connected {
		return
	}
	in.Connected, in.LastHeard = false, b.Heard
	if in.EndKnown < b.Heard.Add(-clockSkew) {
		in.EndKnown = 0
	}
	if in.State == drover.InstanceStopping {
		return
	}
	in.Tried, in.Fails, in.Retry = false, 0, e.s.Now
	in.Silent, in.Known = max(b.Heard, e.s.Looking), max(b.Heard, in.Known)
	e.note(Note{Level: Warn, Text: fmt.Sprintf("lost the connection to instance %s: %s", in.Name, b.Text), Instance: in.Name})
	e.listSoon(e.cloud(in.Cloud))
	e.touch(in)
}
