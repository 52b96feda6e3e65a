package simtest

import (
	"slices"

	"drover"
	"drover/internal/engine"
)

// unmake makes an accepted instance fail: the cloud lists it as failed until it is destroyed. Only some clouds also
// list it as stopped.
func (v *vm) unmake() {
	if !v.alive {
		return
	}
	v.die()
	v.stopped = v.cloud != v.w.clouds[0]
	v.unmade = &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeType, Market: v.offering.Market, Message: "no room after all"}
}

// unmade is an instance that the current step reports could not be made, with the engine's number for it.
type unmade struct {
	vm       *vm
	instance int64
	broken   bool    // it was broken already
	asked    []int64 // instances of the same offering that the controller did not yet know could be made
}

// failing records the instances, never ready before, that a list reports could not be made. A repeated list is no news.
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

// asked returns the instances of the same offering that the controller does not yet know could be made.
func (c *controller) asked(as engine.Instance) (ids []int64) {
	for _, in := range c.loop.Engine.Instances() {
		if in.Created == 0 && in.Cloud == as.Cloud && in.Zone == as.Zone && in.Type.Name == as.Type.Name && in.Market == as.Market {
			ids = append(ids, in.ID)
		}
	}
	return ids
}

// wasMade reports whether the controller knows by now that an instance could be made. That ends its offering's blocks,
// even one from the same list.
func (c *controller) wasMade(id int64) bool {
	return slices.ContainsFunc(c.loop.Engine.Instances(), func(in engine.Instance) bool { return in.ID == id && in.Created != 0 })
}

// mayFail checks what became of unmade instances. Unless people wished otherwise, each must go because it could not be
// made, and its offering must be blocked. A held one stays, and must have that cause as the reason why it is broken.
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

// leftAlone reports whether a block covers an offering, even a block whose end is only being probed.
func (d *Disk) leftAlone(o drover.Offering) bool {
	for _, b := range d.blocks {
		if b.Covers(o) {
			return true
		}
	}
	return false
}
