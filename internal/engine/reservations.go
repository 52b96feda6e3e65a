package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// Work that waits and finds no room has some reserved on instances that are on their way: so many elements of a group on each. A group's count, the room
// that is left on the instance, and its place in the index change together, in reserve alone. Reservations end when the instance is ready, or will never
// be, or when fewer wait, or when a group of higher priority that cannot be served needs the room.

// bindWaiting reserves room on instances that are on their way for elements that found no place.
func (e *Engine) bindWaiting(g *group, r *fleet.Index) {
	for _, in := range r.Coming {
		if g.wants() == 0 {
			return
		}
		if !in.Accepts(&g.demand) {
			continue
		}
		if n := e.bindableWithin(in, g); n > 0 {
			e.bind(g, in, n)
			e.writeInstance(in)
		}
	}
}

// bindableWithin is for how many more elements of the group there is room on the instance, and money.
func (e *Engine) bindableWithin(in *fleet.Member, g *group) int {
	n := g.bindable(in)
	if n == 0 || !e.worthWaiting(g, in, n) {
		return 0
	}
	return e.payableOn(in, g, n)
}

// payableOn is how many of n elements of the group may be bound to an instance by what may be spent.
func (e *Engine) payableOn(in *fleet.Member, g *group, n int) int {
	if !e.limited() || n == 0 {
		return n
	}
	want := []wanted{{g, n}}
	p := e.onInstance(in, e.bootsFor(in), want...)
	allowed, _ := e.within(p, want)
	if p.Loads = loadsOf(allowed...); len(allowed) == 0 || e.ledger.Refuses(nil, p) != nil {
		return 0
	}
	return allowed[0].count
}

// bootsFor is how long it may take at most until work that is bound to the instance begins.
func (e *Engine) bootsFor(in *fleet.Member) time.Duration {
	return max(0, in.LastAsked().Add(e.life().BootTimeout).Sub(e.s.Now))
}

// bind reserves room for n of the group's elements.
func (e *Engine) bind(g *group, in *fleet.Member, n int) {
	if in.Market == drover.OnDemand && g.OnDemand > 0 {
		g.OnDemandBound += n
	}
	e.reserve(in, g.Key, n)
}

// reserve reserves room for n more of a group's elements, or for fewer.
func (e *Engine) reserve(in *fleet.Member, key GroupKey, n int) {
	in.Reserve(key, n)
	e.group(key).bound += n
	e.changed(in)
}

// unbind drops all reservations on an instance: it is ready, or will never be.
func (e *Engine) unbind(in *fleet.Member) {
	if len(in.Bound) == 0 {
		return
	}
	for _, b := range in.Unreserve() {
		e.group(b.Group).bound -= b.Count
	}
	e.changed(in)
	e.replace, e.replan = true, true
}

// unbindSurplus drops reservations for elements that neither wait nor will, on the youngest instances first. What that frees goes to other
// waiting work before anything new is planned.
func (e *Engine) unbindSurplus(g *group, r *fleet.Index) {
	e.unbindSome(g, r, g.bound-g.Queued-g.Coming+g.Standby)
}

// unbindSome drops so many of a group's reservations.
func (e *Engine) unbindSome(g *group, r *fleet.Index, surplus int) {
	for _, in := range slices.Backward(r.Bound) {
		if surplus <= 0 {
			return
		}
		has := in.Reserved(g.Key)
		n := min(surplus, has)
		if n == 0 {
			continue
		}
		surplus -= n
		if e.reserve(in, g.Key, -n); n == has {
			e.touch(in)
		}
		e.writeInstance(in)
	}
}

// takeOver gives a group that is stuck the room of lower ones on instances that are on their way.
func (e *Engine) takeOver(g *group, r *fleet.Index) {
	for _, in := range r.Coming {
		if g.wants() == 0 {
			return
		}
		if in.Accepts(&g.demand) && e.displace(in, g) {
			if n := e.bindableWithin(in, g); n > 0 {
				e.bind(g, in, n)
			}
			e.writeInstance(in)
		}
	}
}

// displace drops reservations of lower priority than the group's, the lowest first, until there is room for all that it wants, and reports
// whether it dropped any.
func (e *Engine) displace(in *fleet.Member, g *group) (dropped bool) {
	bound := slices.Clone(in.Bound)
	slices.SortStableFunc(bound, func(a, b fleet.Reservation) int { return cmp.Compare(a.Group.Priority, b.Group.Priority) })
	for _, b := range bound {
		if b.Group.Priority >= g.Key.Priority || in.Room.Times(g.Key.Shape.Need, g.wants()) >= g.wants() {
			break
		}
		e.reserve(in, b.Group, -b.Count)
		e.replan, dropped = true, true
	}
	return dropped
}
