package engine

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"drover"
	"drover/internal/engine/budget"
)

// The solver does not know about budgets, so their limits are applied before it is asked. For jobs of limited users and
// labels it is asked for no more than their budgets allow at the cheapest price, and nothing is asked for at prices
// above a budget, or above what the fleet's budgets allow for as long as the job may take. So no plan has to be cut for
// lack of money, which would leave few jobs on an instance chosen for many, or let one long job exclude others that are
// affordable.

// headroom is what remains of the budgets for a plan.
type headroom struct {
	e        *Engine
	offers   []drover.Offering              // cheapest vCPUs first
	left     *budget.Allotment              // of users and labels, for the demands of this plan
	ceilings map[time.Duration]drover.Money // the fleet's highest affordable hourly price, by horizon
	refuses  *budget.Account                // which allows nothing of the demand that was limited last, if so
}

// headroom returns what the budgets have left; nil if no budget is set.
func (e *Engine) headroom(offers []drover.Offering) *headroom {
	if !e.limited() || len(offers) == 0 {
		return nil
	}
	m := &headroom{e, slices.Clone(offers), e.ledger.Allot(), map[time.Duration]drover.Money{}, nil}
	slices.SortStableFunc(m.offers, func(a, b drover.Offering) int { return cmp.Compare(a.VCPUPrice(), b.VCPUPrice()) })
	return m
}

// affordableDemands returns the demands of a plan and their groups. Groups that no budget can pay for are marked.
// Groups for which the others leave nothing are omitted; the next plan is for them. If none is left, nothing was taken,
// and amounts that are rounded differently are to blame: a budget allows a job on a larger instance, but not on the one
// with the cheapest vCPUs.
func (e *Engine) affordableDemands(groups []*group, offers []drover.Offering) (demands []drover.Demand, of []*group) {
	m := e.headroom(offers)
	demands, of = make([]drover.Demand, 0, len(groups)), make([]*group, 0, len(groups))
	omitted, refuses := []*group(nil), []*budget.Account(nil)
	for _, g := range groups {
		d, payable := e.addRunTime(g, drover.Demand{Shape: g.Key.Shape, Count: g.netDemand() - g.awaitingEnds, Together: g.Key.Gang}), true
		if m != nil {
			d, payable = m.limit(g, d)
		}
		switch {
		case !payable:
			e.markUnmet(g, drover.Unmet{Code: drover.ReasonBlocked})
		case d.Count > 0:
			demands, of = append(demands, d), append(of, g)
		default:
			omitted, refuses = append(omitted, g), append(refuses, m.refuses)
		}
	}
	if len(demands) == 0 {
		for i, g := range omitted {
			e.markUnschedulable([]*group{g}, e.whyUnpaid(g, refuses[i]))
		}
	}
	return demands, of
}

// limit cuts a demand to what the budgets allow; payable is false if they allow none of it. A gang stays complete if
// they allow one element.
func (m *headroom) limit(g *group, d drover.Demand) (_ drover.Demand, payable bool) {
	ceiling := m.ceiling(g.horizon())
	limited := m.left.Limits(payer(g.Key))
	if ceiling == 0 && !limited {
		return d, true
	}
	able := m.offeringsFor(&d.Shape)
	if len(able) == 0 { // every fitting offering is blocked, which the solver explains better
		return d, true
	}
	if d.Dearest = ceiling; ceiling != 0 {
		able = slices.DeleteFunc(able, func(at int) bool { return !d.Affords(m.offers[at]) })
	}
	if len(able) == 0 || !limited {
		return d, len(able) > 0
	}
	return m.limitByWindows(g, d, able)
}

// limitByWindows cuts a demand to what users and labels have left, given the offerings that fit, cheapest first.
func (m *headroom) limitByWindows(g *group, d drover.Demand, able []int) (_ drover.Demand, payable bool) {
	on := func(at int) budget.Commitment { return m.e.rental(m.offers[at : at+1]) }
	if n, _ := m.left.Allows(on(able[len(able)-1]), loadOf(g.Key, d.Count)); n < d.Count {
		dear := sort.Search(len(able), func(i int) bool { // disregarding the other demands
			_, refuses := m.e.ledger.Allot().Allows(on(able[i]), loadOf(g.Key, 1))
			return refuses != nil
		})
		switch {
		case dear == 0:
			return d, false
		case dear < len(able):
			d.VCPU = m.offers[able[dear-1]].VCPUPrice()
		}
		if g.Key.Gang == 0 {
			d.Count, m.refuses = m.left.Allows(on(able[0]), loadOf(g.Key, d.Count))
		}
	}
	m.left.Take(on(able[0]), loadOf(g.Key, d.Count))
	return d, true
}

// ceiling returns the highest hourly price that the fleet's budgets allow for an instance with a job of this horizon: 0
// if every offering is allowed, negative if none is.
func (m *headroom) ceiling(horizon time.Duration) drover.Money {
	if most, known := m.ceilings[horizon]; known {
		return most
	}
	most, some := drover.Money(-1), false
	for _, o := range m.offers {
		if m.e.dear(o, horizon) {
			some = true
		} else {
			most = max(most, o.Price)
		}
	}
	if !some {
		most = 0
	}
	m.ceilings[horizon] = most
	return most
}

// offeringsFor returns the positions of the offerings that fit a shape, cheapest vCPUs first.
func (m *headroom) offeringsFor(s *drover.Shape) (able []int) {
	for i := range m.offers {
		if s.Accepts(m.offers[i]) {
			able = append(able, i)
		}
	}
	return able
}
