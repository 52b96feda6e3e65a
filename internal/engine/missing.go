package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// maxDescribing is how many instances a cloud is asked for at once. The rest wait for its lists.
const maxDescribing = 20

// missing deals with the instances that the list begun at a time lacks, and reports whether a list ahead of its time is wanted:
// for a newer look at those, or to see the last of what is being destroyed.
func (e *Engine) missing(c *Cloud, began drover.Time) (again bool) {
	for _, in := range slices.Clone(e.fleet.All()) {
		switch {
		case in.Cloud != c.Name || in.State == drover.InstanceCreating || in.Call != 0 && len(in.Candidates) > 0: // it is yet to be created
		case in.Listed:
			if in.State == drover.InstanceStopped {
				e.reviewStopped(c, in)
			}
			again = again || in.State == drover.InstanceStopping && in.Accepted || in.Unlocated && !in.Connected
		case in.Connected && in.State != drover.InstanceStopping, began < in.Known, in.MayBeNew(began, e.s.Looking, e.lag(in)):
			again = again || in.State == drover.InstanceStopping || began < in.Silent
		default:
			e.miss(c, in, began)
		}
	}
	return again
}

// lag is how far the lists of an instance's cloud may lag behind.
func (e *Engine) lag(in *fleet.Member) time.Duration { return e.limits(in.Cloud).ListLag }

// miss notes that a good list lacks an instance which should be there, and gives it up if that proves it gone.
func (e *Engine) miss(c *Cloud, in *fleet.Member, began drover.Time) {
	if in.Missing == 0 {
		in.Missing = max(began, e.s.Looking)
		e.endBill(in, in.Missing)
	}
	e.describe(in)
	if e.provedGone(in) {
		e.vanish(in)
		return
	}
	if !in.MissedTwice(c.Good, e.lag(in)) { // else the dial that is under way decides
		e.lookAt(c, in.Missing.Add(in.MissingFor(e.lag(in))))
	}
}

// provedGone reports whether lists, and the tries to reach it, prove an instance gone. A cloud that is being asked may yet say when it ended.
func (e *Engine) provedGone(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	return c != nil && in.Describing == 0 && in.MissedTwice(c.Good, e.lag(in)) && (in.Undialled() || in.TriedDial())
}

// vanish gives up an instance that is proved gone.
func (e *Engine) vanish(in *fleet.Member) {
	why := e.verdict(drover.ReasonVanished, "vanished: its cloud no longer lists it")
	e.nodeFailed(in, string(why.Cause), why)
	switch {
	case in.State == drover.InstanceStopping:
		why = *in.Reason
	case in.Ready == 0 && !in.Broken && e.ours(in.Name):
		e.vanishedBooting(in, why)
	}
	e.gone(in, why)
}

// describe asks an instance's cloud, if it can be asked, whether it has the instance that its lists lack. What is younger than the lag may
// not be known there yet.
func (e *Engine) describe(in *fleet.Member) {
	c := e.cloud(in.Cloud)
	if !e.limits(in.Cloud).Describe || in.ProviderID == "" || in.Describing != 0 || c.Describing >= maxDescribing || e.s.Now < e.describable(in) {
		return
	}
	c.Describing++
	in.Describing = e.effect(Effect{Describe: &Describe{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID}})
}

// describable is from when on an instance's cloud knows for sure that it is there, if it is: what lists have had is known.
func (e *Engine) describable(in *fleet.Member) drover.Time {
	if in.Accepted && in.Seen {
		return in.Created
	}
	return in.Created.Add(e.lag(in))
}

// described takes a cloud's word on an instance that its lists lack.
func (e *Engine) described(b Described) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Describing) {
		return
	}
	e.endDescribe(in)
	talks := in.Connected && in.State != drover.InstanceStopping
	if b.Gone {
		e.endsAt(in, b.Ended)
	}
	switch counts := b.Err == nil && b.Began >= in.Known; {
	case in.Missing == 0 || talks:
	case counts && !b.Gone: // its cloud has it after all
		in.Missing = 0
		e.goesOn(in, b.Began)
	case counts || e.provedGone(in):
		e.vanish(in)
	} // else the next list that lacks it has it asked again
	if c := e.cloud(in.Cloud); c != nil && b.Err == nil {
		e.describeNext(c)
	}
}

// describeNext asks a cloud that has just answered for the others which its lists lack.
func (e *Engine) describeNext(c *Cloud) {
	for _, in := range e.fleet.All() {
		if in.Cloud == c.Name && in.Missing != 0 && !(in.Connected && in.State != drover.InstanceStopping) {
			e.describe(in)
		}
	}
}

// endDescribe makes room for another question, if the instance's cloud is being asked for it.
func (e *Engine) endDescribe(in *fleet.Member) {
	if c := e.cloud(in.Cloud); c != nil && in.Describing != 0 {
		c.Describing--
	}
	in.Describing = 0
}

// What a good list no longer has is given up by lists alone: its silence says nothing more, neither of it nor of the controller.
//
// An instance that vanishes while it boots was killed, which says nothing of its offering, so another is rented at once. But if the next of
// that offering vanishes as well, renting on would only burn money, and the offering is left alone as if it did not boot.

// Vanishing is an offering of which an instance vanished while it booted, and of which none was ready since.
type Vanishing struct {
	Zone   string        `json:"zone"`
	Type   string        `json:"type"`
	Market drover.Market `json:"market"`
	At     drover.Time   `json:"at"` // when the first was held to be gone
}

func (v Vanishing) of(in *fleet.Member) bool {
	return v.Zone == in.Zone && v.Type == in.Type.Name && v.Market == in.Market
}

// lacked reports whether the last good list, begun since the instance was known to be there, has it not.
func (e *Engine) lacked(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	return c != nil && !in.Listed && c.Good != 0 && c.Good >= in.Known
}

// unlisted is lacked of an instance that a list has had.
func (e *Engine) unlisted(in *fleet.Member) bool { return in.Seen && e.lacked(in) }

// vanishedBooting notes that an instance vanished before it was ready. Those that were asked for before the first such was known to be gone
// may have met the same misfortune; one that was asked for after it is one too many.
func (e *Engine) vanishedBooting(in *fleet.Member, why Verdict) {
	c := e.cloud(in.Cloud)
	if c == nil {
		return
	}
	at := slices.IndexFunc(c.Vanished, func(v Vanishing) bool { return v.of(in) })
	switch {
	case at < 0:
		c.Vanished = append(c.Vanished, Vanishing{in.Zone, in.Type.Name, in.Market, e.s.Now})
	case in.Asked >= c.Vanished[at].At:
		e.blockUnusable(in, why)
	}
}

// boots forgets what vanished of the instance's offering, since one of it is ready.
func (e *Engine) boots(in *fleet.Member) {
	if c := e.cloud(in.Cloud); c != nil {
		c.Vanished = slices.DeleteFunc(c.Vanished, func(v Vanishing) bool { return v.of(in) })
	}
}

// reviveListed goes on with the departed instances that a list shows which is too new to be a stale copy. Until there is one the others
// are waited for.
func (e *Engine) reviveListed(c *Cloud) {
	lag := e.limits(c.Name).ListLag
	var ready []*Departed // seldom any of the many
	for _, d := range e.fleet.Departed() {
		switch {
		case d.Shown == nil || d.Instance.Cloud != c.Name:
		case c.Good >= d.At.Add(lag):
			ready = append(ready, d)
		default:
			e.lookAt(c, d.At.Add(lag))
		}
	}
	for _, d := range ready {
		e.revive(c, d)
	}
}

// revive goes on with an instance that was held to be gone and is there. If it was told to go it is told again.
func (e *Engine) revive(c *Cloud, d *Departed) {
	in := e.fleet.Return(d)
	e.unsettleInstance(in, d.Cost)
	in.Revived, in.Seen, in.Listed, in.Known, in.Silent = true, true, true, e.s.Now, e.s.Now
	in.EndKnown = 0
	if in.State != drover.InstanceStopping {
		in.State, in.Ended = drover.InstanceUnknown, 0
		if in.Waking = false; in.Halted {
			in.Halted = false
			e.runPaid(in)
		}
		if !in.Broken {
			in.Reason = in.Remark()
		}
	}
	e.addInstance(in)
	e.nodeBack(in)
	e.writeInstance(in)
	e.needsPricing = true
	e.note(Note{Level: Warn, Text: fmt.Sprintf("cloud %s again lists instance %s, which counted as gone: its record and its bill continue", c.Name, in.Name), Instance: in.Name, Cloud: c.Name})
	e.show(c, in, *d.Shown)
}
