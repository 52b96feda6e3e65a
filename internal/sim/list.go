package sim

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// The most that a cloud's copy of its list may be behind, and the most that a slow list may take.
const (
	stalest = 20 * time.Second
	slowest = 3 * time.Minute
)

// list answers with what is new and what is missing against the last good list of this controller, each as it was when the call began, or
// somewhat before.
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
			at = at.Add(-w.within(stalest))
		}
		c.compare(&ev, cl, at)
	}
	c.reply(takes, ev)
}

// compare fills in how the list of a moment differs from the last one.
func (c *controller) compare(ev *engine.Listed, cl *cloud, at drover.Time) {
	for _, v := range cl.vms {
		was, is := v.seen, v.look(c)
		switch {
		case v.shows(at):
			v.sighted, v.shown = at, true
			if v.seen = is; was != is {
				v.shownTag = v.tag
				ev.Added = append(ev.Added, v.sighting())
			}
		case was.by == c:
			v.seen = look{}
			ev.Removed = append(ev.Removed, v.provider)
		}
	}
	slices.Sort(ev.Removed)
	cl.prune()
}

// leftOut notes what a list that is answered now has no more, and what it has again.
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

// look is how a controller saw an instance last.
type look struct {
	by        *controller
	stopped   bool
	reclaimed bool
	unmade    bool
}

func (v *vm) look(c *controller) look { return look{c, v.stopped, v.reclaimed, v.unmade != nil} }

// listed reports whether the cloud's list of a moment has the instance.
func (v *vm) listed(at drover.Time) bool { return v.appears <= at && (v.gone == 0 || at < v.gone) }

// shows reports whether a list of a moment has the instance. One that has appeared, or was logged in to, is not left out twice in a row
// before it is gone, however old the copy.
func (v *vm) shows(at drover.Time) bool {
	shown := v.listed(at) && !v.w.happens(ListMisses)
	if !shown && v.hidden && v.there() {
		shown = true
	}
	v.hidden = !shown && (v.shown || v.w.now >= v.appears)
	return shown
}

func (v *vm) sighting() engine.Sighting {
	return engine.Sighting{
		ProviderID: v.provider, Name: v.name, ProviderType: v.offering.Type.ProviderType, Type: v.offering.Type.Name,
		Zone: v.offering.Zone, Market: v.offering.Market, Price: v.offering.Price, Created: v.created, Idle: v.tag,
		Stopped: v.stopped, Reclaimed: v.reclaimed, Failed: v.unmade,
	}
}

// prune lets the cloud forget what is gone, was seen to be, and is nobody's any more.
func (cl *cloud) prune() {
	cl.vms = slices.DeleteFunc(cl.vms, func(v *vm) bool {
		return v.gone != 0 && v.gone.Add(stalest) < cl.w.now && v.seen.by != cl.w.controller && cl.w.record(v) == nil
	})
}
