package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// Waiting work that does not fit on ready instances gets reservations: room for some elements of a group on a coming
// instance. The group's count, the instance's remaining room and its place in the index change together, only in
// adjustReservation and dropAllReservations. A reservation ends when the instance is ready or will never be, when fewer
// elements wait, when the instance costs more than they allow or may not run them any more, or when an unschedulable group
// of higher priority needs the room.

// reserveOnComing reserves room on coming instances for elements that could not start, first where it costs least.
func (e *Engine) reserveOnComing(g *group, r *fleet.Index) {
	if g.netDemand() == 0 {
		return
	}
	var fit []*fleet.Member
	for _, in := range r.Coming {
		if in.Accepts(&g.demand) && g.fitting(in) > 0 {
			fit = append(fit, in)
		}
	}
	if len(fit) > 1 {
		slices.SortStableFunc(fit, func(a, b *fleet.Member) int { return cmp.Compare(e.costOn(g, a), e.costOn(g, b)) })
	}
	for _, in := range fit {
		if n := e.reservable(in, g); n > 0 {
			e.reserveFor(g, in, n)
			e.writeInstance(in)
		}
		if g.netDemand() == 0 {
			return
		}
	}
}

// reservable returns how many more of the group's elements fit on the instance, are worth it, and are allowed by the
// budgets.
func (e *Engine) reservable(in *fleet.Member, g *group) int {
	n := g.fitting(in)
	if n == 0 || !e.worthReserving(g, in, n) {
		return 0
	}
	return e.affordableOn(in, g, n)
}

// affordableOn returns for how many of n elements the budgets allow a reservation.
func (e *Engine) affordableOn(in *fleet.Member, g *group, n int) int {
	if !e.limited() || n == 0 {
		return n
	}
	p := e.onInstance(in, e.maxBootLeft(in), wanted{g, n})
	n, _ = e.ledger.Allot().Allows(p, p.Loads[0])
	if p.Loads[0].Count = n; n == 0 || e.ledger.Refuses(nil, p) != nil {
		return 0
	}
	return n
}

// maxBootLeft returns the longest time until work reserved on the instance can start.
func (e *Engine) maxBootLeft(in *fleet.Member) time.Duration {
	return max(0, in.LastAsked().Add(e.life().BootTimeout).Sub(e.s.Now))
}

// reserveFor reserves room for n of the group's elements.
func (e *Engine) reserveFor(g *group, in *fleet.Member, n int) {
	if in.Market == drover.OnDemand && g.OnDemand > 0 {
		g.OnDemandReserved += n
	}
	e.adjustReservation(in, g.Key, n)
}

// adjustReservation adds n to the group's reservation on the instance; n may be negative.
func (e *Engine) adjustReservation(in *fleet.Member, key GroupKey, n int) {
	in.Reserve(key, n)
	e.group(key).reserved += n
	e.changed(in)
}

// dropAllReservations drops the reservations on an instance that is ready, or never will be.
func (e *Engine) dropAllReservations(in *fleet.Member) {
	if len(in.Reservations) == 0 {
		return
	}
	for _, b := range in.Unreserve() {
		e.group(b.Group).reserved -= b.Count
	}
	e.changed(in)
	e.pending.Place, e.pending.Plan = true, true
}

// dropAbove drops the reservations of jobs whose max_price is below the instance's new price. The caller writes the
// instance.
func (e *Engine) dropAbove(in *fleet.Member, price drover.Money) {
	e.dropReservationsOf(in, func(key GroupKey) bool { return !key.Shape.Placement.Pays(price) })
}

// dropReservationsOf drops an instance's reservations of some groups, and reports whether there were any. The caller
// writes the instance.
func (e *Engine) dropReservationsOf(in *fleet.Member, some func(GroupKey) bool) (dropped bool) {
	for _, b := range slices.Clone(in.Reservations) {
		if some(b.Group) {
			e.adjustReservation(in, b.Group, -b.Count)
			e.pending.Place, e.pending.Plan, dropped = true, true, true
		}
	}
	return dropped
}

// dropSurplus drops reservations that exceed the waiting and expected elements, on the youngest instances first. The
// room goes to other waiting work before anything new is planned.
func (e *Engine) dropSurplus(g *group, r *fleet.Index) {
	e.dropReservations(g, r, g.reserved-g.Queued-g.Coming+g.Standby)
}

// dropReservations drops up to surplus of the group's reservations, on the youngest instances first.
func (e *Engine) dropReservations(g *group, r *fleet.Index, surplus int) {
	for _, in := range slices.Backward(r.Reserved) {
		if surplus <= 0 {
			return
		}
		has := in.Reserved(g.Key)
		n := min(surplus, has)
		if n == 0 {
			continue
		}
		surplus -= n
		if e.adjustReservation(in, g.Key, -n); n == has {
			e.touch(in)
		}
		e.writeInstance(in)
	}
}

// takeOver displaces lower priorities on coming instances in favour of an unschedulable group.
func (e *Engine) takeOver(g *group, r *fleet.Index) {
	for _, in := range r.Coming {
		if g.netDemand() == 0 {
			return
		}
		if in.Accepts(&g.demand) && e.displace(in, g) {
			if n := e.reservable(in, g); n > 0 {
				e.reserveFor(g, in, n)
			}
			e.writeInstance(in)
		}
	}
}

// displace drops reservations of lower priority, the lowest first, until all that the group wants fits. It reports
// whether it dropped any.
func (e *Engine) displace(in *fleet.Member, g *group) (dropped bool) {
	lower := func(r fleet.Reservation) bool { return r.Group.Priority < g.Key.Priority }
	if !slices.ContainsFunc(in.Reservations, lower) {
		return false
	}
	bound := slices.Clone(in.Reservations)
	slices.SortStableFunc(bound, func(a, b fleet.Reservation) int { return cmp.Compare(a.Group.Priority, b.Group.Priority) })
	for _, b := range bound {
		if b.Group.Priority >= g.Key.Priority || in.Room.Times(g.Key.Shape.Need, g.netDemand()) >= g.netDemand() {
			break
		}
		e.adjustReservation(in, b.Group, -b.Count)
		e.pending.Plan, dropped = true, true
	}
	return dropped
}

// fitting returns how many more of the group's elements fit on the instance.
func (g *group) fitting(in *fleet.Member) int {
	if in.Full() {
		return 0
	}
	return in.Room.Times(g.Key.Shape.Need, in.AtOnce(max(0, g.mayReserve(in))))
}
