package simtest

import (
	"slices"

	"drover"
	"drover/internal/engine"
)

// unmake has the cloud find that it cannot make what it accepted, and say so in its lists until that is destroyed. Not
// every cloud lists it as stopped, too.
func (v *vm) unmake() {
	if !v.alive {
		return
	}
	v.die()
	v.stopped = v.cloud != v.w.clouds[0]
	v.unmade = &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: v.offering.Market, Message: "no room after all"}
}

// unmade is an instance of which a controller hears in a step that it could not be made, and the engine's number for
// it.
type unmade struct {
	vm       *vm
	instance int64
	broken   bool    // it was already
	asked    []int64 // those of the same offering of which nobody knew yet whether they could be made
}

// failing notes of which instances, that were never ready, a list says that they could not be made. A list that comes
// once more is no news.
func (c *controller) failing(b engine.Listed) {
	if b.Effect <= c.lists[b.Cloud] {
		return
	}
	for _, s := range b.Added {
		v := c.w.cloud(b.Cloud).provided(s.ProviderID)
		if v == nil || s.Failed == nil {
			continue
		}
		if in := c.w.record(v); in != nil && in.Ready == 0 && in.State != drover.InstanceStopping {
			c.unmade = append(c.unmade, unmade{v, in.ID, in.Broken, c.asked(*in)})
		}
	}
}

// asked are the instances of the same offering of which the controller does not know yet whether they could be made.
func (c *controller) asked(as engine.Instance) (ids []int64) {
	for _, in := range c.loop.Engine.Instances() {
		if in.Created == 0 && in.Cloud == as.Cloud && in.Zone == as.Zone && in.Type.Name == as.Type.Name && in.Market == as.Market {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// wasMade reports whether the controller knows by now that an instance could be made. That ends the blocks of its
// offering, also one that began in the same list.
func (c *controller) wasMade(id int64) bool {
	return slices.ContainsFunc(c.loop.Engine.Instances(), func(in engine.Instance) bool { return in.ID == id && in.Created != 0 })
}

// mayFail checks what became of them: each of which nobody has wished anything is to go because it could not be made,
// and what it would have been is left alone. One that is held stays, and of that no other cause is named.
func (c *controller) mayFail() {
	for _, u := range c.unmade {
		switch in := c.w.record(u.vm); {
		case in == nil, in.ID != u.instance, in.Ready != 0:
		case in.Idle == drover.IdleHold && in.State != drover.InstanceStopping && !u.broken && (!in.Broken || in.Reason.Cause != drover.ReasonCreateFailed):
			c.w.fail("instance %s is held and could not be made, and that is not why it is broken: %v", in.Name, in.Reason)
		case in.Idle != drover.IdleRun: // people wished otherwise, it may be just before
		case in.State != drover.InstanceStopping:
			c.w.fail("instance %s could not be made, and is not to go", in.Name)
		case in.Reason.Cause != drover.ReasonCreateFailed:
			c.w.fail("instance %s could not be made, and is to go for another reason: %s", in.Name, in.Reason.Text)
		case !c.w.Disk.leftAlone(u.vm.offering) && !slices.ContainsFunc(u.asked, c.wasMade):
			c.w.fail("instance %s could not be made, and no block covers what it would have been", in.Name)
		}
	}
}

// leftAlone reports whether there is a block that covers an offering, also one of which the end is only being tried.
func (d *Disk) leftAlone(o drover.Offering) bool {
	for _, b := range d.blocks {
		if b.Covers(o) {
			return true
		}
	}
	return false
}
