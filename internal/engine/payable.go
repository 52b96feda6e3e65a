package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/verdict"
)

// Instead of the fleet's budgets, the solver gets only offerings of which the budgets allow one instance for the
// shortest waiting job. What is rented of a plan leaves less, and the rest is planned again until nothing more is
// rented. So the money left goes to what it can pay for, and unaffordable large instances do not exclude small ones.

// affordableOfferings returns the offerings of which the fleet's budgets allow an instance.
func (e *Engine) affordableOfferings(all []drover.Offering, demands []*group) []drover.Offering {
	if !e.limited() {
		return all
	}
	shortest := slices.MinFunc(demands, func(a, b *group) int { return cmp.Compare(a.horizon(), b.horizon()) }).horizon()
	return slices.DeleteFunc(slices.Clone(all), func(o drover.Offering) bool { return e.dear(o, shortest) })
}

// planRest requests another plan for groups that a budget limited, if this plan rented any instance after number last.
func (e *Engine) planRest(s *Solving, last int64) {
	if e.s.LastInstance == last {
		return
	}
	for _, g := range s.groups {
		if g != nil && g.Unschedulable && g.netDemand() > 0 && g.Reason.Cause == verdict.Budget {
			e.pending.Plan = true
		}
	}
}

// whyPricedOut explains which account refuses the cheapest unblocked offering that fits the group's jobs, and that other
// fitting ones are blocked; refuses is nil if one of the unblocked offerings is allowed, or there is none.
func (e *Engine) whyPricedOut(g *group) (why Verdict, refuses *budget.Account) {
	if !e.limited() {
		return why, nil
	}
	var cheapest drover.Offering
	const highest = drover.Money(math.MaxInt64)
	cloud, tooDear := "", highest // an account of the fleet refuses this price in this cloud, and higher ones
	perCPU := highest             // another account refuses this price of a vCPU, and higher ones
	refused := func(o *drover.Offering) bool {
		if o.Cloud != cloud {
			cloud, tooDear = o.Cloud, highest
		}
		return o.Price >= cheapest.Price && (o.Price >= tooDear || perCPU < highest && o.VCPUPrice() >= perCPU)
	}
	blocked, until, listed := 0, drover.Time(0), e.asListed()
	all := e.market.Offerings()
	for i := range all {
		if listed && refused(&all[i]) || !g.Key.Shape.Accepts(all[i]) {
			continue
		}
		o := all[i]
		if b := e.market.BlockOf(o); b != nil {
			blocked, until = blocked+1, sooner(until, later(b.Reason.Until, e.s.Now))
			continue
		}
		if o = e.asPaid(o); refused(&o) {
			continue
		}
		a := e.ledger.Refuses(nil, e.rental([]drover.Offering{o}, wanted{g, 1}))
		switch {
		case a == nil:
			return why, nil
		case a.OfFleet():
			tooDear = o.Price
		default:
			perCPU = min(perCPU, o.VCPUPrice())
		}
		if refuses == nil || o.Price < cheapest.Price {
			refuses, cheapest = a, o
		}
	}
	if refuses == nil {
		return why, nil
	}
	why = e.whyUnpaid(g, refuses)
	if blocked > 0 && e.whyNeverPaid(g) == nil { // otherwise the blocked ones are unaffordable too
		why.Until = sooner(why.Until, until)
		why.Text = fmt.Sprintf("%s, at %v an hour, is the cheapest unblocked offering (%d blocked), but %s", cheapest.Name(), cheapest.Price, blocked, why.Text)
	}
	return why, refuses
}

// leftOut splits n offerings that the solver was not given into blocked and over-budget ones.
func (e *Engine) leftOut(n int) (blocked, dear int) {
	if !e.limited() {
		return n, 0
	}
	for _, o := range e.market.Offerings() {
		if e.market.BlockOf(o) != nil {
			blocked++
		}
	}
	return blocked, max(0, n-blocked)
}
