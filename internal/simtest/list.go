package simtest

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// slowest is the most time that a slow list may take.
const slowest = 3 * time.Minute

// A cloud's lists lag: during half of the lag their data may be old, and during half of it they may lack an existing
// instance. So one that lists lack for longer than the lag, from the start of one list to that of another, is gone.
func (cl *cloud) half() time.Duration { return cl.lag / 2 }

// list answers with what is new and what is missing compared with this controller's last good list, as of the start of
// the call or somewhat earlier.
func (c *controller) list(effect int64, cl *cloud) {
	w := c.w
	ev, takes := engine.Listed{Effect: effect, Cloud: cl.name, Began: c.now()}, time.Second
	if w.happens(ListSlow) {
		takes = slowest
	}
	switch {
	case cl.rages(RateStorm) && w.roll(2) == 0:
		ev.Err = c.slower()
	case cl.rages(Outage) || w.happens(ListFails):
		ev.Err = drover.Errorf(drover.KindTransient, "list failed")
	default:
		at := w.now
		if w.happens(ListStale) {
			at = at.Add(-w.within(cl.half()))
		}
		c.compare(&ev, cl, at)
	}
	c.reply(takes, ev)
}

// compare fills in how the list as of a time differs from the last one.
func (c *controller) compare(ev *engine.Listed, cl *cloud, at drover.Time) {
	w := c.w
	for _, v := range cl.vms {
		was, is := v.seen, v.look(c, at)
		shown := v.shows(at)
		v.book.show(c, shown && !v.ending(), ev.Began)
		if !shown {
			c.lack[ev.Effect] = append(c.lack[ev.Effect], v)
		}
		switch {
		case shown:
			v.book.again = v.book.again || v.lacking != 0
			if v.lacking = 0; was != is {
				v.seen, v.shownTag = is, v.as(at).tag
				ev.Added = append(ev.Added, v.sighting(at))
			}
		default:
			v.lacked = w.now
			if v.lacking == 0 {
				v.lacking = ev.Began
			}
			if was.by == c {
				v.seen = look{}
				ev.Removed = append(ev.Removed, v.provider)
			}
		}
	}
	slices.Sort(ev.Removed)
	cl.prune()
}

// leftOut records what a list that is answered now no longer shows, and what it shows again.
func (c *controller) leftOut(b engine.Listed) {
	if b.Effect <= c.lists[b.Cloud] {
		return
	}
	for _, s := range b.Added {
		if v := c.w.cloud(b.Cloud).provided(s.ProviderID); v != nil {
			v.missing = 0
		}
	}
	for _, id := range b.Removed {
		if v := c.w.cloud(b.Cloud).provided(id); v != nil {
			v.missing = b.Began
		}
	}
}

// look is how a controller last saw an instance.
type look struct {
	by        *controller
	stopped   bool
	reclaimed bool
	unmade    bool
	ending    bool
	address   string
}

func (v *vm) look(c *controller, at drover.Time) look {
	return look{c, v.stopped || v.as(at).off, v.reclaimed, v.unmade != nil, v.ending(), v.tells(at)}
}

// listed reports whether the cloud's list as of a time has the instance.
func (v *vm) listed(at drover.Time) bool {
	return v.appears <= at && (v.gone == 0 || at < v.gone) && (at < v.hides || at >= v.back)
}

// shows reports whether a list as of a time has the instance. Only once in an instance's life may lists lack it
// although it exists, for at most half of their lag. Twice could add up to more than the lag and be mistaken for the
// instance's end.
func (v *vm) shows(at drover.Time) bool {
	lag := v.cloud.half()
	if settled := v.w.now > v.appears.Add(4*lag); settled && lag > 0 && v.back == 0 && v.w.happens(ListMisses) {
		v.hides, v.back = v.w.now, v.w.now.Add(v.w.within(lag))
	}
	return v.listed(at)
}

// ending reports whether the cloud lists the instance as being destroyed. Not every cloud does.
func (v *vm) ending() bool { return v.gone != 0 && v.candid }

// says returns when the instance ended by its cloud's report; 0 if it is running or the cloud has not recorded that.
func (v *vm) says() drover.Time {
	if !v.dated || !v.ending() && !v.stopped && v.gone == 0 {
		return 0
	}
	return v.billed
}

// version is the state of an instance from a time on, of which a list may show an old one.
type version struct {
	since   drover.Time
	address string
	tag     drover.IdleBehavior
	off     bool
	kept    drover.Time
}

// change records a new version of an instance from now on.
func (v *vm) change() {
	v.versions = append(v.versions, version{v.w.now, v.address, v.tag, v.off, v.kept})
}

// as returns the version of an instance at a time.
func (v *vm) as(at drover.Time) version {
	for _, was := range slices.Backward(v.versions) {
		if was.since <= at {
			return was
		}
	}
	return v.versions[0]
}

// tells returns the address that the cloud reported for the instance at a time; empty before it reported one.
func (v *vm) tells(at drover.Time) string {
	if at < v.located || v.as(at).off {
		return ""
	}
	return v.as(at).address
}

func (v *vm) sighting(at drover.Time) engine.Sighting {
	ended := v.says()
	if v.as(at).off && !v.off {
		ended = 0 // the list is from when the instance was kept stopped, before it was started and ended
	}
	return engine.Sighting{
		ProviderID: v.provider, Name: v.name, ProviderType: v.offering.Type.ProviderType, Type: v.offering.Type.Name,
		Zone: v.offering.Zone, Market: v.offering.Market, Price: v.offering.Price, Created: v.created, Idle: v.as(at).tag, Owner: v.owner, Pool: v.pool, Template: v.template,
		Addresses: drover.Addresses{Private: v.tells(at)}, Ending: v.ending(), Stopped: v.stopped || v.as(at).off, Kept: v.as(at).kept, Reclaimed: v.reclaimed, Failed: v.unmade, Ended: ended,
	}
}

// prune lets the cloud forget an instance that is gone, was seen to be gone, and is in no records.
func (cl *cloud) prune() {
	cl.vms = slices.DeleteFunc(cl.vms, func(v *vm) bool {
		return v.gone != 0 && v.gone.Add(max(cl.lag, latest)) < cl.w.now && v.seen.by != cl.w.controller && cl.w.record(v) == nil
	})
}
