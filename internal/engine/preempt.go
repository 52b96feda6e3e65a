package engine

import (
	"cmp"
	"iter"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/market"
	"drover/internal/engine/pool"
	"drover/internal/engine/verdict"
)

// If no instance may be added for waiting work, others are stopped for it: idle ones, since waiting work was placed
// first and cannot use them, and coming ones reserved for lower priorities. Instances that could serve the work are not
// stopped, nor more than it needs, and never one that runs something (behaviour D18). Coming instances for work of
// equal priority stay, so that two kinds of work do not take the fleet from each other in turns. For a pool that is
// short of instances, only idle ones are stopped.

// preempt stops instances so that others can be created for unschedulable groups.
func (e *Engine) preempt() {
	if e.nothingStarts() || !e.pending.Preempt || e.s.Closing || e.s.Solving != nil {
		return
	}
	e.pending.Preempt = false
	waits := func(g *group) bool { return g.Unschedulable && g.unreserved() > 0 }
	if !slices.ContainsFunc(e.groups, waits) {
		return
	}
	defer e.planAgain()
	victims := e.victims()
	for _, g := range slices.Clone(e.groups) {
		if len(victims) == 0 {
			return
		}
		if waits(g) {
			for _, in := range e.victimsFor(g, victims) {
				e.stop(in, e.verdict(drover.ReasonGivesWay, "to make room for job %s, which has priority %d", g.Jobs[0].Name, g.Key.Priority))
				victims = slices.DeleteFunc(victims, func(o *fleet.Member) bool { return o == in })
			}
		}
	}
}

// victims returns the instances that may be preempted, lowest priority first, then youngest.
func (e *Engine) victims() (able []*fleet.Member) {
	r := e.fleet.Index()
	for _, in := range r.Idle {
		if e.yields(in) {
			able = append(able, in)
		}
	}
	for _, in := range r.Coming {
		if in.Yields() && len(in.Load) == 0 {
			able = append(able, in)
		}
	}
	slices.SortFunc(able, func(a, b *fleet.Member) int {
		return cmp.Or(cmp.Compare(a.Priority(), b.Priority()), cmp.Compare(b.ID, a.ID))
	})
	return able
}

// yields reports whether an instance that is ready may be preempted when nothing runs on it.
func (e *Engine) yields(in *fleet.Member) bool {
	return in.Yields() && in.Connected && in.TakesWork() && !in.Expanding() && in.Standby == 0 && len(in.Orphans) == 0 && e.s.Now >= in.KeepUntil
}

// victimsFor returns the victims to stop for a group, depending on what it waits for.
func (e *Engine) victimsFor(g *group, victims []*fleet.Member) []*fleet.Member {
	lower := slices.DeleteFunc(slices.Clone(victims), func(in *fleet.Member) bool {
		return in.Priority() >= g.Key.Priority || g.Key.Gang > 0 && in.Priority() >= 0 || in.Accepts(&g.demand)
	})
	switch g.Reason.Cause {
	case verdict.Limit:
		return e.victimsForLimit(g, lower)
	case verdict.UserLimit:
		return e.victimsForUserLimit(g, lower)
	case verdict.Blocked:
		return e.victimsForQuota(g, lower)
	case verdict.Budget:
		return e.victimsForBudget(g, lower)
	}
	return nil
}

// makeRoom stops the queue's idle instances for a pool that a limit on the number of instances keeps from its size: no
// more than it is short of, and only if it could rent something then. If something else might stop it after the first
// instance, one is stopped at a time.
func (e *Engine) makeRoom(p *poolOf, short int) {
	if len(e.fleet.Index().Idle) == 0 {
		return
	}
	left, full := e.limitsLeft(), e.room() == 0
	able := slices.DeleteFunc(e.usable(p, pool.Place{}), func(o drover.Offering) bool {
		return e.limits(o.Cloud).Leaving || e.unavailable(p, o) || left.Passed(o) != nil || e.beyondBudget(p, e.pricedFor(p, o)) != nil
	})
	if slices.ContainsFunc(able, func(o drover.Offering) bool { return !full && e.cloudRoom(o.Cloud) > 0 }) {
		return // the limit is not what stops it
	}
	few := slices.ContainsFunc(able, func(o drover.Offering) bool { return full && e.cloudRoom(o.Cloud) < short })
	if few || left != nil || e.limited() || p.spec.Budget > 0 || len(p.Exhausted)+len(e.market.Blocks()) > 0 {
		short = min(short, 1)
	}
	helps := e.helps(able)
	if short -= e.countLeaving(helps); short <= 0 {
		return
	}
	for _, in := range e.victims() {
		if short > 0 && in.State == drover.InstanceIdle && helps(in) {
			e.stop(in, e.verdict(drover.ReasonGivesWay, "to make room for pool %s, which has too few instances", p.Name))
			short--
		}
	}
}

// countLeaving counts the instances that are already being destroyed and whose end helps too.
func (e *Engine) countLeaving(helps func(*fleet.Member) bool) (n int) {
	for _, in := range e.fleet.Index().Ending {
		if helps(in) {
			n++
		}
	}
	return n
}

// victimsForLimit returns as many victims as the group needs new instances, of those whose end lets the limits and the
// budgets admit one. While the user's own limits admit none either, only the user's instances are of use.
func (e *Engine) victimsForLimit(g *group, lower []*fleet.Member) []*fleet.Member {
	if len(lower) == 0 {
		return nil
	}
	able, need := e.fewest(g)
	if !e.ownLimitAdmits(g, able, 1) {
		helps := e.helps(able)
		return e.victimsForUserLimit(g, slices.DeleteFunc(slices.Clone(lower), func(in *fleet.Member) bool { return !helps(in) }))
	}
	useful := e.affordsInstead(g, able)
	if need > 1 {
		s := e.savingFor(g)
		if s == nil {
			return nil
		}
		need, useful = g.lacks, s.helps
	} else {
		if e.gangSpans(g) <= 1 { // otherwise only one is missing
			need = instancesFor(g, able)
		}
		need -= e.countLeaving(e.helps(able))
	}
	var some []*fleet.Member
	for _, in := range lower {
		if len(some) < need && useful(in) {
			some = append(some, in)
		}
	}
	return some
}

// instancesFor returns how many instances of the largest of these offerings the group's jobs need.
func instancesFor(g *group, able []drover.Offering) int {
	most, n := 0, g.unreserved()
	for _, o := range able {
		most = max(most, o.Type.Resources.Times(g.Key.Shape.Need, n))
	}
	if most == 0 {
		return 0
	}
	return (n + most - 1) / most
}

// victimsForUserLimit returns as many of the user's own instances as make the user's limits and the budgets admit one
// instance for the group; none if all of them are not enough, or enough are leaving already.
func (e *Engine) victimsForUserLimit(g *group, lower []*fleet.Member) []*fleet.Member {
	owned := func(in *fleet.Member) bool { return in.Owner == g.demand.Owner && !in.Pooled() }
	left, able := market.Limits{e.userLimit(g.demand.Owner)}, slices.Collect(e.rentableFor(g))
	var freed []*budget.Claim
	enough := func() bool {
		return e.affordsOne(g, able, func(o drover.Offering) bool { return left.Passed(o) == nil }, freed)
	}
	end := func(in *fleet.Member) {
		left.Take(-1, in.Offering())
		freed = append(freed, e.ledger.Claim(in.ID))
	}
	for _, in := range e.fleet.Index().Ending {
		if owned(in) {
			end(in)
		}
	}
	own := slices.DeleteFunc(slices.Clone(lower), func(in *fleet.Member) bool { return !owned(in) })
	for i, in := range own {
		if enough() {
			return own[:i]
		}
		end(in)
	}
	if !enough() {
		return nil
	}
	return own
}

// ownLimitAdmits reports whether the limits of the group's user, if any, admit n instances of one of these offerings.
func (e *Engine) ownLimitAdmits(g *group, able []drover.Offering, n int) bool {
	if !e.limitsUsers() {
		return true
	}
	return slices.ContainsFunc(able, func(o drover.Offering) bool {
		left := market.Limits{e.userLimit(g.demand.Owner)}
		left.Take(n-1, o)
		return left.Passed(o) == nil
	})
}

// helps returns a function that reports whether the end of an instance lets the limits admit one of these offerings.
func (e *Engine) helps(able []drover.Offering) func(*fleet.Member) bool {
	admits := e.admitsInstead()
	return func(in *fleet.Member) bool {
		return slices.ContainsFunc(able, func(o drover.Offering) bool { return admits(in, o) })
	}
}

// admitsInstead returns a function that reports whether the end of an instance lets the limits admit an offering.
func (e *Engine) admitsInstead() func(*fleet.Member, drover.Offering) bool {
	left, full := e.limitsLeft(), e.room() == 0
	return func(in *fleet.Member, o drover.Offering) bool {
		return (in.Cloud == o.Cloud || full && e.cloudRoom(o.Cloud) > 0) && (left == nil || left.Clears(e.countsAs(in), o))
	}
}

// rentableFor yields the unblocked offerings that fit the group's jobs.
func (e *Engine) rentableFor(g *group) iter.Seq[drover.Offering] {
	return func(yield func(drover.Offering) bool) {
		for _, o := range e.market.Offerings() {
			if g.Key.Shape.Accepts(o) && e.market.BlockOf(o) == nil && !yield(o) {
				return
			}
		}
	}
}

// victimsForQuota returns one victim whose end lifts a quota block on the group's offerings, unless one is leaving
// already. The next create request then probes the block.
func (e *Engine) victimsForQuota(g *group, lower []*fleet.Member) []*fleet.Member {
	for _, o := range e.market.Offerings() {
		if !g.Key.Shape.Accepts(o) {
			continue
		}
		b := e.market.BlockOf(o)
		if b == nil || b.Over || !b.ForQuota() {
			continue
		}
		helps := func(in *fleet.Member) bool { return in.Created != 0 && b.Covers(e.offeringOf(in)) }
		if e.countLeaving(helps) > 0 {
			return nil
		}
		if at := slices.IndexFunc(lower, helps); at >= 0 {
			return lower[at : at+1]
		}
	}
	return nil
}

// victimsForBudget returns as many victims as make the cheapest fitting offering affordable; none if all of them are
// not enough.
func (e *Engine) victimsForBudget(g *group, lower []*fleet.Member) []*fleet.Member {
	able := slices.Collect(e.rentableFor(g))
	if len(able) == 0 {
		return nil
	}
	cheapest := slices.MinFunc(able, func(a, b drover.Offering) int { return cmp.Compare(a.Price, b.Price) })
	p, freed := e.rental([]drover.Offering{cheapest}, wanted{g, 1}), []*budget.Claim{}
	for i, in := range lower {
		if freed = append(freed, e.ledger.Claim(in.ID)); e.ledger.Refuses(freed, p) == nil {
			return lower[:i+1]
		}
	}
	return nil
}
