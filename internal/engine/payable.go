package engine

import (
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/verdict"
)

// The solver is not told of the fleet's budgets: it is given only offerings of which one instance may be paid for the shortest of what waits. What of its plan is
// then paid leaves less, for which the rest is planned anew, until nothing more is rented: so the money that there is goes to what it can pay, and
// large instances that it cannot keep nobody from small ones.

// payable is those of the offerings of which the fleet's budgets allow an instance.
func (e *Engine) payable(all []drover.Offering, demands []*group) []drover.Offering {
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

// planTheRest plans once more for what money was too short for, if some of the plan was rented after the instance that was the last.
func (e *Engine) planTheRest(s *Solving, last int64) {
	if e.s.LastInstance == last {
		return
	}
	for _, key := range s.Groups {
		if g := e.byKey[key]; g != nil && g.Unschedulable && g.wants() > 0 && g.Reason.Cause == verdict.Budget {
			e.replan = true
		}
	}
}

// pricedOut is the cheapest of what may be had and can hold the group's jobs, and the account that refuses it; nil if one of that may be paid, or
// nothing may be had.
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

// whyPricedOut says that an account refuses the cheapest, and what else could hold the group's jobs, but is blocked.
func (e *Engine) whyPricedOut(g *group, refuses *budget.Account, cheapest drover.Offering) Verdict {
	why := e.whyUnpaid(g, refuses)
	if e.whyNeverPaid(g) != nil { // nor can the blocked be paid
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
		why.Text = fmt.Sprintf("%s is the cheapest that is not blocked, at %v an hour, and %s; blocked until then: %s", cheapest.Name(), cheapest.Price, why.Text, countOf(blocked, "offering"))
	}
	return why
}

// leftOut is how many of so many offerings that the solver was not given are blocked, and how many too dear.
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
