package engine

import (
	"fmt"
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
	shortest := demands[0].horizon()
	for _, g := range demands {
		shortest = min(shortest, g.horizon())
	}
	dear := func(o drover.Offering) bool { return e.ledger.Refuses(nil, e.renting(o, shortest)) != nil }
	if !slices.ContainsFunc(all, dear) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), dear)
}

// planRest requests another plan for groups that a budget limited, if this plan rented any instance after number last.
func (e *Engine) planRest(s *Solving, last int64) {
	if e.s.LastInstance == last {
		return
	}
	for _, g := range s.groups {
		if g != nil && g.Unschedulable && g.netDemand() > 0 && g.Reason.Cause == verdict.Budget {
			e.needsPlan = true
		}
	}
}

// pricedOut returns the cheapest unblocked offering that fits the group's jobs and the account that refuses it; refuses
// is nil if one of these offerings is allowed, or there is none.
func (e *Engine) pricedOut(g *group) (refuses *budget.Account, cheapest drover.Offering) {
	if !e.limited() {
		return nil, cheapest
	}
	for _, o := range e.market.Offerings() {
		if !g.Key.Shape.Accepts(o) || e.market.BlockOf(o) != nil {
			continue
		}
		o = e.asPaid(o)
		a := e.ledger.Refuses(nil, e.rental([]drover.Offering{o}, wanted{g, 1}))
		if a == nil {
			return nil, o
		}
		if refuses == nil || o.Price < cheapest.Price {
			refuses, cheapest = a, o
		}
	}
	return refuses, cheapest
}

// whyPricedOut explains that an account refuses the cheapest offering and that other fitting ones are blocked.
func (e *Engine) whyPricedOut(g *group, refuses *budget.Account, cheapest drover.Offering) Verdict {
	why := e.whyUnpaid(g, refuses)
	if e.whyNeverPaid(g) != nil { // the blocked ones are unaffordable too
		return why
	}
	blocked := 0
	for _, o := range e.market.Offerings() {
		if b := e.market.BlockOf(o); b != nil && g.Key.Shape.Accepts(o) {
			blocked++
			why.Until = sooner(why.Until, later(b.Reason.Until, e.s.Now))
		}
	}
	if blocked > 0 {
		why.Text = fmt.Sprintf("%s, at %v an hour, is the cheapest offering that is not blocked, but %s; %s blocked until then", cheapest.Name(), cheapest.Price, why.Text, countOf(blocked, "offering"))
	}
	return why
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
