package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/market"
)

// Of a plan nothing is rented for a part of a gang: what cannot be had as a whole is left out, and others are planned for without it.

// wholes is a plan of which what is for parts of gangs is taken out.
type wholes struct {
	s         *Solving
	purchases []drover.Purchase
	of        map[*group][]int // which of them are for a gang's group
	taken     []portion        // by those that were looked at
	sums      []drover.Money   // by all of these together, of each account
	room      int              // that they leave
	clouds    map[string]int   // how many of them each has
	left      market.Limits    // that they leave of limits within clouds
}

// portion is what one purchase takes.
type portion struct {
	made bool // it is for somebody
	of   drover.Offering
	sums []drover.Money // of each account; nil if it cannot be paid
}

// wholeGangs is a plan's purchases without what would be rented for parts of gangs.
func (e *Engine) wholeGangs(s *Solving, plan drover.Plan) []drover.Purchase {
	if !slices.ContainsFunc(s.Groups, func(k GroupKey) bool { return k.Gang > 0 }) {
		return plan.Purchases
	}
	w := &wholes{s: s, purchases: slices.Clone(plan.Purchases), of: map[*group][]int{}, room: e.room(), clouds: map[string]int{}, left: e.limitsLeft()}
	for i := range w.purchases {
		p := &w.purchases[i]
		p.Loads = slices.Clone(p.Loads)
		for _, l := range p.Loads {
			if g := e.demanded(s, l.Demand); g != nil && g.Key.Gang > 0 {
				w.of[g] = append(w.of[g], i)
			}
		}
	}
	for _, key := range s.Groups {
		if g := e.byKey[key]; g != nil && key.Gang > 0 {
			e.trim(w, g)
		}
	}
	for len(w.taken) < len(w.purchases) {
		if g, why := e.unable(w); g != nil {
			e.drop(w, g, why)
			e.rewind(w, w.of[g][0])
		}
	}
	return w.purchases
}

// trim leaves a gang's group what makes whole gangs together with the places that it has.
func (e *Engine) trim(w *wholes, g *group) {
	served := 0
	e.loadsOf(w, g, func(l *drover.Load) { served += max(0, l.Count) })
	has := g.Standby + g.bound
	left := g.WholeWithin(has+min(served, g.wants())) - has
	if served == 0 {
		return
	}
	if left <= 0 {
		e.drop(w, g, e.verdict(drover.ReasonGang, "not all instances for the gang can be rented"))
		g.PartlyPlanned = served
		return
	}
	e.loadsOf(w, g, func(l *drover.Load) {
		l.Count = min(l.Count, left)
		left -= l.Count
	})
}

// loadsOf goes through what purchases are for a gang's group.
func (e *Engine) loadsOf(w *wholes, g *group, do func(*drover.Load)) {
	last := -1
	for _, i := range w.of[g] {
		if i == last { // it is named once for each of its loads
			continue
		}
		last = i
		for k := range w.purchases[i].Loads {
			if l := &w.purchases[i].Loads[k]; e.demanded(w.s, l.Demand) == g {
				do(l)
			}
		}
	}
}

// drop rents nothing for a gang's group. What that leaves may serve others, which are planned for once more, without it.
func (e *Engine) drop(w *wholes, g *group, why Verdict) {
	e.loadsOf(w, g, func(l *drover.Load) { l.Count = 0 })
	if g.PartlyPlanned = 0; g.Queued == 0 {
		return
	}
	if !g.Unschedulable {
		e.stick([]*group{g}, why)
	}
	g.Deferred, e.without, e.replace = true, true, true
}

// unable looks at the next purchase. If it cannot be made, and a gang's group needs it, it is that group, and why; nil if not.
func (e *Engine) unable(w *wholes) (*group, Verdict) {
	p := w.purchases[len(w.taken)]
	loads := e.stillWanted(w.s, p.Loads)
	if len(loads) == 0 {
		w.taken = append(w.taken, portion{})
		return nil, Verdict{}
	}
	gang := slices.IndexFunc(loads, func(l wanted) bool { return l.g.Key.Gang > 0 })
	o, ok := e.firstOf(w.s, p)
	t := portion{made: true, of: o}
	ok = ok && w.room > 0 && w.clouds[o.Cloud] < e.cloudRoom(o.Cloud) && w.left.Passed(o) == nil
	var dear *budget.Account
	if ok && e.limited() {
		t.sums, dear = e.affords(w, o, loads, e.seatedOf(w, loads))
	}
	w.take(t, 1)
	w.taken = append(w.taken, t)
	switch {
	case gang < 0 || ok && dear == nil:
		return nil, Verdict{}
	case dear != nil:
		return loads[gang].g, e.whyUnpaid(loads[gang].g, dear)
	}
	return loads[gang].g, e.verdict(drover.ReasonGang, "the planned instances are no longer available")
}

// take counts what a purchase takes, or with -1 gives it back.
func (w *wholes) take(t portion, n int) {
	if !t.made {
		return
	}
	w.room -= n
	w.clouds[t.of.Cloud] += n
	w.left.Take(n, t.of)
	for i, sum := range t.sums {
		w.sums[i] += sum * drover.Money(n)
	}
}

// rewind gives back what the purchases from one on take, which are looked at again: one of them is for less than it was.
func (e *Engine) rewind(w *wholes, to int) {
	for i := len(w.taken) - 1; i >= to; i-- {
		w.take(w.taken[i], -1)
	}
	w.taken = w.taken[:min(to, len(w.taken))]
}

// firstOf is the offering that a purchase is of, if it still may be rented.
func (e *Engine) firstOf(s *Solving, p drover.Purchase) (o drover.Offering, ok bool) {
	o, ok = s.first(p)
	return o, ok && e.market.BlockOf(o) == nil && !e.overtaken(o)
}

// seatedOf is what gangs will bind on what is ready, where they have some of their places, if the next purchase is the first for the rest of them.
func (e *Engine) seatedOf(w *wholes, loads []wanted) (all []budget.Commitment) {
	for _, l := range loads {
		if l.g.Key.Gang > 0 && l.g.Standby > 0 && w.of[l.g][0] == len(w.taken) {
			seats := e.seat(l.g, l.g.Standby, orders[0])
			unseat(l.g, seats)
			all = append(all, e.commitmentsOn(l.g, seats)...)
		}
	}
	return all
}

// affords is what a purchase takes of each account, and what is begun elsewhere with it, if all that was taken before and all that it is for may be paid; else
// it is the account that would be overdrawn.
func (e *Engine) affords(w *wholes, o drover.Offering, loads []wanted, with []budget.Commitment) ([]drover.Money, *budget.Account) {
	o = e.withVolume(o, e.volume(o, loads))
	all, accounts := append(with, e.rental([]drover.Offering{o}, loads...)), e.ledger.Accounts()
	sums := make([]drover.Money, len(accounts))
	if w.sums == nil {
		w.sums = make([]drover.Money, len(sums))
	}
	for i := range sums {
		sums[i] = e.ledger.AddsAll(accounts[i], all)
	}
	if a := e.ledger.Worst(func(i int, _ *budget.Account) (more, less drover.Money) { return w.sums[i] + sums[i], 0 }); a != nil {
		return nil, a
	}
	return sums, nil
}
