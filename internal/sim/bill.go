package sim

import (
	"drover"
	"drover/internal/engine"
)

// book is what a controller was told of an instance's bill, by its own clock.
type book struct {
	known   drover.Time // when it first heard that the instance is there
	ended   drover.Time // when it first heard that its destruction is accepted
	settled drover.Time // up to when it has paid; 0: it has not
}

// told notes what a controller that lives on was told of bills.
func (c *controller) told(ev engine.Event) {
	switch b := ev.Body.(type) {
	case engine.Created:
		if c.w.Disk.instances[b.Instance].ProviderID == b.ProviderID { // else it is a twin, which a list will show
			c.w.known(b.ProviderID, ev.At)
		}
	case engine.Listed:
		if b.Effect <= c.lists[b.Cloud] {
			return // once more
		}
		c.lists[b.Cloud] = b.Effect
		for _, s := range b.Added {
			c.w.known(s.ProviderID, ev.At)
		}
	case engine.Destroyed:
		if v := c.accepted[b.Effect]; v != nil && v.book.ended == 0 {
			v.book.ended = ev.At
		}
		delete(c.accepted, b.Effect)
	}
}

func (w *World) known(provider string, at drover.Time) {
	for _, cl := range w.clouds {
		if v := cl.provided(provider); v != nil && v.book.known == 0 {
			v.book.known = at
		}
	}
}

// settle compares the bill of an instance that is gone with its cloud's. The cloud bills from its accepting the create to its accepting the
// destroy; the controller knows of either only what it is told, so its bill begins between the first and its being told, and likewise ends.
// Where it was told, its bill begins and ends no later than that.
func (w *World) settle(in engine.Instance, end engine.InstanceEnd) {
	v := w.vmOf(in)
	switch {
	case in.Created == 0:
		if end.Cost != 0 {
			w.fail("instance %s, which never was, cost %v", in.Name, end.Cost)
		}
		return
	case v == nil:
		w.fail("instance %s, which never was, was paid from %v on", in.Name, in.Created)
		return
	}
	b := &v.book
	switch now := w.controller.now(); {
	case in.Price != v.offering.Price || end.Cost != in.Price.For(end.At.Sub(in.Created)):
		w.fail("instance %s cost %v for %v at %v an hour, not at %v", in.Name, end.Cost, end.At.Sub(in.Created), v.offering.Price, in.Price)
	case in.Created < v.created && b.settled == 0 || b.known != 0 && in.Created > b.known:
		w.fail("the bill of %s begins at %v, but it was created at %v, which was known at %v", in.Name, in.Created, v.created, b.known)
	case v.billed == 0:
		w.fail("the bill of %s ends, and %s goes on", in.Name, v.provider)
	case end.At < v.billed || end.At > now:
		w.fail("the bill of %s ends at %v, but it was destroyed at %v", in.Name, end.At, v.billed)
	case b.ended != 0 && end.At > b.ended:
		w.fail("the bill of %s ends at %v, but its destruction was known to be accepted at %v", in.Name, end.At, b.ended)
	case in.Created < b.settled && w.Disk.named(in.Name): // what another store named, this one cannot know to have paid
		w.fail("instance %s is paid from %v on, and was paid until %v before", in.Name, in.Created, b.settled)
	}
	*b = book{settled: end.At}
}
