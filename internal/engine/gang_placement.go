package engine

import (
	"slices"

	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// While the rest of a group's next gang waits for coming or planned instances, the slots that are ready are held for
// it. If nothing more can be rented, they are held only if the existing instances, emptied, and those already planned
// can hold the whole gang; otherwise all are released, so that two gangs never block each other with halves. Slots that
// the budgets do not allow are not held. Gangs are served in the order of their groups, so the first to hold slots
// starts first.

// affordsGang reports whether the budgets allow the slots found for a part of a gang and, unless some of the rest is
// already reserved and paid for, the whole gang on instances like the first.
func (e *Engine) affordsGang(g *group, slots []*fleet.Member) bool {
	return len(slots) == 0 || e.refusingAccount(g, slots) == nil && (g.reserved > 0 || e.allowsOn(slots[0], g))
}

// findSlots returns ready instances for up to n of the group's elements to start together, by the first of some orders
// that the budgets allow for all n: where it costs the fleet least, then where it adds least to the account that
// refused that, then the others. If none is allowed, it returns slots and the account that refuses them. It looks no
// further once it knows that every instance is refused.
func (e *Engine) findSlots(g *group, n int) (first []*fleet.Member, refuses *budget.Account) {
	find := func(by order) (slots []*fleet.Member, a *budget.Account) {
		slots = e.takeSlots(g, n, by)
		returnSlots(g, slots)
		if len(slots) == n {
			a = e.refusingAccount(g, slots)
		}
		return slots, a
	}
	hopeless := func(a *budget.Account) bool { return e.ledger.Exhausted() || !e.mayAfford(g, a) }
	if n == 1 && e.limited() { // the order does not matter if all are refused
		if slots, a := find(unordered); len(slots) == 0 || a != nil && hopeless(a) {
			return slots, a
		}
	}
	if first, refuses = find(orders[0]); refuses == nil || hopeless(refuses) {
		return first, refuses
	}
	adds := order{rank: func(e *Engine, g *group, in *fleet.Member) int64 { return int64(e.addsOn(g, in, refuses)) }}
	for _, by := range append([]order{adds}, orders[1:]...) {
		if slots, a := find(by); len(slots) == n && a == nil {
			return slots, nil
		}
	}
	return first, refuses
}

// takeSlots takes room for up to n of the group's elements, filling one ready instance after the other in an order. The
// caller returns it with returnSlots before the index is refreshed.
func (e *Engine) takeSlots(g *group, n int, by order) (slots []*fleet.Member) {
	if n > 1 {
		by = by.remembered()
	}
	for len(slots) < n {
		in := e.bestInstance(g, by)
		if in == nil {
			break
		}
		for holder := e.reservedFor(in); len(slots) < n && in.Holds(&g.demand) && !in.Full() && e.fitsBeside(in, g, holder); {
			in.TakeSlot(g.Key.Shape.Need)
			slots = append(slots, in)
		}
	}
	return slots
}

func returnSlots(g *group, slots []*fleet.Member) {
	for _, in := range slots {
		in.ReturnSlot(g.Key.Shape.Need)
	}
}

// refusingAccount returns the account that starting one element in each slot would overdraw; nil if there is none.
func (e *Engine) refusingAccount(g *group, slots []*fleet.Member) *budget.Account {
	if !e.limited() {
		return nil
	}
	return e.ledger.Refuses(nil, e.slotCommitments(g, slots)...)
}

// slotCommitments returns what starting one of the group's elements in each slot would commit.
func (e *Engine) slotCommitments(g *group, slots []*fleet.Member) (all []budget.Commitment) {
	var of []*fleet.Member
	for _, in := range slots {
		at := slices.Index(of, in)
		if at < 0 {
			of, all = append(of, in), append(all, e.onInstance(in, 0, wanted{g, 1}))
			continue
		}
		all[at].Loads[0].Count++
	}
	return all
}

// gangRoom is room held for a gang while other groups are placed.
type gangRoom struct {
	g     *group
	slots []*fleet.Member
}

// partialGang is a gang that did not fit: its size, and the slots found for it.
type partialGang struct {
	size       int
	slots      []*fleet.Member
	overBudget bool // the slots, or the whole gang, exceed a budget
}

// reserveForGang holds the slots found for the group's next gang if the whole gang can still be assembled; otherwise it
// releases all its room.
func (e *Engine) reserveForGang(g *group, r *fleet.Index, before bool) {
	if g.Queued == 0 {
		e.dropSurplus(g, r)
		return
	}
	size, slots := e.partial.size, e.partial.slots // from the placeNext call just before
	if e.partial.overBudget {
		unmet := g.Unmet // unchanged even if others take these slots
		g.Standby += min(len(slots), g.netDemand())
		e.reserveComing(g, r)
		g.Unmet = unmet
		return
	}
	if e.cannotAssemble(g, size) {
		e.dropReservations(g, r, g.reserved)
		g.Unmet, e.pending.GangReleased = g.netDemand(), true
		return
	}
	e.gangRooms = append(e.gangRooms, gangRoom{g, slots})
	for _, in := range slots {
		in.TakeSlot(g.Key.Shape.Need)
		in.Standby++
		in.ForGang = true
		g.Standby++
		e.fleet.Relist(in)
	}
	e.reserveComing(g, r)
	if g.Unschedulable && g.PartlyPlanned > 0 && g.Standby+g.reserved+g.PartlyPlanned >= size {
		e.pending.Plan = true // the rest can be rented now
	}
	if left := min(size-len(slots), g.unreserved()); left > 0 && g.Unschedulable && before {
		e.backfill.wait(g, left)
	}
}

// retryGangs runs a placement before a plan that may include unschedulable gangs, so that gangs that released their
// slots in the last placement hold them again.
func (e *Engine) retryGangs() {
	if e.pending.GangReleased && (e.pending.Plan || e.pending.GangDropped) && slices.ContainsFunc(e.groups, func(g *group) bool { return g.Key.Gang > 0 && g.Unschedulable }) {
		e.pending.Place = true
	}
}

// returnGangRooms returns the room held for gangs during the placement.
func (e *Engine) returnGangRooms() {
	for _, k := range e.gangRooms {
		returnSlots(k.g, k.slots)
		for _, in := range k.slots {
			e.fleet.Relist(in)
		}
	}
	e.gangRooms = e.gangRooms[:0]
}

// cannotAssemble reports whether n of the group's elements fit neither on what can be rented nor on the existing
// instances.
func (e *Engine) cannotAssemble(g *group, n int) bool {
	next := g.Reason.Cause == verdict.Planning && g.netDemand() > g.Unmet // this plan is for others, the next one for it
	if !g.Unschedulable && !e.s.Closing || e.hasChance(g) || e.beingSolved(g) || next {
		return false
	}
	return n > g.PartlyPlanned && e.fleet.Census().Hold(&g.demand, n, g.Jobs[0].Number) < n-g.PartlyPlanned
}

// beingSolved reports whether the solver is looking for instances for the group.
func (e *Engine) beingSolved(g *group) bool {
	return e.s.Solving != nil && g.solving == e.s.Solving.Effect
}
