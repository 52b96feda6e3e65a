package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// A gang that needs several new instances would wait forever at a limit if others could rent whenever one instance goes.
// So what the limits admit is saved for the first gang that needs more than that, as soon as enough instances exist
// whose jobs all rank below it. Those become empty for it (see holdUnusable), and groups that rank below it rent only
// what it leaves.

// saving is the gang for which what the limits admit is saved, and what it needs.
type saving struct {
	g     *group
	n     int // instances
	able  []drover.Offering
	helps func(*fleet.Member) bool // the instance's end lets the limits admit one of them
}

// fewest returns the unblocked offerings of which the fewest instances run jobs of the group, and how many those are:
// for a gang's n jobs, or one otherwise.
func (e *Engine) fewest(g *group, n int) (able []drover.Offering, instances int) {
	able = slices.Collect(e.rentableFor(g))
	if g.Key.Gang == 0 {
		return able, 1
	}
	holds := func(o drover.Offering) int {
		return e.atOnce(timesOn(o.Type, o.Type.Resources, g.Key.Shape.Need, n))
	}
	most := 0
	for _, o := range able {
		most = max(most, holds(o))
	}
	if most == 0 || n == 0 {
		return nil, 0
	}
	instances = (n + most - 1) / most
	return slices.DeleteFunc(able, func(o drover.Offering) bool { return holds(o)*instances < n }), instances
}

// size sets what the gang needs, and reports whether that is several instances.
func (e *Engine) size(s *saving) bool {
	s.able, s.n = e.fewest(s.g, min(s.g.unreserved(), s.g.Next()))
	return s.n > 1
}

// admitted returns how many of up to n instances of these offerings the limits admit now.
func (e *Engine) admitted(able []drover.Offering, n int) (some int) {
	left, clouds := e.limitsLeft(), map[string]int{}
	for _, o := range able {
		for some < min(n, e.room()) && clouds[o.Cloud] < e.cloudRoom(o.Cloud) && left.Passed(o) == nil {
			left.Take(1, o)
			clouds[o.Cloud]++
			some++
		}
	}
	return some
}

// savingFor returns what a gang needs if it waits for several instances, the limits admit too few, and enough instances
// whose jobs rank below it exist or are leaving; otherwise nil. It sets how many of those instances the gang lacks.
func (e *Engine) savingFor(g *group) *saving {
	g.lacks = 1
	s := &saving{g: g}
	if g.Key.Gang == 0 || !g.Unschedulable || g.Reason.Cause != verdict.Limit || !e.size(s) || !e.ownLimitAdmits(g, s.able, s.n) {
		return nil
	}
	s.helps = e.helps(s.able)
	missing := s.n - e.admitted(s.able, s.n)
	if missing <= 0 {
		return nil
	}
	g.lacks = max(0, missing-e.countLeaving(s.helps))
	var freed []*budget.Claim
	for _, in := range e.fleet.All() {
		if len(freed) >= g.lacks {
			break
		}
		if e.mayEmpty(in, g) && s.helps(in) {
			freed = append(freed, e.ledger.Claim(in.ID))
		}
	}
	if len(freed) < g.lacks || !e.affordsAll(s, freed) {
		return nil
	}
	return s
}

// affordsAll reports whether the budgets allow all instances that the gang needs, of the cheapest offering, once some
// claims are freed.
func (e *Engine) affordsAll(s *saving, freed []*budget.Claim) bool {
	if !e.limited() {
		return true
	}
	cheapest := slices.MinFunc(s.able, func(a, b drover.Offering) int { return cmp.Compare(a.Price, b.Price) })
	each := e.rental([]drover.Offering{cheapest}, wanted{s.g, (s.g.Next() + s.n - 1) / s.n})
	return e.ledger.Refuses(freed, slices.Repeat([]budget.Commitment{each}, s.n)...) == nil
}

// saver returns the first gang for which what the limits admit is saved; nil if there is none.
func (e *Engine) saver() *saving {
	for _, g := range e.groups {
		if s := e.savingFor(g); s != nil {
			return s
		}
	}
	return nil
}

// lookForSaver lets everything be planned for again when another gang, or none, has room saved for it.
func (e *Engine) lookForSaver() (s *saving) {
	saver := int64(0)
	if s = e.saver(); s != nil {
		saver = s.g.First()
	}
	if e.pending.Saver != saver {
		e.pending.Saver, e.pending.Plan = saver, true
	}
	return s
}

// firstServed returns the groups to plan for now, and the gang that room is saved for meanwhile. A gang that waits for
// several instances at a limit is planned for before the groups that rank below it.
func (e *Engine) firstServed(groups []*group, s *saving) ([]*group, *saving) {
	for _, g := range groups {
		if g.Key.Gang == 0 || !g.Unschedulable || g.Reason.Cause != verdict.Limit {
			continue
		}
		if first := (&saving{g: g}); e.size(first) {
			s = first
			break
		}
	}
	if s == nil {
		return groups, nil
	}
	below := slices.DeleteFunc(slices.Clone(groups), func(o *group) bool { return !e.below(o, s) })
	if len(below) == len(groups) {
		return groups, s
	}
	e.allWait(below, e.verdict(drover.ReasonPlanning, planningText))
	return slices.DeleteFunc(groups, func(o *group) bool { return e.below(o, s) }), nil
}

// below reports whether a group ranks below a gang: its priority is lower, or with shares its user has as large
// instances for their weight as the gang's will have.
func (e *Engine) below(o *group, s *saving) bool {
	g, shares := s.g, e.s.Settings.Shares
	if o.Key.Priority != g.Key.Priority || shares.By != drover.ShareByUser || e.life().Sharing != drover.ShareUser || o.demand.Owner == g.demand.Owner {
		return o.Key.Priority < g.Key.Priority
	}
	theirs, own := e.fleet.Owned(o.demand.Owner).CPU, e.fleet.Owned(g.demand.Owner).CPU+s.able[0].Type.Resources.CPU*drover.MilliCPU(s.n)
	return int64(theirs)*int64(shares.Weight(g.Key.User)) >= int64(own)*int64(shares.Weight(o.Key.User))
}

// whySaved explains that what the limits admit is saved for a gang.
func (e *Engine) whySaved(s *saving) Verdict {
	return e.verdict(drover.ReasonLimit, "the limits admit %s now, but job %s goes first: its gang needs %d", countOf(e.admitted(s.able, s.n), "more instance"), s.g.Jobs[0].Name, s.n)
}

// save deducts what is saved for the gang from what the limits of a problem admit.
func (e *Engine) save(p *drover.Problem, s *saving) {
	p.Room = max(0, p.Room-s.n)
	for i := range p.Clouds {
		if slices.ContainsFunc(s.able, func(o drover.Offering) bool { return o.Cloud == p.Clouds[i].Cloud }) {
			p.Clouds[i].Room = max(0, p.Clouds[i].Room-s.n)
		}
	}
	for i, l := range p.Limits {
		at := slices.IndexFunc(s.able, l.Covers)
		if at < 0 {
			continue
		}
		l = l.Less(s.n, s.able[at].Type.Resources.CPU*drover.MilliCPU(s.n))
		if l.Instances != nil {
			l.Instances = new(max(0, *l.Instances))
		}
		if l.CPU != nil {
			l.CPU = new(max(0, *l.CPU))
		}
		p.Limits[i] = l
	}
}
