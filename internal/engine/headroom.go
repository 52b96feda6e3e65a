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
	windows  []windowHeadroom               // of users and labels
	ceilings map[time.Duration]drover.Money // the fleet's highest affordable hourly price, by horizon
}

// windowHeadroom is an account and how much of it demands of this plan have taken.
type windowHeadroom struct {
	*budget.Account
	taken drover.Money
}

// headroom returns what the budgets have left; nil if no budget is set.
func (e *Engine) headroom(offers []drover.Offering) *headroom {
	if !e.limited() || len(offers) == 0 {
		return nil
	}
	m := &headroom{e: e, ceilings: map[time.Duration]drover.Money{}}
	for _, a := range e.ledger.Accounts() {
		if !a.OfFleet() && a.Limit > 0 {
			m.windows = append(m.windows, windowHeadroom{Account: a})
		}
	}
	m.offers = slices.Clone(offers)
	slices.SortStableFunc(m.offers, func(a, b drover.Offering) int { return cmp.Compare(a.VCPUPrice(), b.VCPUPrice()) })
	return m
}

// affordableDemands returns the demands of a plan and their groups. Groups that no budget can pay for are marked.
// Groups for which the others leave nothing are omitted; the next plan is for them.
func (e *Engine) affordableDemands(groups []*group, offers []drover.Offering) (demands []drover.Demand, of []*group) {
	m := e.headroom(offers)
	demands, of = make([]drover.Demand, 0, len(groups)), make([]*group, 0, len(groups))
	for _, g := range groups {
		d, payable := e.addRunTime(g, drover.Demand{Shape: g.Key.Shape, Count: g.netDemand() - g.awaitingEnds, Together: g.Key.Gang}), true
		if m != nil {
			d, payable = m.limit(g, d)
		}
		if !payable {
			e.markUnmet(g, drover.Unmet{Code: drover.ReasonBlocked})
		} else if d.Count > 0 {
			demands, of = append(demands, d), append(of, g)
		}
	}
	return demands, of
}

// limit cuts a demand to what the budgets allow; payable is false if they allow none of it. A gang stays complete if
// they allow one element.
func (m *headroom) limit(g *group, d drover.Demand) (_ drover.Demand, payable bool) {
	ceiling := m.ceiling(g.horizon())
	limited := slices.ContainsFunc(m.windows, func(p windowHeadroom) bool { return p.Covers(payer(g.Key)) })
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
	if m.affordableCount(g, able[len(able)-1], d.Count) < d.Count {
		dear := sort.Search(len(able), func(i int) bool { return !m.affordsOne(g, able[i]) })
		switch {
		case dear == 0:
			return d, false
		case dear < len(able):
			d.VCPU = m.offers[able[dear-1]].VCPUPrice()
		}
		if g.Key.Gang == 0 {
			d.Count = m.affordableCount(g, able[0], d.Count)
		}
	}
	m.take(g, able[0], d.Count)
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
		if m.e.ledger.Refuses(nil, m.e.renting(o, horizon)) != nil {
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

// perJob returns what one of a group's jobs on an instance of the offering commits of a window.
func (m *headroom) perJob(p *windowHeadroom, g *group, at int) drover.Money {
	if !p.Covers(payer(g.Key)) {
		return 0
	}
	return m.e.ledger.Adds(p.Account, m.e.rental(m.offers[at:at+1], wanted{g, 1}))
}

// affordsOne reports whether the budgets allow one of a group's jobs on the offering, disregarding the other demands.
func (m *headroom) affordsOne(g *group, at int) bool {
	for i := range m.windows {
		p := &m.windows[i]
		if each := m.perJob(p, g, at); each > 0 && m.e.ledger.Exceeds(p.Account, each) {
			return false
		}
	}
	return true
}

// affordableCount returns how many of n jobs of a group the budgets allow on the offering after the other demands.
func (m *headroom) affordableCount(g *group, at int, n int) int {
	for i := range m.windows {
		p := &m.windows[i]
		if each := m.perJob(p, g, at); each > 0 && m.e.ledger.Exceeds(p.Account, p.taken+each*drover.Money(n)) {
			n = min(n, m.e.ledger.Allows(p.Account, each, p.taken))
		}
	}
	return n
}

// take deducts n of a group's jobs from the windows.
func (m *headroom) take(g *group, at int, n int) {
	for i := range m.windows {
		m.windows[i].taken += m.perJob(&m.windows[i], g, at) * drover.Money(n)
	}
}
