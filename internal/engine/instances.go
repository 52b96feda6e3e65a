package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// faultText is the prefix of notes about what can only be a bug in the engine.
const faultText = "this is a bug in Drover"

func (e *Engine) addInstance(in *fleet.Member) {
	e.adapt(in)
	e.fleet.Add(in)
	e.pools.enter(in)
	for _, b := range in.Reservations {
		e.group(b.Group).reserved += b.Count
	}
	e.changed(in)
	e.touch(in)
}

// changed updates what is derived from an instance.
func (e *Engine) changed(in *fleet.Member) {
	e.fleet.Changed(in)
	e.ledger.Changed(in.ID)
	if in.Pooled() {
		e.pools.revision++
	}
}

// touch checks the instance within this decision.
func (e *Engine) touch(in *fleet.Member) {
	if in != nil {
		e.fleet.Changed(in)
		e.fleet.CheckAt(in, max(e.s.Now, 1))
	}
}

// writeInstance records an instance and updates what is derived from it.
func (e *Engine) writeInstance(in *fleet.Member) {
	e.changed(in)
	c := in.Clone()
	c.Heard = false // useless to the next controller, and would only be one more difference
	e.write(Write{Instance: &c})
}

// writeRevised is writeInstance after a change of what an instance is, or of the work that it may take.
func (e *Engine) writeRevised(in *fleet.Member) {
	e.fleet.Revise(in)
	e.writeInstance(in)
}

// setState moves an instance to a state that its current one allows. Anything else is a bug, which is reported instead
// of crashing the fleet.
func (e *Engine) setState(in *fleet.Member, next drover.InstanceState) {
	if !in.State.CanBecome(next) {
		e.note(Note{Level: Warn, Text: fmt.Sprintf("%s: instance %s is %s, but was about to become %s", faultText, in.Name, in.State, next), Instance: in.Name})
		return
	}
	in.State, in.IdleSince = next, 0
	if next == drover.InstanceIdle {
		in.IdleSince = e.s.Now
		e.pending.Preempt = true
	}
	e.writeRevised(in)
}

// created handles a cloud's acceptance of an instance.
func (e *Engine) created(b Created) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Call) || len(in.Candidates) == 0 {
		return
	}
	if in.Fails == 0 && in.Asked >= e.s.Looking { // otherwise the time includes pauses, of the tries or of the controller
		e.forecast.Accepted(in.Cloud, e.s.Now.Sub(in.Asked), e.s.Now)
	}
	in.Call, in.Fails, in.Retry = 0, 0, 0
	if in.ProviderID == "" || in.ProviderID == b.ProviderID { // otherwise a list showed another instance of that name, which is kept
		e.fleet.SetProviderID(in, b.ProviderID)
		in.Become(b.Taken)
		e.setAddresses(in, b.Addresses)
	}
	e.accepted(in)
}

// accepted starts an instance's bill, and its boot unless it is already being destroyed.
func (e *Engine) accepted(in *fleet.Member) {
	e.chosen(in, nil)
	in.Created, in.Known = cmp.Or(in.Created, e.s.Now), e.s.Now
	in.Silent, in.Tried = e.s.Now, false
	e.ease(in)
	e.endProbe(in)
	e.hasCapacity(in)
	e.priceAnew(in)
	e.fire(drover.HookCreated, in, e.verdict(drover.ReasonBooting, "%s", in.Where()))
	if in.State == drover.InstanceCreating {
		in.Reason = in.Remark()
		e.setState(in, drover.InstanceBooting)
	} else {
		e.writeInstance(in)
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("the cloud accepted instance %s: %s, %v an hour", in.Name, in.Where(), in.Price), Instance: in.Name, Cloud: in.Cloud})
	if in.NoLogin { // lists show when it runs
		e.listSoon(e.cloud(in.Cloud))
	}
	e.touchCreating(in.Cloud)
	e.touch(in)
}

// chosen sets the candidates that are left of an instance's. The others no longer count against limits and budgets. Once
// the bill of an instance has begun, budgets also commit up to one billing period less.
func (e *Engine) chosen(in *fleet.Member, left []drover.Offering) {
	limits := e.limits(in.Cloud)
	if len(in.Candidates) > 1 && (len(limits.Limits) > 0 || e.limitsUsers() || e.limited()) || e.limited() && limits.Billing.Period > 0 {
		e.pending.Plan = true
	}
	in.Candidates = left
	e.fleet.Revise(in)
}

// stop starts an instance's destruction.
func (e *Engine) stop(in *fleet.Member, why Verdict) {
	in.Reason = &why
	e.dropAllReservations(in)
	if !in.Begun && in.ProviderID == "" && e.recordsCurrent() { // stale records may not know about the call
		e.gone(in, why)
		return
	}
	e.setState(in, drover.InstanceStopping)
	in.Retry, in.Fails = e.s.Now, 0
	if in.Connected {
		in.Known = e.s.Now
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("destroying instance %s: %s", in.Name, why.Text), Instance: in.Name, Reason: new(why.Reason())})
	e.touch(in)
}

func (e *Engine) destroyed(b Destroyed) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Call) {
		return
	}
	in.Call = 0
	e.noteDestroyAnswer(in)
	if b.Err != nil {
		e.retryEnding(in, b.Err)
		e.note(Note{Level: Warn, Text: fmt.Sprintf("destroying instance %s failed: %s", in.Name, b.Err.Explained()), Instance: in.Name, Cloud: in.Cloud, Reason: failure(b.Err)})
	} else {
		in.Refused = nil
		e.destroyAccepted(in)
		e.listDestroyed(in)
	}
	e.touch(in)
}

// destroyAccepted ends an instance's bill, pending better evidence: its cloud has accepted the destroy call.
func (e *Engine) destroyAccepted(in *fleet.Member) {
	if in.ByName { // it may not have existed yet: only lists can prove it gone
		in.Known = e.s.Now
		return
	}
	if !in.Accepted {
		in.Accepted, in.Known = true, e.s.Now
	}
	if c := e.cloud(in.Cloud); c != nil {
		e.clearEnd(in, c.Good)
	}
	if in.Ended == 0 || in.Ending && in.EndTold == 0 && in.Shown {
		in.Shown = true // for the bill
		in.Ended = e.paidUntil(in, max(in.Created, cmp.Or(in.EndListed(), e.s.Now)))
		e.writeInstance(in)
		e.unreserve(in)
	}
	if in.EndTold == 0 && in.Ending {
		in.EndTold = e.s.Now
		e.writeInstance(in)
	}
}

// noteDestroyAnswer records that an instance may have ended now: a destroy call was answered, or may have been carried
// out without an answer.
func (e *Engine) noteDestroyAnswer(in *fleet.Member) {
	if c := e.cloud(in.Cloud); c == nil || in.LastEnd <= c.Began {
		in.PrevEnd, in.NextAsk = in.LastEnd, e.destroyAsked(in)
	}
	in.LastEnd = e.s.Now
}

// destroyAsked returns when the last destroy call was made.
func (e *Engine) destroyAsked(in *fleet.Member) drover.Time {
	return in.Retry.Add(-e.life().ShutdownTimeout)
}

// endBill ends an instance's bill when a list first shows that it was destroyed: at the last destroy call that may have
// done so before the list began, since earlier ones evidently had no effect; or at the list, if a call was in flight
// then.
func (e *Engine) endBill(in *fleet.Member, began drover.Time) {
	told := in.EndTold
	copies := in.Ended != 0 && in.Ended <= told && began < told.Add(e.lag(in)) // until then, lists that still have it are old copies
	if told != 0 && (!in.Reshown || copies) {
		return
	}
	in.Reshown = false
	if !in.Accepted || !in.Shown {
		if in.Missing != 0 || !in.Accepted { // it ended by itself, unless a later list shows it running
			in.EndTold = began
			e.writeInstance(in)
		}
		return
	}
	in.EndTold = began
	at := in.LastEnd
	switch underWay := in.Call != 0 && e.destroyAsked(in) < began; {
	case underWay, at > began && in.NextAsk < began:
		at = began
	case at > began:
		at = in.PrevEnd
	}
	if end := e.paidUntil(in, at); at != 0 {
		in.Ended = end
	}
	e.writeInstance(in)
}

// clearEnd clears a recorded end if the list that began at a given time shows the instance running and is too new to be
// a copy from before the list that showed the end.
func (e *Engine) clearEnd(in *fleet.Member, began drover.Time) {
	shown := in.Listed && !in.Ending
	if in.EndTold != 0 && shown && began >= in.EndTold.Add(e.lag(in)) {
		in.EndTold = 0
		e.writeInstance(in)
	}
	if in.EndKnown != 0 && shown && !in.Over && began >= in.EndKnown.Add(e.lag(in)) {
		in.EndKnown = 0
		e.writeInstance(in)
	}
}

// clockSkew covers the difference between a cloud's clock and ours, and the rounding of a cloud's times.
const clockSkew = 5 * time.Second

// recordEnd records when an instance ended according to its cloud. It counts only if that is not before the bill began
// or the last contact, nor in the future.
func (e *Engine) recordEnd(in *fleet.Member, at drover.Time) {
	first := max(in.Created, in.LastHeard)
	if at == 0 || in.Created == 0 || at < first.Add(-clockSkew) || at > e.s.Now.Add(clockSkew) {
		return
	}
	if at = min(max(at, first), e.s.Now); at != in.EndKnown {
		in.EndKnown = at
		e.writeInstance(in)
	}
}

// reopenBill reopens a bill that an earlier controller ended when the destruction was accepted, if a list too new to be
// a copy from before shows the instance running.
func (e *Engine) reopenBill(in *fleet.Member, began drover.Time) {
	if in.Ended != 0 && !in.Accepted && began >= in.Ended.Add(e.lag(in)) {
		in.Ended = 0
		e.priceAnew(in)
		e.writeInstance(in)
	}
}

// gone settles the bill of an instance proven gone, and requeues what ran on it.
func (e *Engine) gone(in *fleet.Member, why Verdict) {
	e.dropAllReservations(in)
	e.fireGone(in, why)
	if in.Created != 0 && (in.Ended == 0 || in.EndKnown != 0) {
		in.Ended = e.paidUntil(in, max(in.Created, cmp.Or(in.EndKnown, in.EndTold, e.s.Now)))
		e.writeInstance(in) // its attempts' costs depend on it
	}
	was := in.State
	in.State, in.Connected = drover.InstanceGone, false
	for _, a := range slices.Clone(in.Load) {
		e.lose(a, "its instance %s is gone: %s", in.Name, why.Text)
	}
	e.endProbe(in)
	cost := e.settleInstance(in)
	e.endDescribe(in)
	e.changed(in)
	e.write(Write{Gone: &InstanceEnd{ID: in.ID, At: e.billEnd(in), Cost: cost, Reason: why.Reason(), Departed: e.fleet.Depart(in, was, e.s.Now, cost)}})
	if in.Begun || in.ProviderID != "" {
		e.effect(Effect{Disconnect: &Disconnect{Instance: in.ID}})
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s is gone: %s", in.Name, why.Text), Instance: in.Name, Reason: new(why.Reason())})
	e.fleet.Remove(in)
	e.pools.leave(in)
	e.unreserve(in)
	if in.Created != 0 { // a refused instance frees no quota
		e.blocksChanged(e.market.Free(verdict.Quota, e.offeringOf(in)))
	}
	if in.Begun { // otherwise it used no create call
		e.touchCreating(in.Cloud)
	}
	e.pending.Plan = true
}
