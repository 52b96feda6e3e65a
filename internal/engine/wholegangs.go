package engine

import (
	"slices"

	"drover"
)

// Of a plan nothing is rented for a part of a gang: what cannot be had as a whole is left out, and others are planned for without it.

// wholeGangs is a plan's purchases without what would be rented for parts of gangs.
func (e *Engine) wholeGangs(s *Solving, plan drover.Plan) []drover.Purchase {
	if !slices.ContainsFunc(s.Groups, func(k GroupKey) bool { return k.Gang > 0 }) {
		return plan.Purchases
	}
	purchases := slices.Clone(plan.Purchases)
	for i := range purchases {
		purchases[i].Loads = slices.Clone(purchases[i].Loads)
	}
	for _, key := range s.Groups {
		if g := e.byKey[key]; g != nil && key.Gang > 0 {
			e.trim(s, purchases, g)
		}
	}
	for {
		g, why := e.unable(s, purchases)
		if g == nil {
			return purchases
		}
		e.drop(s, purchases, g, why)
	}
}

// trim leaves a gang's group what makes whole gangs together with the places that it has.
func (e *Engine) trim(s *Solving, purchases []drover.Purchase, g *group) {
	served := 0
	for _, p := range purchases {
		served += e.servedBy(s, p, g)
	}
	has := g.standby + g.bound
	left := g.wholeWithin(has+min(served, g.wants())) - has
	if served == 0 {
		return
	}
	if left <= 0 {
		e.drop(s, purchases, g, e.reason(drover.ReasonGang, "not all that begin together can be rented"))
		g.served = served
		return
	}
	for _, p := range purchases {
		for i, l := range p.Loads {
			if e.demanded(s, l.Demand) == g {
				p.Loads[i].Count = min(l.Count, left)
				left -= p.Loads[i].Count
			}
		}
	}
}

func (e *Engine) servedBy(s *Solving, p drover.Purchase, g *group) (n int) {
	for _, l := range p.Loads {
		if e.demanded(s, l.Demand) == g {
			n += max(0, l.Count)
		}
	}
	return n
}

// drop rents nothing for a gang's group. What that leaves may serve others, which are planned for once more, without it.
func (e *Engine) drop(s *Solving, purchases []drover.Purchase, g *group, why drover.Reason) {
	for _, p := range purchases {
		for i, l := range p.Loads {
			if e.demanded(s, l.Demand) == g {
				p.Loads[i].Count = 0
			}
		}
	}
	if g.served = 0; g.queued == 0 {
		return
	}
	if !g.stuck {
		e.stick([]*group{g}, why)
	}
	g.barred, e.replan, e.replace = true, true, true
}

// unable is a gang's group for which one of the purchases cannot be made, and why; nil if all can.
func (e *Engine) unable(s *Solving, purchases []drover.Purchase) (*group, drover.Reason) {
	room, clouds := e.room(), map[string]int{}
	var taken []pledge
	for _, p := range purchases {
		loads := e.stillWanted(s, p.Loads)
		if len(loads) == 0 {
			continue
		}
		gang := slices.IndexFunc(loads, func(w wanted) bool { return w.g.key.Gang > 0 })
		o, ok := e.firstOf(s, p)
		room--
		clouds[o.Cloud]++
		why := e.reason(drover.ReasonGang, "what was to be rented cannot be had any more")
		ok = ok && room >= 0 && clouds[o.Cloud] <= e.cloudRoom(o.Cloud)
		if ok && e.limited() {
			if a := e.affords(o, loads, &taken); a != nil && gang >= 0 {
				return loads[gang].g, e.whyUnpaid(loads[gang].g, a)
			}
		}
		if !ok && gang >= 0 {
			return loads[gang].g, why
		}
	}
	return nil, drover.Reason{}
}

// firstOf is the offering that a purchase is of, if it still may be rented.
func (e *Engine) firstOf(s *Solving, p drover.Purchase) (o drover.Offering, ok bool) {
	if len(p.Candidates) == 0 || p.Candidates[0] < 0 || p.Candidates[0] >= len(s.Problem.Offerings) {
		return o, false
	}
	o = s.Problem.Offerings[p.Candidates[0]]
	return o, e.blockOf(o) == nil && !e.overtaken(o)
}

// affords adds a purchase to those that were taken, if all that they are for may be paid; else it is the account that would be overdrawn.
func (e *Engine) affords(o drover.Offering, loads []wanted, taken *[]pledge) *account {
	o = e.withVolume(o, e.volume(o, loads))
	all := append(*taken, pledge{offers: []drover.Offering{o}, boots: e.life().BootTimeout, loads: loads})
	if a := e.refusesAll(all); a != nil {
		return a
	}
	*taken = all
	return nil
}

// wholeWithin is how many elements the group's next gangs have, of as many gangs as have no more than n together.
func (g *group) wholeWithin(n int) (sum int) {
	for _, j := range g.jobs {
		next := j.Array.First
		for _, run := range j.waitingRanges(g) {
			for next = max(next, run.First); next <= run.Last; {
				size := len(j.gangmates(next))
				if sum+size > n {
					return sum
				}
				sum += size
				_, last := j.gangOf(next)
				next = last + 1
			}
		}
	}
	return sum
}
