package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// What an instance and its runner say of themselves, and what silence says.

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
	e.hear(in)
	e.endQuiet(in)
	e.heard(in)
	if b.Notice != nil {
		e.reclaim(in, noticeText(*b.Notice))
	}
	e.reportHealth(in, b.Ailing)
	if learned && in.State.Ready() { // its pool has login: none since the dial began
		e.writeInstance(in)
	}
	e.ready(in)
	if b.ProbeFailed != "" {
		e.probeFailed(in, b.ProbeFailed)
	}
	e.reconcile(in, b)
	e.needsPlacing = true
	e.touch(in)
}

// probeFailed has an instance drain on which attempts run although its boot probe fails. An operator's word on it stands.
func (e *Engine) probeFailed(in *fleet.Member, how string) {
	why := e.verdict(drover.ReasonBroken, "its boot probe failed, and there are attempts on it: %s", how)
	if in.Idle == drover.IdleRun {
		e.behave(in, drover.IdleDrain, &why)
	}
	does := map[drover.IdleBehavior]string{drover.IdleHold: "is held", drover.IdleDrain: "drains"}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s %s: %s", in.Name, does[in.Idle], why.Text), Instance: in.Name, Reason: new(why.Reason())})
}

// heard drops the reason why an instance could not be reached.
func (e *Engine) heard(in *fleet.Member) {
	said := in.Remark()
	if !in.Broken && in.Reason != nil && (said == nil || *in.Reason != *said) {
		in.Reason = said
		e.writeInstance(in)
	}
}

// ready ends an instance's boot, or its time of being unknown or silent.
func (e *Engine) ready(in *fleet.Member) {
	if in.State.Ready() {
		return
	}
	if in.Waking {
		e.awake(in)
	}
	if in.Ready == 0 {
		in.Ready = e.s.Now
		e.booted(in)
		e.boots(in)
		e.welcome(in)
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

// reconcile compares what a runner has with what is believed of it. The runner is right about what it runs; the engine about what
// should be, of which nothing begins where the boot probe failed.
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
			e.lose(a, "its instance has another attempt under its number")
		case a.State == drover.AttemptStarting && a.Stop != nil:
			e.end(a, drover.AttemptCancelled, *a.Stop)
		case a.State == drover.AttemptStarting && in.Reclaimed != nil:
			e.lose(a, "not started: %s", in.Reclaimed.Text)
		case a.State == drover.AttemptStarting && b.ProbeFailed != "":
			e.lose(a, "not started, since the boot probe of its instance failed: %s", b.ProbeFailed)
		case a.State == drover.AttemptStarting && e.recordsCurrent(): // else it may have been started, and forgotten
			e.start(in, a)
		default:
			e.lose(a, "its runner no longer has it")
		}
	}
}

// reported takes in what a runner says of one attempt, and reports whether that is believed: it was given to the instance, and it lives or is
// taken over.
func (e *Engine) reported(in *fleet.Member, r Report) bool {
	a := e.live(r.ID)
	if a == nil && r.Proof == ProofValid {
		e.doubtAttempt(in, r.ID)
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

// believed reports whether what an instance says of an attempt counts: the attempt lives there, and was given to it.
func believed(a *Attempt, instance int64, proof Proof) bool {
	return a != nil && a.Instance == instance && (proof == ProofValid || a.Unproven)
}

// disown has an attempt ended and forgotten that the engine does not know, or not on this instance (BEHAVIOUR D14).
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
	e.note(Note{Level: Warn, Text: fmt.Sprintf("stopping attempt %v on %s, which is not in the records", r.ID, in.Name), Instance: in.Name, Attempt: &r.ID})
	in.Orphans = append(in.Orphans, r.ID)
	if r.Proof == ProofForeign || r.Proof == ProofMissing && !in.Unproven {
		in.Forged = append(in.Forged, r.ID)
	}
	e.effect(Effect{Stop: &Stop{Attempt: r.ID, Instance: in.ID, Grace: e.life().TermTimeout}})
}

// distrust has an instance drain that shows an attempt which it was never given: something there speaks as its runner.
func (e *Engine) distrust(in *fleet.Member, id drover.AttemptID) {
	if !in.Unproven {
		e.markUnhealthy(in, e.verdict(drover.ReasonForged, "it reports attempt %v without proof that it was placed there: a job may be impersonating the runner", id))
	}
}

func (e *Engine) connectFailed(b ConnectFailed) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Dial) {
		return
	}
	in.Dial = 0
	in.Unlocated = b.Err.Kind == drover.KindNotFound
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
	in.Retry = e.s.Now.Add(backoff(in.Fails, first, most))
	switch {
	case in.Unlocated:
		if c := e.cloud(in.Cloud); c != nil {
			e.uncalled(in, c)
			e.lookSoon(c)
		}
	case b.Err.Kind == drover.KindHostKey && in.Waking && e.s.Now < in.Switched.Add(e.lag(in)): // what was dialled may be its address from before
	case b.Err.Kind == drover.KindHostKey:
		e.breakInstance(in, e.verdict(drover.ReasonHostKey, "%s", b.Err.Message))
	case b.Err.Kind == drover.KindUnsupported && in.Ready == 0:
		e.breakInstance(in, e.verdict(drover.ReasonBroken, "%s", b.Err.Message))
	case b.Err.Kind == drover.KindAuthentication && in.Fails == 1:
		e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s: %s", in.Name, b.Err.Message), Instance: in.Name, Reason: failure(b.Err)})
	}
	if !in.Broken {
		why := e.verdict(drover.ReasonUnreachable, "%s", b.Err.Message)
		in.Reason = &why
	}
	e.touch(in)
}

// uncalled has an instance's silence begin now if its cloud has not said since Drover began to look where its instances are: nobody can be
// heard whom nobody could call.
func (e *Engine) uncalled(in *fleet.Member, c *Cloud) {
	if c.Listed < e.s.Looking {
		e.beginSilence(in)
	}
}

// beginSilence has an instance's silence begin now, whatever was written down of it.
func (e *Engine) beginSilence(in *fleet.Member) {
	in.Silent = e.s.Now
	if in.Quiet != 0 {
		in.Quiet = 0
		e.writeInstance(in)
	}
}

// noteQuiet writes down now and then for how long an instance was silent, for the next controller to go on from.
func (e *Engine) noteQuiet(in *fleet.Member) {
	quiet := e.s.Now.Sub(in.Silent)
	if in.ShouldBeHeard() && (quiet < in.Quiet || quiet >= in.Quiet+e.life().ProbeInterval) {
		in.Quiet = quiet
		e.writeInstance(in)
	}
}

// endQuiet forgets it, and what lists lacked, since the instance was heard.
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
	e.lookSoon(e.cloud(in.Cloud))
	e.touch(in)
}
