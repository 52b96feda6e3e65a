package engine

import (
	"slices"
	"time"

	"drover"
)

// Lists of a cloud lag behind what it does: for a while they may lack what is there, and show what is gone. So an instance that good
// lists lack is held to be gone only
//
//   - once its cloud, asked for that instance, says that there is none, and the instance is older than the lag;
//   - or when it was missing for longer than the lag, and a dial to its address has failed since it was last heard;
//   - or, if no address of it is known, when it was missing for twice the lag.
//
// One that talks to us is not gone, whatever lists say. One whose destruction was accepted need not be dialled.

// The least time between two lists that together say that an instance is gone, where its cloud's lists do not lag. One whose create call
// was not answered is given as much longer, since it may only now come to be, and be new to the lists then; and as long may pass before a cloud lists
// what it has made.
const (
	missingLeast = time.Second
	lostGap      = 30 * time.Second
)

// maxDescribing is how many instances a cloud is asked for at once. The rest wait for its lists.
const maxDescribing = 20

// missing deals with the instances that the list begun at a time lacks, and reports whether a list ahead of its time is wanted:
// for a newer look at those, or to see the last of what is being destroyed.
func (e *Engine) missing(c *Cloud, began drover.Time) (again bool) {
	for _, in := range slices.Clone(e.instances) {
		switch {
		case in.Cloud != c.Name || in.State == drover.InstanceCreating || in.Call != 0 && len(in.Candidates) > 0: // it is yet to be created
		case in.Listed:
			again = again || in.State == drover.InstanceStopping && in.Accepted || in.Unlocated && !in.Connected
		case in.Connected && in.State != drover.InstanceStopping, began < in.Known, e.mayBeNew(in, began):
			again = again || in.State == drover.InstanceStopping || began < in.Silent
		default:
			e.miss(c, in, began)
		}
	}
	return again
}

// mayBeNew reports whether a list that began then may lack an instance only because its cloud has just made it. While neither a list has had it
// nor it was ready, that is measured from when Drover began to look, since the clock may have leapt ahead.
func (e *Engine) mayBeNew(in *instance, began drover.Time) bool {
	lag := e.lag(in)
	switch {
	case in.Created == 0:
		return false
	case in.Seen || in.Ready != 0: // a list may still be older than one that had it; of what is destroyed it counts
		return !in.Accepted && began < in.Created.Add(lag)
	case lag > 0:
		lag = max(lag, lostGap)
	}
	return began < max(in.Created, e.s.Looking).Add(lag)
}

// lag is how far the lists of an instance's cloud may lag behind.
func (e *Engine) lag(in *instance) time.Duration { return e.limits(in.Cloud).ListLag }

// miss notes that a good list lacks an instance which should be there, and gives it up if that proves it gone.
func (e *Engine) miss(c *Cloud, in *instance, began drover.Time) {
	if in.Missing == 0 {
		in.Missing = max(began, e.s.Looking)
		e.endBill(in, in.Missing)
	}
	e.describe(in)
	if e.provedGone(in) {
		e.vanish(in)
		return
	}
	if !e.missingLong(c, in) { // else the dial that is under way decides
		e.lookAt(c, in.Missing.Add(e.missingFor(in)))
	}
}

// provedGone reports whether lists, and the tries to reach it, prove an instance gone. A cloud that is being asked may yet say when it ended.
func (e *Engine) provedGone(in *instance) bool {
	c := e.cloud(in.Cloud)
	if c == nil || in.Missing == 0 || in.Describing != 0 || !e.missingLong(c, in) {
		return false
	}
	nobodyDials := in.State == drover.InstanceStopping || in.Broken || in.noLogin || in.ProviderID == ""
	return nobodyDials || in.tried()
}

// missingLong reports whether two good lists of a cloud have lacked an instance, the last of them long enough after the first.
func (e *Engine) missingLong(c *Cloud, in *instance) bool {
	return c.Good > in.Missing && c.Good >= in.Missing.Add(e.missingFor(in))
}

// missingFor is for how long lists have to lack an instance until they prove it gone.
func (e *Engine) missingFor(in *instance) time.Duration {
	switch lag := e.lag(in); {
	case in.Accepted:
		return lag
	case in.ProviderID == "":
		return max(lostGap+lag, 2*lag)
	case in.Unlocated:
		return max(missingLeast, 2*lag)
	default:
		return max(missingLeast, lag)
	}
}

// vanish gives up an instance that is proved gone.
func (e *Engine) vanish(in *instance) {
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
func (e *Engine) describe(in *instance) {
	c := e.cloud(in.Cloud)
	if !e.limits(in.Cloud).Describe || in.ProviderID == "" || in.Describing != 0 || c.Describing >= maxDescribing || e.s.Now < e.describable(in) {
		return
	}
	c.Describing++
	in.Describing = e.effect(Effect{Describe: &Describe{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID}})
}

// describable is from when on an instance's cloud knows for sure that it is there, if it is: what lists have had is known.
func (e *Engine) describable(in *instance) drover.Time {
	if in.Accepted && in.Seen {
		return in.Created
	}
	return in.Created.Add(e.lag(in))
}

// described takes a cloud's word on an instance that its lists lack.
func (e *Engine) described(b Described) {
	in := e.instance(b.Instance)
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
	for _, in := range e.instances {
		if in.Cloud == c.Name && in.Missing != 0 && !(in.Connected && in.State != drover.InstanceStopping) {
			e.describe(in)
		}
	}
}

// endDescribe makes room for another question, if the instance's cloud is being asked for it.
func (e *Engine) endDescribe(in *instance) {
	if c := e.cloud(in.Cloud); c != nil && in.Describing != 0 {
		c.Describing--
	}
	in.Describing = 0
}
