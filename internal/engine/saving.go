package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/market"
	"drover/internal/engine/verdict"
)

// A gang that needs several new instances would wait forever at a limit if others could rent whenever one instance goes.
// So what the limits admit is saved for the first gang that needs more than that, as soon as enough instances exist
// whose jobs all rank below it. Those become empty for it (see holdUnusable), and groups that rank below it rent only
// what it leaves.

// saving is the gang for which what the limits admit is saved, and what it needs.
type saving struct {
	g    *group
	n    int // instances
	able []drover.Offering
	full allowance // what the limits admit beside as many of them as possible, once those leaving have ended

	useful map[kindOf]bool // known answers of helps
}

// kindOf distinguishes instances that count against different limits.
type kindOf struct {
	cloud string
	OfferingKey
}

// fewest is how many instances n of a gang's jobs need at least, and the unblocked offerings that are large enough for
// so few, as of a revision of the market.
type fewest struct {
	market, n int
	able      []drover.Offering
	instances int
}

// fewest returns how many instances the jobs that the group's next gang lacks need at least, and the unblocked offerings
// that are large enough for so few. Other groups' jobs need one each, of any offering that fits. The caller must not
// change the slice.
func (e *Engine) fewest(g *group) (able []drover.Offering, instances int) {
	if g.Key.Gang == 0 {
		return slices.Collect(e.rentableFor(g)), 1
	}
	n := min(g.unreserved(), g.Next()-e.placesFor(g))
	if known := &g.fewest; known.market == e.market.Revision() && known.n == n && known.instances > 0 {
		return known.able, known.instances
	}
	holds := func(o drover.Offering) int {
		return e.atOnce(timesOn(o.Type, o.Type.Resources, g.Key.Shape.Need, n))
	}
	most := 0
	for o := range e.rentableFor(g) {
		most = max(most, holds(o))
	}
	if most <= 0 {
		return nil, 0
	}
	instances = (n + most - 1) / most
	for o := range e.rentableFor(g) {
		if holds(o)*instances >= n {
			able = append(able, o)
		}
	}
	g.fewest = fewest{e.market.Revision(), n, able, instances}
	return able, instances
}

// spans reports whether the group's next gang lacks several instances.
func (e *Engine) spans(g *group) bool {
	if g.Key.Gang == 0 {
		return false
	}
	_, n := e.fewest(g)
	return n > 1
}

// placesFor returns how many of the group's jobs could start now.
func (e *Engine) placesFor(g *group) (n int) {
	if e.fleet.Census().Hold(&g.demand, 1, g.Jobs[0].Number) == 0 {
		return 0
	}
	for _, in := range e.fleet.All() {
		if in.Open() && in.Holds(&g.demand) && !in.Full() {
			n += in.Free.Times(g.Key.Shape.Need, in.AtOnce(g.Next()))
		}
	}
	return n
}

// atLimit reports whether the group waits at a limit. The gang that room is saved for still does while others are
// planned for.
func (e *Engine) atLimit(g *group) bool {
	saved := g.Reason.Cause == verdict.Planning && e.pending.Saver == g.First()
	return g.Unschedulable && g.unreserved() > 0 && (g.Reason.Cause == verdict.Limit || saved)
}

// allowance is what the limits admit, also once some instances have ended.
type allowance struct {
	e      *Engine
	room   int
	clouds map[string]int
	left   market.Limits
}

func (e *Engine) allowance() allowance {
	a := allowance{e, unlimited, map[string]int{}, e.limitsLeft()}
	if most := e.s.Settings.MaxInstances; most > 0 {
		a.room = most - e.fleet.Len()
	}
	for _, c := range e.enabled() {
		a.clouds[c.Name] = unlimited
		if most := e.limits(c.Name).MaxInstances; most > 0 {
			a.clouds[c.Name] = most - e.fleet.In(c.Name)
		}
	}
	return a
}

// take takes up to n instances of these offerings, and returns how many.
func (a *allowance) take(able []drover.Offering, n int) (some int) {
	for _, o := range able {
		for some < n && a.room > 0 && a.clouds[o.Cloud] > 0 && a.left.Passed(o) == nil {
			a.left.Take(1, o)
			a.room--
			a.clouds[o.Cloud]--
			some++
		}
	}
	return some
}

// end gives back what an instance has.
func (a *allowance) end(in *fleet.Member) {
	a.left.Take(-1, a.e.countsAs(in)...)
	a.room++
	if _, enabled := a.clouds[in.Cloud]; enabled {
		a.clouds[in.Cloud]++
	}
}

// helps reports whether an instance counts against all that prevents taking one of these offerings.
func (a *allowance) helps(in *fleet.Member, able []drover.Offering) bool {
	as := a.e.countsAs(in)
	return slices.ContainsFunc(able, func(o drover.Offering) bool {
		return (in.Cloud == o.Cloud || a.clouds[o.Cloud] > 0) && a.left.Clears(as, o)
	})
}

// onceEnded returns what the limits admit once the leaving instances have ended, beside up to n instances of these
// offerings, and how many of them it admits.
func (e *Engine) onceEnded(able []drover.Offering, n int) (a allowance, some int) {
	a = e.allowance()
	for _, in := range e.fleet.Index().Ending {
		a.end(in)
	}
	some = a.take(able, n)
	return a, some
}

// savingFor returns what a gang needs if it waits for several instances, the limits admit too few, and enough instances
// whose jobs rank below it exist or are leaving; otherwise nil, also if those it can use will have room for it. It sets
// how many of those instances the gang lacks.
func (e *Engine) savingFor(g *group) *saving {
	g.lacks = 1
	if g.Key.Gang == 0 || !e.atLimit(g) || e.fleet.Census().Hold(&g.demand, g.Next(), g.Jobs[0].Number) >= g.Next() {
		return nil
	}
	s := &saving{g: g, useful: map[kindOf]bool{}}
	if s.able, s.n = e.fewest(g); s.n <= 1 || !e.ownLimitAdmits(g, s.able, s.n) {
		return nil
	}
	if now := e.allowance(); now.take(s.able, s.n) == s.n {
		return nil
	}
	s.full, _ = e.onceEnded(s.able, s.n)
	after, some := e.onceEnded(s.able, s.n)
	missing := s.n - some
	g.lacks = missing
	var freed []*fleet.Member
	for _, in := range e.fleet.All() {
		if missing == 0 {
			break
		}
		if s.helps(in) && e.mayEmpty(in, g) {
			freed = append(freed, in)
			after.end(in)
			missing -= after.take(s.able, missing)
			g.lacks = max(g.lacks, len(freed)+missing)
		}
	}
	g.lacks = len(freed)
	keeps := func(in *fleet.Member) bool { return !e.mayEmpty(in, g) } // with shares, it depends on how many it lacks
	if missing > 0 || slices.ContainsFunc(freed, keeps) || !e.affordsAll(s, freed) {
		return nil
	}
	return s
}

// helps reports whether an instance's end, after that of those leaving, lets the limits admit more for the gang.
func (s *saving) helps(in *fleet.Member) bool {
	if len(in.Candidates) > 0 { // it may be any of several kinds
		return s.full.helps(in, s.able)
	}
	kind := kindOf{in.Cloud, keyOf(in)}
	helps, known := s.useful[kind]
	if !known {
		helps = s.full.helps(in, s.able)
		s.useful[kind] = helps
	}
	return helps
}

// affordsAll reports whether the budgets allow all instances that the gang needs, of the cheapest offering, once some
// instances have ended.
func (e *Engine) affordsAll(s *saving, ended []*fleet.Member) bool {
	if !e.limited() {
		return true
	}
	var freed []*budget.Claim
	for _, in := range ended {
		freed = append(freed, e.ledger.Claim(in.ID))
	}
	cheapest := slices.MinFunc(s.able, func(a, b drover.Offering) int { return cmp.Compare(a.Price, b.Price) })
	each := e.rental([]drover.Offering{cheapest}, wanted{s.g, (s.g.Next() + s.n - 1) / s.n})
	return e.ledger.Refuses(freed, slices.Repeat([]budget.Commitment{each}, s.n)...) == nil
}

// saver returns the first gang for which what the limits admit is saved; nil if there is none among the first to wait.
func (e *Engine) saver() *saving {
	examined := 0
	for _, g := range e.groups {
		if g.Key.Gang == 0 || !e.atLimit(g) {
			continue
		}
		if s := e.savingFor(g); s != nil {
			return s
		}
		if examined++; examined == heldOthers {
			break
		}
	}
	return nil
}

// lookForSaver lets everything be planned for again when room is no longer saved for a gang.
func (e *Engine) lookForSaver() (s *saving) {
	saver := int64(0)
	if s = e.saver(); s != nil {
		saver = s.g.First()
	}
	if was := e.pending.Saver; was != saver {
		e.pending.Saver, e.pending.Plan = saver, e.pending.Plan || was != 0
	}
	return s
}

// firstServed returns the groups to plan for now, and the gang that room is saved for meanwhile. A gang that waits for
// several instances at a limit is planned for before the groups that rank below it.
func (e *Engine) firstServed(groups []*group, s *saving) ([]*group, *saving) {
	for _, g := range groups {
		if g.Key.Gang == 0 || !e.atLimit(g) {
			continue
		}
		if able, n := e.fewest(g); n > 1 {
			s = &saving{g: g, n: n, able: able}
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
	now := e.allowance()
	return e.verdict(drover.ReasonLimit, "the limits admit %s now, but job %s goes first: its gang needs %d", countOf(now.take(s.able, s.n), "more instance"), s.g.Jobs[0].Name, s.n)
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
		p.Limits[i] = notNegative(l.Less(s.n, s.able[at].Type.Resources.CPU*drover.MilliCPU(s.n)))
	}
}
