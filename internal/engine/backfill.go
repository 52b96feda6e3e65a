package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// Backfill. A group that waits and cannot get new instances has ready instances held for it: as many as its waiting
// elements fill, those with the most free room first, except where its budgets allow none. Later groups may use only
// what the holding group cannot. Which group holds an instance is computed on demand, since it is rarely needed.
//
// Held instances stand partly idle until the group fits, so only a part of a large fleet is held at a time, for the
// groups served first. The others still get theirs in their turn.
//
// At a limit, a group whose jobs the existing instances cannot run, since they are another user's or too small, also has
// one of those held against lower priorities, and against a user who has more instances than their share. Once it is
// empty, it gives way.

const (
	heldMin   = 16   // instances that may be held in any fleet
	heldPart  = 64   // in large fleets, one instance in this many may be held
	scanLimit = 1024 // instances examined at most

	heldOthers  = 8  // groups for which instances that they cannot use are examined in a placement
	othersLimit = 64 // and how many instances for each of them
)

// backfill is the state of one placement.
type backfill struct {
	by       map[*fleet.Member]*group
	spare    map[*fleet.Member]spare // computed for held instances
	waiters  []waiter                // in order of service
	left     int                     // how many more instances may be held
	others   int                     // for how many more groups an instance that they cannot use may be held
	emptying []*fleet.Member         // those so held, which are to become empty
	serving  map[string][]int        // by owner: the positions of the examined instances that may run its jobs
	scanned  int                     // the first waiters have examined every instance before this position
	first    int                     // how many waiters those are

	remaining map[*fleet.Member]remaining // nil outside of a placement
	rooms     *rooms                      // nil until a budget refuses something
}

// waiter is a group for which instances are held.
type waiter struct {
	g    *group
	left int // elements for which no instance is held yet

	serving []int // see backfill; nil until it is needed
	next    int   // the position in serving of the next instance to examine
}

// begin starts a placement in which nothing is held.
func (b *backfill) begin(instances int) {
	b.left, b.others = max(heldMin, instances/heldPart), heldOthers
	b.remaining = map[*fleet.Member]remaining{}
}

// end ends the placement, and with it all holds: nothing outside of a placement may depend on them, since a State has
// none.
func (b *backfill) end() {
	clear(b.by)
	clear(b.spare)
	clear(b.serving)
	b.waiters, b.emptying, b.scanned, b.first = b.waiters[:0], b.emptying[:0], 0, 0
	b.remaining, b.rooms = nil, nil
}

// wait queues a group that needs room for left elements, behind those already waiting.
func (b *backfill) wait(g *group, left int) { b.waiters = append(b.waiters, waiter{g: g, left: left}) }

// reservedFor returns the group for which the instance is held, nil if there is none. Instances with more free room are
// assigned first.
func (e *Engine) reservedFor(in *fleet.Member) *group {
	b := &e.backfill
	if g := b.by[in]; g != nil {
		return g
	}
	if len(b.waiters) == 0 || b.left == 0 {
		return nil
	}
	order := e.fleet.LastIndex().Ready // before this placement changes the order
	order = order[:min(len(order), scanLimit)]
	rank, _ := slices.BinarySearchFunc(order, in, fleet.ByFree)
	end := min(rank+1, len(order))
	from := 0
	if end <= b.scanned {
		from = b.first
	}
	for i := from; i < len(b.waiters); i++ {
		w := &b.waiters[i]
		if w.left > 0 && w.serving == nil {
			w.serving = b.servingOf(w.g, order)
		}
		for b.left > 0 && w.left > 0 && w.next < len(w.serving) && w.serving[w.next] < end {
			o := order[w.serving[w.next]]
			w.next++
			if !o.Accepts(&w.g.demand) || b.by[o] != nil {
				continue
			}
			w.left -= o.Resources.Times(w.g.Key.Shape.Need, w.left)
			if !e.allowsOn(o, w.g) {
				continue
			}
			b.by[o] = w.g
			if b.left--; o == in {
				return w.g
			}
		}
	}
	if end >= b.scanned {
		b.scanned, b.first = end, len(b.waiters)
	}
	return nil
}

// holdUnusable holds instances that cannot run the group's jobs, but whose end lets the limits and the budgets admit
// those that it needs: one, or as many as a gang lacks. All that runs there must rank below the group, and the user's
// own limits must admit the new instances. While others are held or leaving, a single one is not held.
func (e *Engine) holdUnusable(g *group, left int) {
	b, order := &e.backfill, e.fleet.LastIndex().Ready
	if g.lacks = 1; len(order) == 0 || b.left == 0 || b.others == 0 || !e.atLimit(g) || e.fleet.Census().Hold(&g.demand, left, g.Jobs[0].Number) >= left {
		return
	}
	b.others--
	if e.spans(g) {
		e.holdForGang(g, order)
		return
	}
	var able []drover.Offering
	var helps func(*fleet.Member) bool
	for _, in := range order[:min(len(order), othersLimit)] {
		if !e.mayEmpty(in, g) || b.by[in] != nil {
			continue
		}
		if helps == nil {
			if able, _ = e.fewest(g); !e.ownLimitAdmits(g, able, 1) {
				return
			}
			helps = e.helps(able)
		}
		if helps(in) {
			if e.countLeaving(helps) == 0 && !slices.ContainsFunc(b.emptying, helps) && e.affordsInstead(g, able)(in) {
				b.empty(in, g)
			}
			return
		}
	}
}

// holdForGang holds instances for a gang that lacks some, if enough exist.
func (e *Engine) holdForGang(g *group, order []*fleet.Member) {
	b, s := &e.backfill, e.savingFor(g)
	if s == nil {
		return
	}
	for _, in := range order[:min(len(order), othersLimit)] {
		if g.lacks > len(b.emptying) && b.left > 0 && b.by[in] == nil && e.mayEmpty(in, g) && s.helps(in) {
			b.empty(in, g)
		}
	}
}

// empty holds an instance that the group cannot use.
func (b *backfill) empty(in *fleet.Member, g *group) {
	b.by[in] = g
	b.left, b.emptying = b.left-1, append(b.emptying, in)
}

// mayEmpty reports whether an instance that cannot run the group's jobs may be kept empty for it.
func (e *Engine) mayEmpty(in *fleet.Member, g *group) bool {
	return e.yields(in) && !in.Accepts(&g.demand) && e.runsOnlyBelow(in, g)
}

// affordsInstead returns a function that reports whether the end of an instance lets the limits admit one of these
// offerings that the budgets then allow for the group.
func (e *Engine) affordsInstead(g *group, able []drover.Offering) func(*fleet.Member) bool {
	if !e.limited() {
		return e.helps(able)
	}
	admits := e.admitsInstead()
	return func(in *fleet.Member) bool {
		may := func(o drover.Offering) bool { return admits(in, o) }
		return e.affordsOne(g, able, may, []*budget.Claim{e.ledger.Claim(in.ID)})
	}
}

// affordsOne reports whether the budgets allow, for the group, the cheapest of the offerings that may be rented once
// some claims are freed.
func (e *Engine) affordsOne(g *group, able []drover.Offering, may func(drover.Offering) bool, freed []*budget.Claim) bool {
	var cheapest []drover.Offering
	for _, o := range able {
		if (cheapest == nil || o.Price < cheapest[0].Price) && may(o) {
			cheapest = []drover.Offering{o}
		}
	}
	return cheapest != nil && (!e.limited() || e.ledger.Refuses(freed, e.rental(cheapest, wanted{g, 1})) == nil)
}

// runsOnlyBelow reports whether all that runs on the instance ranks below the group.
func (e *Engine) runsOnlyBelow(in *fleet.Member, g *group) bool {
	return !slices.ContainsFunc(in.Load, func(a *Attempt) bool { return !e.ranksBelow(e.job(a.ID.Job.Number).Priority, in, g) })
}

// ranksBelow reports whether jobs of a priority on an instance make room for a group that cannot use it: those of lower
// priority, and with shares those of a user whose instances are still as large for their weight as the group's user's
// if the latter gets those that it lacks. So no instance goes back and forth.
func (e *Engine) ranksBelow(priority int, in *fleet.Member, g *group) bool {
	if priority != g.Key.Priority || e.s.Settings.Shares.By != drover.ShareByUser || in.Sharing != drover.ShareUser || in.Owner == g.demand.Owner {
		return priority < g.Key.Priority
	}
	shares, cpu := e.s.Settings.Shares, in.Resources.CPU*drover.MilliCPU(g.lacks)
	theirs, own := e.fleet.Owned(in.Owner).CPU-cpu, e.fleet.Owned(g.demand.Owner).CPU+cpu
	return int64(theirs)*int64(shares.Weight(g.Key.User)) >= int64(own)*int64(shares.Weight(in.User))
}

// servingOf returns the positions of the instances that may serve the group's owner. The set does not grow during a
// placement.
func (b *backfill) servingOf(g *group, order []*fleet.Member) []int {
	all, known := b.serving[g.demand.Owner]
	if !known {
		for i, in := range order {
			if in.Serves(&g.demand) {
				all = append(all, i)
			}
		}
		b.serving[g.demand.Owner] = all
	}
	return all
}

// spare is the room left on a held instance by other groups' jobs, and how many jobs of the holding group the empty
// instance fits.
type spare struct {
	left drover.Resources
	most int
}

const many = 1 << 20

// fitsBeside reports whether a job of g on the instance takes nothing from the group by: together with the other
// groups' jobs there, it leaves room for as many of by's jobs as the empty instance fits. So others use what by cannot,
// and no stream of small jobs keeps it waiting.
func (e *Engine) fitsBeside(in *fleet.Member, g *group, by *group) bool {
	if by == nil {
		return true
	}
	if !in.Accepts(&by.demand) {
		return !e.ranksBelow(g.Key.Priority, in, by)
	}
	s, known := e.backfill.spare[in]
	if !known {
		s = e.computeSpare(in, by)
		e.backfill.spare[in] = s
	}
	return s.left.Minus(g.Key.Shape.Need, 1).Times(by.Key.Shape.Need, many) == s.most
}

func (e *Engine) computeSpare(in *fleet.Member, by *group) spare {
	s := spare{in.Resources, in.Resources.Times(by.Key.Shape.Need, many)}
	for _, a := range in.Load {
		if j := e.job(a.ID.Job.Number); j.Shape != by.Key.Shape || j.Priority != by.Key.Priority || j.User != by.Key.User {
			s.left = s.left.Minus(e.need(a), 1)
		}
	}
	return s
}
