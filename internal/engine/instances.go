package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// faultText begins a note of what can only be a fault of the engine's.
const faultText = "this is a bug in Drover"

func (e *Engine) addInstance(in *fleet.Member) {
	e.adapt(in)
	e.fleet.Add(in)
	e.pools.enter(in)
	for _, b := range in.Bound {
		e.group(b.Group).bound += b.Count
	}
	e.changed(in)
	e.touch(in)
}

// changed has all that follows from an instance follow what has changed of it.
func (e *Engine) changed(in *fleet.Member) {
	e.fleet.Changed(in)
	e.ledger.Changed(in.ID)
	if in.Pooled() {
		e.pools.revision++
	}
}

// touch has the instance checked within this decision.
func (e *Engine) touch(in *fleet.Member) {
	if in != nil {
		e.fleet.Changed(in)
		e.fleet.CheckAt(in, max(e.s.Now, 1))
	}
}

// writeInstance writes an instance down. What others make of it mostly follows from what is written.
func (e *Engine) writeInstance(in *fleet.Member) {
	e.changed(in)
	c := in.Clone()
	c.Heard = false // it is of no use to whoever begins anew, and would only be one more difference
	e.write(Write{Instance: &c})
}

// setState moves an instance to a state that its present one allows. Any other would be a fault of the engine's own, of which it tells rather
// than take the fleet down with it.
func (e *Engine) setState(in *fleet.Member, next drover.InstanceState) {
	if !in.State.CanBecome(next) {
		e.note(Note{Level: Warn, Text: fmt.Sprintf("%s: instance %s is %s, but was about to become %s", faultText, in.Name, in.State, next), Instance: in.Name})
		return
	}
	in.State = next
	e.fleet.Moved()
	in.IdleSince = 0
	if next == drover.InstanceIdle {
		in.IdleSince = e.s.Now
		e.needsPreempting = true
	}
	e.writeInstance(in)
}

// created takes the cloud's word that it accepted the instance.
func (e *Engine) created(b Created) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Call) || len(in.Candidates) == 0 {
		return
	}
	in.Call, in.Fails, in.Retry = 0, 0, 0
	if in.ProviderID == "" || in.ProviderID == b.ProviderID { // else a list showed another of that name, which is kept
		in.ProviderID = b.ProviderID
		in.Become(b.Taken)
		e.locate(in, b.Addresses)
	}
	e.accepted(in)
}

// accepted begins an instance's bill, and its boot unless it has been told to go meanwhile.
func (e *Engine) accepted(in *fleet.Member) {
	in.Created, in.Known, in.Candidates = cmp.Or(in.Created, e.s.Now), e.s.Now, nil
	e.fleet.Moved()
	in.Silent, in.Tried = e.s.Now, false
	e.ease(in)
	e.endProbe(in)
	e.hasCapacity(in)
	e.needsPricing = true
	e.needsPlan = e.needsPlan || len(e.limits(in.Cloud).Limits) > 0 // what it has not become is left to others
	e.fire(drover.HookCreated, in, e.verdict(drover.ReasonBooting, "%s", in.Where()))
	if in.State == drover.InstanceCreating {
		in.Reason = in.Remark()
		e.setState(in, drover.InstanceBooting)
	} else {
		e.writeInstance(in)
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s accepted: %s, %v an hour", in.Name, in.Where(), in.Price), Instance: in.Name, Cloud: in.Cloud})
	if in.NoLogin { // a list says when it runs
		e.lookSoon(e.cloud(in.Cloud))
	}
	e.touchCreating(in.Cloud)
	e.touch(in)
}

// stop begins the end of an instance.
func (e *Engine) stop(in *fleet.Member, why Verdict) {
	in.Reason = &why
	e.dropAllReservations(in)
	if !in.Begun && in.ProviderID == "" && e.recordsCurrent() { // records that are in doubt may not know of the call
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
	e.mayEnd(in)
	if b.Err != nil {
		in.Fails++
		in.Retry = max(b.Err.RetryAt, e.s.Now.Add(backoff(in.Fails, time.Second, e.life().ShutdownTimeout)))
		if c := e.cloud(in.Cloud); c != nil && b.Err.Kind == drover.KindRateLimit {
			c.NoDestroy = max(c.NoDestroy, in.Retry)
		}
		e.note(Note{Level: Warn, Text: fmt.Sprintf("destroying instance %s: %s", in.Name, b.Err.Message), Instance: in.Name, Cloud: in.Cloud, Reason: failure(b.Err)})
	} else {
		e.destroyAccepted(in)
		if c := e.cloud(in.Cloud); c != nil {
			c.Hurry = 0
			e.lookSoon(c)
		}
	}
	e.touch(in)
}

// destroyAccepted ends an instance's bill, as far as is known: its cloud has accepted to destroy it.
func (e *Engine) destroyAccepted(in *fleet.Member) {
	if in.ByName { // it may not have been there yet: only lists can tell that it is gone
		in.Known = e.s.Now
		return
	}
	if !in.Accepted {
		in.Accepted, in.Known = true, e.s.Now
	}
	if c := e.cloud(in.Cloud); c != nil {
		e.goesOn(in, c.Good)
	}
	if first := in.Ended == 0; first || in.Ending && in.EndTold == 0 && in.Shown {
		in.Shown = true // as far as the bill goes
		in.Ended = e.paidUntil(in, max(in.Created, cmp.Or(in.EndListed(), e.s.Now)))
		e.writeInstance(in)
		e.unreserve(in)
	}
	if in.EndTold == 0 && in.Ending {
		in.EndTold = e.s.Now
		e.writeInstance(in)
	}
}

// mayEnd notes that an instance may have ended now, since a destroy was answered, or may have been carried out without an answer.
func (e *Engine) mayEnd(in *fleet.Member) {
	if c := e.cloud(in.Cloud); c == nil || in.LastEnd <= c.Began {
		in.PrevEnd, in.NextAsk = in.LastEnd, e.destroyAsked(in)
	}
	in.LastEnd = e.s.Now
}

// destroyAsked is when an instance's destruction was asked for last.
func (e *Engine) destroyAsked(in *fleet.Member) drover.Time {
	return in.Retry.Add(-e.life().ShutdownTimeout)
}

// endBill ends an instance's bill by the first list that shows that it was destroyed: with the last destroy that may have done so before that list
// began, since those before it had no effect as far as anybody can tell; or with that list, if another was under way then.
func (e *Engine) endBill(in *fleet.Member, began drover.Time) {
	told := in.EndTold
	copies := in.Ended != 0 && in.Ended <= told && began < told.Add(e.lag(in)) // lists that have what is destroyed are old copies, for so long
	if told != 0 && (!in.Reshown || copies) {
		return
	}
	in.Reshown = false
	if !in.Accepted || !in.Shown {
		if in.Missing != 0 || !in.Accepted { // it ended by itself, unless it is seen to go on
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

// goesOn takes note of whether an instance goes on by the list that began at a time. One that shows it so counts only if it is too new to be a copy
// from before the list that showed the instance's end.
func (e *Engine) goesOn(in *fleet.Member, began drover.Time) {
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

// clockSkew is how far a cloud's clock and ours may be apart, and what a cloud rounds a time by.
const clockSkew = 5 * time.Second

// endsAt takes a cloud's word on when an instance ended. It counts only if that is neither before its bill began or it was last heard, nor to come.
func (e *Engine) endsAt(in *fleet.Member, at drover.Time) {
	first := max(in.Created, in.LastHeard)
	if at == 0 || in.Created == 0 || at < first.Add(-clockSkew) || at > e.s.Now.Add(clockSkew) {
		return
	}
	if at = min(max(at, first), e.s.Now); at != in.EndKnown {
		in.EndKnown = at
		e.writeInstance(in)
	}
}

// outlives takes back the end of a bill that a controller before wrote down when the destruction was accepted: by the list that began at a time, too
// new to be a copy from before that, the instance goes on.
func (e *Engine) outlives(in *fleet.Member, began drover.Time) {
	if in.Ended != 0 && !in.Accepted && began >= in.Ended.Add(e.lag(in)) {
		in.Ended, e.needsPricing = 0, true
		e.writeInstance(in)
	}
}

// gone settles the bill of an instance that is proved not to be there any more, and starts again elsewhere what ran on it.
func (e *Engine) gone(in *fleet.Member, why Verdict) {
	e.dropAllReservations(in)
	e.tellGone(in, why)
	if in.Created != 0 && (in.Ended == 0 || in.EndKnown != 0) {
		in.Ended = e.paidUntil(in, max(in.Created, cmp.Or(in.EndKnown, in.EndTold, e.s.Now)))
		e.writeInstance(in) // what its attempts cost follows from that
	}
	was := in.State
	in.State, in.Connected = drover.InstanceGone, false
	for _, a := range slices.Clone(in.Load) {
		e.lose(a, "lost with its instance %s: %s", in.Name, why.Text)
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
	if in.Created != 0 { // one that was refused gives no quota back
		e.unblock(e.market.FreeQuota(e.offeringOf(in)))
	}
	if in.Begun { // else it took up none of the create calls
		e.touchCreating(in.Cloud)
	}
	e.needsPlan = true
}
