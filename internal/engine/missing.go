package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// maxDescribing is how many describe calls a cloud gets at a time. Other instances wait for its lists.
const maxDescribing = 20

// missing handles the instances missing from a list that began at a given time, and reports whether an early list is
// wanted: for another look at them, or to see the last of one being destroyed.
func (e *Engine) missing(c *Cloud, began drover.Time) (again bool) {
	var lacking, stopped []*fleet.Member
	for _, in := range e.fleet.Index().Unsettled {
		switch {
		case in.Cloud != c.Name || in.State == drover.InstanceCreating || in.Call != 0 && len(in.Candidates) > 0: // not created yet
		case in.Listed:
			if in.State == drover.InstanceStopped {
				stopped = append(stopped, in)
			}
			if at := e.delistedAt(in); at > e.s.Now {
				e.listBy(c, at)
				continue
			}
			again = again || in.State == drover.InstanceStopping && in.Accepted || in.Unlocated && !in.Connected
		case in.Connected && in.State != drover.InstanceStopping, began < in.Known, in.MayBeNew(began, e.s.Looking, e.lag(in)):
			again = again || in.State == drover.InstanceStopping || began < in.Silent
		default:
			lacking = append(lacking, in)
		}
	}
	for _, in := range stopped {
		e.reviewStopped(c, in)
	}
	for _, in := range lacking {
		e.noteMissing(c, in, began)
	}
	return again
}

// lag returns how far the lists of an instance's cloud may lag behind.
func (e *Engine) lag(in *fleet.Member) time.Duration { return e.limits(in.Cloud).ListLag }

// noteMissing records that a good list lacks an instance that should exist, and gives it up if that proves it gone.
func (e *Engine) noteMissing(c *Cloud, in *fleet.Member, began drover.Time) {
	if in.Missing == 0 {
		in.Missing = max(began, e.s.Looking)
		e.endBill(in, in.Missing)
		if in.State == drover.InstanceStopping && in.Accepted {
			e.forecast.Delisted(c.Name, in.Known, c.GoodBefore, began, e.s.Now)
		}
	}
	e.describe(in)
	if e.provedGone(in) {
		e.vanish(in)
		return
	}
	if !in.MissedTwice(c.Good, e.lag(in)) { // otherwise the dial in progress decides
		e.listBy(c, in.Missing.Add(in.MissingFor(e.lag(in))))
	}
}

// provedGone reports whether lists, and dials, prove an instance gone. A describe call in flight may still tell when it
// ended.
func (e *Engine) provedGone(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	return c != nil && in.Describing == 0 && in.MissedTwice(c.Good, e.lag(in)) && (in.Undialled() || in.TriedDial())
}

// vanish gives up an instance that is proven gone.
func (e *Engine) vanish(in *fleet.Member) {
	why := e.verdict(drover.ReasonVanished, "its cloud no longer lists it")
	e.nodeFailed(in, string(why.Cause), why)
	if in.State == drover.InstanceStopping {
		why = *in.Reason
	} else {
		e.endedBooting(in, why)
	}
	e.gone(in, why)
}

// describe asks a cloud, if it supports that, about an instance missing from its lists. The cloud may not know about an
// instance younger than the lag.
func (e *Engine) describe(in *fleet.Member) {
	c := e.cloud(in.Cloud)
	if !e.limits(in.Cloud).Describe || in.ProviderID == "" || in.Describing != 0 || c.Describing >= maxDescribing || e.s.Now < e.describable(in) {
		return
	}
	c.Describing++
	in.Describing = e.effect(Effect{Describe: &Describe{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID}})
}

// describable returns from when on an instance's cloud certainly knows about it: immediately, if a list had it.
func (e *Engine) describable(in *fleet.Member) drover.Time {
	if in.Accepted && in.Seen {
		return in.Created
	}
	return in.Created.Add(e.lag(in))
}

// described handles a cloud's answer about a missing instance.
func (e *Engine) described(b Described) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Describing) {
		return
	}
	e.endDescribe(in)
	if b.Gone {
		e.recordEnd(in, b.Ended)
	}
	switch counts := b.Err == nil && b.Began >= in.Known; {
	case in.Missing == 0:
	case counts && !b.Gone: // its cloud has it after all
		in.Missing = 0
		e.clearEnd(in, b.Began)
	case counts || e.provedGone(in):
		e.vanish(in)
	} // otherwise the next list without it asks again
	if c := e.cloud(in.Cloud); c != nil && b.Err == nil {
		e.describeNext(c)
	}
}

// describeNext asks a cloud that has just answered about its other missing instances.
func (e *Engine) describeNext(c *Cloud) {
	for _, in := range e.fleet.All() {
		if in.Cloud == c.Name && in.Missing != 0 {
			e.describe(in)
		}
	}
}

// endDescribe ends an instance's describe call, and allows another.
func (e *Engine) endDescribe(in *fleet.Member) {
	if c := e.cloud(in.Cloud); c != nil && in.Describing != 0 {
		c.Describing--
	}
	in.Describing = 0
}

// An instance missing from a good list is given up by lists alone: its silence no longer says anything about it or the
// controller.
//
// An instance that vanishes or is stopped by its cloud while booting says nothing about its offering, so another is
// rented immediately. But if the next of that offering ends as well, renting more would waste money, and the offering
// is blocked as if it did not boot.

// Vanishing is an offering of which an instance vanished, or was stopped by its cloud, while booting, and of which none
// has become ready since.
type Vanishing struct {
	OfferingKey
	At drover.Time `json:"at"` // when the first counted as gone
}

// lacked reports whether the last good list, if it began after the instance was last known to exist, does not have it.
func (e *Engine) lacked(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	return c != nil && !in.Listed && c.Good != 0 && c.Good >= in.Known
}

// unlisted reports lacked for an instance that a list has had.
func (e *Engine) unlisted(in *fleet.Member) bool { return in.Seen && e.lacked(in) }

// endedBooting is vanishedBooting for an instance that has just ended, if it ended while booting.
func (e *Engine) endedBooting(in *fleet.Member, why Verdict) {
	if in.Ready == 0 && !in.Broken && e.ours(in.Name) {
		e.vanishedBooting(in, why)
	}
}

// vanishedBooting records that an instance vanished before it was ready. Instances requested before the first was known
// to be gone may have had the same fate; one requested later blocks the offering.
func (e *Engine) vanishedBooting(in *fleet.Member, why Verdict) {
	c := e.cloud(in.Cloud)
	if c == nil {
		return
	}
	at := slices.IndexFunc(c.Vanished, func(v Vanishing) bool { return v.OfferingKey == keyOf(in) })
	switch {
	case at < 0:
		c.Vanished = append(c.Vanished, Vanishing{keyOf(in), e.s.Now})
	case in.Asked >= c.Vanished[at].At:
		e.blockUnusable(in, why)
	}
}

// boots forgets vanished instances of the offering when one becomes ready.
func (e *Engine) boots(in *fleet.Member) {
	if c := e.cloud(in.Cloud); c != nil {
		c.Vanished = slices.DeleteFunc(c.Vanished, func(v Vanishing) bool { return v.OfferingKey == keyOf(in) })
	}
}

// reviveListed revives departed instances that a list shows which is too new to be a stale copy. Others wait for such a
// list.
func (e *Engine) reviveListed(c *Cloud) {
	lag := e.limits(c.Name).ListLag
	for _, d := range e.fleet.Shown() {
		switch {
		case d.Instance.Cloud != c.Name:
		case c.Good >= d.At.Add(lag):
			e.revive(c, d)
		default:
			e.listBy(c, d.At.Add(lag))
		}
	}
}

// revive continues the record of an instance that counted as gone and still exists. It is destroyed if it was being
// destroyed, or if another instance has taken its name.
func (e *Engine) revive(c *Cloud, d *Departed) {
	in := e.fleet.Return(d)
	name, renamed := in.Name, ""
	if e.fleet.Named(name) != nil {
		in.Name = fleet.TwinName(name, in.ProviderID)
		renamed = "; it is called " + in.Name + " now, since another instance has its name"
	}
	e.unsettleInstance(in, d.Cost)
	in.EndHookFired, in.Seen, in.Listed, in.Known, in.Silent = true, true, true, e.s.Now, e.s.Now
	in.EndKnown = 0
	if in.State != drover.InstanceStopping {
		in.State, in.Ended = drover.InstanceUnknown, 0
		if in.Waking = false; in.StopAccepted {
			in.StopAccepted = false
			e.restorePrice(in)
		}
		if !in.Broken {
			in.Reason = in.Remark()
		}
	}
	e.addInstance(in)
	e.nodeBack(in)
	e.writeInstance(in)
	e.priceAnew(in)
	e.note(Note{Level: Warn, Text: fmt.Sprintf("cloud %s lists instance %s again, although it was considered gone: its record and billing continue%s", c.Name, name, renamed), Instance: in.Name, Cloud: c.Name})
	e.applySighting(c, in, *d.Shown)
	if renamed != "" && !in.Held() && in.State != drover.InstanceStopping {
		e.stopTwin(in, name)
	}
}
