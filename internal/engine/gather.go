package engine

import (
	"slices"

	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// What is ready is kept for the next gang of a group while the rest of its places are on their way, or are being chosen. If no more may be rented,
// it is kept only where the instances that there are, with those that may still be rented, can hold all of the gang once what runs there has ended; else
// everything is let go, so that no two gangs keep halves from each other; and what costs more than may be spent now is kept from nobody. Gangs are served in
// the order of their groups, so the first to keep places is the first to begin.

// placeGang begins the group's next gang, if there is room for all of it.
func (e *Engine) placeGang(g *group) bool {
	j, members := g.NextGang()
	seats, refuses := e.placesFor(g, len(members))
	if refuses != nil {
		g.wait(e.whyUnpaid(g, refuses))
	}
	if len(seats) < len(members) || refuses != nil {
		e.half = half{len(members), seats, refuses != nil || !e.allowsRest(g, seats)}
		return false
	}
	g.TakeGang(members)
	for i, index := range members {
		e.beginElement(j, index, seats[i])
	}
	if !g.Has(j) {
		*j.BlockedIn(g.Key) = e.blockedFor(g, j)
	}
	return true
}

// allowsRest reports whether the budgets allow a gang that has some seats: those and, unless some of the rest is on its way and paid for, all of it on as many
// instances like the first as it takes.
func (e *Engine) allowsRest(g *group, seats []*fleet.Member) bool {
	return len(seats) == 0 || e.refusesOn(g, seats) == nil && (g.bound > 0 || e.allowsOn(seats[0], g))
}

// placesFor is where up to n of the group's elements would begin together, in the first of the orders that can be paid for all; else in the first, with
// the account that refuses that.
func (e *Engine) placesFor(g *group, n int) (first []*fleet.Member, refuses *budget.Account) {
	for i, order := range orders {
		seats := e.seat(g, n, order)
		unseat(g, seats)
		switch {
		case len(seats) < n && i == 0:
			return seats, nil
		case len(seats) < n:
			return first, refuses
		}
		a := e.refusesOn(g, seats)
		if a == nil {
			return seats, nil
		}
		if i == 0 {
			first, refuses = seats, a
		}
	}
	return first, refuses
}

// seat takes room for up to n of the group's elements on what is ready, filling one instance after the other in an order; unseat gives it back, before the
// index is refreshed again.
func (e *Engine) seat(g *group, n int, before order) (seats []*fleet.Member) {
	for len(seats) < n {
		in := e.choose(g, before)
		if in == nil {
			break
		}
		for by := e.reservedFor(in); len(seats) < n && in.Holds(&g.demand) && !in.Full() && e.leaves(in, g, by); {
			in.Seat(g.Key.Shape.Need)
			seats = append(seats, in)
		}
	}
	return seats
}

func unseat(g *group, seats []*fleet.Member) {
	for _, in := range seats {
		in.Unseat(g.Key.Shape.Need)
	}
}

// refusesOn is the account that would be overdrawn if an element of the group began on each of the seats; nil if there is none.
func (e *Engine) refusesOn(g *group, seats []*fleet.Member) *budget.Account {
	if !e.limited() {
		return nil
	}
	return e.ledger.Refuses(nil, e.commitmentsOn(g, seats)...)
}

// commitmentsOn is what an element of the group on each of the seats would bind.
func (e *Engine) commitmentsOn(g *group, seats []*fleet.Member) (all []budget.Commitment) {
	var of []*fleet.Member
	for _, in := range seats {
		at := slices.Index(of, in)
		if at < 0 {
			of, all = append(of, in), append(all, e.onInstance(in, 0, wanted{g, 1}))
			continue
		}
		all[at].Loads[0].Count++
	}
	return all
}

// kept is room that is kept for a gang until others were placed.
type kept struct {
	g     *group
	seats []*fleet.Member
}

// half is what there was room for of a gang that could not begin: how many it has, and where some of them would.
type half struct {
	size   int
	seats  []*fleet.Member
	unpaid bool // those, or all of it, cost more than may be spent
}

// gather keeps what is ready for the group's next gang, if all of it can come together; else it lets go of everything.
func (e *Engine) gather(g *group, r *fleet.Index, before bool) {
	if g.Queued == 0 {
		e.unbindSurplus(g, r)
		return
	}
	size, seats := e.half.size, e.half.seats // by placeGang, just now
	if e.half.unpaid {
		unmet := g.Unmet // which holds also when others have taken these places
		g.Standby += min(len(seats), g.wants())
		e.seatComing(g, r)
		g.Unmet = unmet
		return
	}
	if e.hopelessFor(g, size) {
		e.unbindSome(g, r, g.bound)
		g.Unmet, e.gaveUp = g.wants(), true
		return
	}
	e.kept = append(e.kept, kept{g, seats})
	for _, in := range seats {
		in.Seat(g.Key.Shape.Need)
		in.Standby++
		in.Gathers = true
		g.Standby++
		e.fleet.Kept(in)
	}
	e.seatComing(g, r)
	if g.Unschedulable && g.PartlyPlanned > 0 && g.Standby+g.bound+g.PartlyPlanned >= size {
		e.replan = true // the rest may be rented now
	}
	if left := min(size-len(seats), g.unbound()); left > 0 && g.Unschedulable && before {
		e.claims.wait(g, left)
	}
}

// gatherAnew has gangs that let go of everything keep what is ready again before a plan is made that they may be in.
func (e *Engine) gatherAnew() {
	if (e.replan || e.without) && slices.ContainsFunc(e.groups, func(g *group) bool { return g.Key.Gang > 0 && g.Unschedulable }) {
		e.replace = true
	}
}

// unkeep gives back what was kept while others were placed.
func (e *Engine) unkeep() {
	for _, k := range e.kept {
		unseat(k.g, k.seats)
		for _, in := range k.seats {
			e.fleet.Kept(in)
		}
	}
	e.kept = e.kept[:0]
}

// hopelessFor reports whether so many of the group can come together neither on what may be rented nor on what there is.
func (e *Engine) hopelessFor(g *group, n int) bool {
	if !g.Unschedulable && !e.s.Closing || e.hasChance(g) || e.s.Solving != nil && slices.Contains(e.s.Solving.Groups, g.Key) {
		return false
	}
	return n > g.PartlyPlanned && e.fleet.Census().Hold(&g.demand, n, g.Jobs[0].Number) < n-g.PartlyPlanned
}
