package engine

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"drover"
	"drover/internal/engine/budget"
)

// The solver knows of no budget. But what they have left is reckoned with before it is asked: of users' and labels' jobs it is asked for no more than can be paid where
// that is cheapest, and none on what is too dear for one of them, or too dear for the fleet for as long as that job may take. So no plan has to be cut for want of money,
// by which few jobs would get an instance that was chosen for many, or one that takes long would keep others from what they could pay.

// headroom is what the budgets have left for a plan.
type headroom struct {
	e        *Engine
	offers   []drover.Offering // those whose vCPUs cost least first
	fits     map[drover.Shape][]drover.Offering
	windows  []windowHeadroom               // of users and labels
	ceilings map[time.Duration]drover.Money // of the fleet's, by how long a job may take
}

// windowHeadroom is one account, and what those get of it that were served before.
type windowHeadroom struct {
	*budget.Account
	taken drover.Money
}

// headroom looks at what is left; nil if nothing limits what may be spent.
func (e *Engine) headroom(offers []drover.Offering) *headroom {
	if !e.limited() || len(offers) == 0 {
		return nil
	}
	m := &headroom{e: e, fits: map[drover.Shape][]drover.Offering{}, ceilings: map[time.Duration]drover.Money{}}
	for _, a := range e.ledger.Accounts() {
		if !a.OfFleet() && a.Limit > 0 {
			m.windows = append(m.windows, windowHeadroom{Account: a})
		}
	}
	m.offers = slices.Clone(offers)
	slices.SortStableFunc(m.offers, func(a, b drover.Offering) int { return cmp.Compare(a.VCPUPrice(), b.VCPUPrice()) })
	return m
}

// asked is what a plan is asked for, and for which of the groups. It is without those whom no budget can pay, which are told so, and without those for whom nothing is
// left once others got what they ask for: theirs is the next plan.
func (e *Engine) asked(groups []*group, offers []drover.Offering) (demands []drover.Demand, of []*group) {
	m := e.headroom(offers)
	for _, g := range groups {
		d, payable := e.expects(g, drover.Demand{Shape: g.Key.Shape, Count: g.wants() - g.awaits}), true
		if m != nil {
			d, payable = m.within(g, d)
		}
		if !payable {
			e.unmet(g, drover.Unmet{Code: drover.ReasonBlocked})
		} else if d.Count > 0 {
			demands, of = append(demands, d), append(of, g)
		}
	}
	return demands, of
}

// within is what of a group's demand can be paid, and on what; or that none of it can. A gang is asked for as a whole if one of it can be paid.
func (m *headroom) within(g *group, d drover.Demand) (_ drover.Demand, payable bool) {
	ceiling := m.ceiling(g.horizon())
	limited := slices.ContainsFunc(m.windows, func(p windowHeadroom) bool { return p.Covers(payer(g.Key)) })
	if ceiling == 0 && !limited {
		return d, true
	}
	able := m.able(d.Shape)
	if len(able) == 0 { // whatever can hold it is blocked, which the solver has more to say of
		return d, true
	}
	if d.Dearest = ceiling; ceiling != 0 {
		able = slices.DeleteFunc(slices.Clone(able), func(o drover.Offering) bool { return !d.Affords(o) })
	}
	if len(able) == 0 || !limited {
		return d, len(able) > 0
	}
	return m.ofWindows(g, d, able)
}

// ofWindows is within by what users and labels have left, on the offerings that can hold the group's jobs.
func (m *headroom) ofWindows(g *group, d drover.Demand, able []drover.Offering) (_ drover.Demand, payable bool) {
	if m.count(g, able[len(able)-1], d.Count) < d.Count {
		dear := sort.Search(len(able), func(i int) bool { return !m.pays(g, able[i]) })
		switch {
		case dear == 0:
			return d, false
		case dear < len(able):
			d.VCPU = able[dear-1].VCPUPrice()
		}
		if g.Key.Gang == 0 {
			d.Count = m.count(g, able[0], d.Count)
		}
	}
	m.take(g, able[0], d.Count)
	return d, true
}

// ceiling is the most that an instance may cost an hour on which a job may take so long, for all that the fleet's budgets have left: 0 if that is no less than what is
// offered, and below it if nothing may be rented.
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

// able is the offerings that can hold a shape, in their order.
func (m *headroom) able(s drover.Shape) []drover.Offering {
	able, known := m.fits[s]
	if !known {
		for _, o := range m.offers {
			if s.Accepts(o) {
				able = append(able, o)
			}
		}
		m.fits[s] = able
	}
	return able
}

// each is what one of a group's jobs on an instance of the offering binds of a window.
func (m *headroom) each(p *windowHeadroom, g *group, o drover.Offering) drover.Money {
	if !p.Covers(payer(g.Key)) {
		return 0
	}
	return m.e.ledger.Adds(p.Account, m.e.rental([]drover.Offering{o}, wanted{g, 1}))
}

// pays reports whether there is money for one of a group's jobs on the offering, whoever else gets some of it.
func (m *headroom) pays(g *group, o drover.Offering) bool {
	for i := range m.windows {
		p := &m.windows[i]
		if each := m.each(p, g, o); each > 0 && m.e.ledger.Exceeds(p.Account, each) {
			return false
		}
	}
	return true
}

// count is for how many of n of a group's jobs there is money on the offering.
func (m *headroom) count(g *group, o drover.Offering, n int) int {
	for i := range m.windows {
		p := &m.windows[i]
		if each := m.each(p, g, o); each > 0 && m.e.ledger.Exceeds(p.Account, p.taken+each*drover.Money(n)) {
			n = min(n, m.e.ledger.Allows(p.Account, each, p.taken))
		}
	}
	return n
}

// take notes that so many of a group's jobs get some of what there is.
func (m *headroom) take(g *group, o drover.Offering, n int) {
	for i := range m.windows {
		m.windows[i].taken += m.each(&m.windows[i], g, o) * drover.Money(n)
	}
}
