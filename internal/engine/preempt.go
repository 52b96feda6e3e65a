package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// When no instance may be added for work that waits, others give way to it: those that are idle, since what waits was placed first and cannot
// use them, and those that are only on their way, for work of lower priority. What could serve it anyway does not, nor do more than it
// needs, and never one on which something runs (BEHAVIOUR D18). What is on its way for work of equal priority stays, so that two kinds of
// work do not take the fleet from each other in turns.

// preempt has instances go so that others can be created for groups that are stuck.
func (e *Engine) preempt() {
	if e.halted() || !e.yield || e.s.Closing || e.s.Solving != nil {
		return
	}
	e.yield = false
	victims := e.victims()
	for _, g := range slices.Clone(e.groups) {
		if len(victims) == 0 {
			return
		}
		if g.Unschedulable && g.unbound() > 0 {
			for _, in := range e.wayFor(g, victims) {
				e.stop(in, e.verdict(drover.ReasonGivesWay, "gives way to job %s, of priority %d", g.Jobs[0].Name, g.Key.Priority))
				victims = slices.DeleteFunc(victims, func(o *fleet.Member) bool { return o == in })
			}
		}
	}
}

// victims are the instances that may give way to somebody, those of the lowest priority first and of these the youngest.
func (e *Engine) victims() (able []*fleet.Member) {
	r := e.fleet.Index()
	for _, in := range r.Idle {
		if in.Yields() && in.Connected && in.TakesWork() && !in.Expanding() && in.Standby == 0 && len(in.Orphans) == 0 && e.s.Now >= in.KeepUntil {
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

// wayFor is those of the victims that have to go for a group, by what stops its growth.
func (e *Engine) wayFor(g *group, victims []*fleet.Member) []*fleet.Member {
	lower := slices.DeleteFunc(slices.Clone(victims), func(in *fleet.Member) bool {
		return in.Priority() >= g.Key.Priority || g.Key.Gang > 0 && in.Priority() >= 0 || in.Accepts(&g.demand)
	})
	switch g.Reason.Cause {
	case verdict.Limit:
		return e.wayThroughLimit(g, lower)
	case verdict.Blocked:
		return e.wayThroughQuota(g, lower)
	case verdict.Budget:
		return e.wayThroughBudget(g, lower)
	}
	return nil
}

// leavingFor counts the instances that give way already, and whose end helps as well.
func (e *Engine) leavingFor(helps func(*fleet.Member) bool) (n int) {
	for _, in := range e.fleet.Index().Ending {
		if in.Reason.Cause == verdict.GivesWay && helps(in) {
			n++
		}
	}
	return n
}

// wayThroughLimit is as many as have to go for the group to get the instances it needs, where their going lets some be created.
func (e *Engine) wayThroughLimit(g *group, lower []*fleet.Member) []*fleet.Member {
	able, left := e.rentableFor(g), e.limitsLeft()
	helps := func(in *fleet.Member) bool {
		return slices.ContainsFunc(able, func(o drover.Offering) bool {
			return (in.Cloud == o.Cloud || e.room() == 0 && e.cloudRoom(o.Cloud) > 0) && left.Clears(e.mayBe(in), o)
		})
	}
	most := 0
	for _, o := range able {
		most = max(most, o.Type.Resources.Times(g.Key.Shape.Need, g.unbound()))
	}
	if most == 0 {
		return nil
	}
	if lower = slices.DeleteFunc(lower, func(in *fleet.Member) bool { return !helps(in) }); len(lower) == 0 {
		return nil
	}
	need := (g.unbound()+most-1)/most - e.leavingFor(helps)
	return lower[:min(max(need, 0), len(lower))]
}

// rentableFor is what of the offerings that are not blocked may hold the group's jobs.
func (e *Engine) rentableFor(g *group) (able []drover.Offering) {
	for _, o := range e.market.Offerings() {
		if g.Key.Shape.Accepts(o) && e.market.BlockOf(o) == nil {
			able = append(able, o)
		}
	}
	return able
}

// wayThroughQuota is one instance, if none gives way already, whose end ends a quota block that keeps the group from its offerings: what
// is created then is the probe of it.
func (e *Engine) wayThroughQuota(g *group, lower []*fleet.Member) []*fleet.Member {
	for _, o := range e.market.Offerings() {
		if !g.Key.Shape.Accepts(o) {
			continue
		}
		b := e.market.BlockOf(o)
		if b == nil || b.Over || !b.ForQuota() {
			continue
		}
		helps := func(in *fleet.Member) bool { return in.Created != 0 && b.Covers(e.offeringOf(in)) }
		if e.leavingFor(helps) > 0 {
			return nil
		}
		if at := slices.IndexFunc(lower, helps); at >= 0 {
			return lower[at : at+1]
		}
	}
	return nil
}

// wayThroughBudget is as many as have to go for the cheapest of what can hold the group's jobs to be affordable; none if that is not enough.
func (e *Engine) wayThroughBudget(g *group, lower []*fleet.Member) []*fleet.Member {
	able := e.rentableFor(g)
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
