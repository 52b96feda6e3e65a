package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/budget"
)

// A budget of the fleet restricts what is rented for anyone; a budget of a user or a label, only what is rented for
// their jobs.

// renting returns what renting an instance of an offering commits, with this much time for work.
func (e *Engine) renting(o drover.Offering, work time.Duration) budget.Commitment {
	p := e.rental([]drover.Offering{o})
	p.Boots += work
	return p
}

// dear reports whether the fleet's budgets do not allow an instance of the offering, with this much time for work.
func (e *Engine) dear(o drover.Offering, work time.Duration) bool {
	return e.limited() && e.ledger.Refuses(nil, e.renting(o, work)) != nil
}

// whyOverBudget explains that an instance of the offering, with its boot and an hour of work, would exceed a budget of
// the fleet.
func (e *Engine) whyOverBudget(o drover.Offering) (why Verdict, dear bool) {
	why, a := e.refusingBudget(o)
	if a == nil {
		return why, false
	}
	why.Since = cmp.Or(why.Since, e.fullSince(a))
	return why, true
}

// refusingBudget returns the fleet's budget that an hour of an instance of the offering would exceed, with an
// explanation, which has a Since only if no window can ever pay for it; a is nil if none would be exceeded.
func (e *Engine) refusingBudget(o drover.Offering) (why Verdict, a *budget.Account) {
	if !e.limited() {
		return why, nil
	}
	p := e.renting(e.asPaid(o), time.Hour)
	for _, a := range e.ledger.Present() {
		if least := e.ledger.Adds(a.Emptied(e.s.Now), p); least > a.Limit {
			why = e.verdict(drover.ReasonBudget, "%s cannot cover an hour of work on this offering (up to %v%s%s); raise the limit, or submit shorter jobs",
				wordsOf(a), least, perWindow(a), e.overheadText(o.Cloud))
			why.Since = e.s.Configured
			return why, a
		}
	}
	if a = e.ledger.Refuses(nil, p); a != nil {
		why = e.why(a)
		why.Since = 0
	}
	return why, a
}

// whyNothingIsPaid explains why not even the cheapest of a cloud's offerings is affordable.
func (e *Engine) whyNothingIsPaid(free []drover.Offering) Verdict {
	least := cheapestOf(free)
	why, _ := e.whyOverBudget(least)
	why.Text = fmt.Sprintf("no offering is affordable, not even %s at %v an hour: %s", least.Name(), least.Price, why.Text)
	return why
}

// cheapestOf returns the cheapest of at least one offering.
func cheapestOf(all []drover.Offering) drover.Offering {
	return slices.MinFunc(all, func(a, b drover.Offering) int { return cmp.Compare(a.Price, b.Price) })
}

// exhaustedBudgets returns the budgets of users and labels that cannot pay for any of the offerings now: for their
// waiting jobs or, if none wait, for a job with one vCPU.
func (e *Engine) exhaustedBudgets(offers []drover.Offering) (why []Verdict) {
	if len(offers) == 0 {
		return nil
	}
	for i := range e.s.Settings.Budgets {
		b := &e.s.Settings.Budgets[i]
		if b.OfFleet() {
			continue
		}
		if one, poor := e.whyBudgetExhausted(b, offers); poor {
			why = append(why, one)
		}
	}
	if more := len(why) - maxBlocks; more > 0 {
		others := Verdict{Cause: drover.ReasonOther, Text: fmt.Sprintf("other exhausted budgets of users and labels: %d; run drover explain on one of their jobs", more)}
		why = append(why[:maxBlocks], others)
	}
	return why
}

// whyBudgetExhausted says for how many waiting jobs of a budget's user or label no fitting offering is affordable.
func (e *Engine) whyBudgetExhausted(b *Budget, offers []drover.Offering) (why Verdict, poor bool) {
	fit, unpaid := 0, 0
	for _, g := range e.groups {
		o, ok := cheapestPerCPU(g.Key.Shape, offers)
		n := g.unreserved()
		if n == 0 || !ok || !b.Covers(payer(g.Key)) {
			continue
		}
		fit += n
		if a := e.refusesFor(b, o, g); a != nil {
			if unpaid += n; unpaid == n {
				why = e.whyNotPaidBy(a, g.Key, offers)
			}
		}
	}
	if fit > 0 {
		why.Text = fmt.Sprintf("the budget of %s cannot cover %d of %s: %s", b.Scope(), unpaid, countOf(fit, "waiting job"), why.Text)
		return why, unpaid > 0
	}
	small := &group{Group: Group{Key: GroupKey{User: b.User, Labels: b.Label, Shape: drover.Shape{Need: drover.Resources{CPU: 1000}}}}}
	o, _ := cheapestPerCPU(small.Key.Shape, offers)
	a := e.refusesFor(b, o, small)
	if a == nil {
		return why, false
	}
	why = e.whyNotPaidBy(a, small.Key, offers)
	why.Text = fmt.Sprintf("the budget of %s cannot cover even a job with 1 vCPU: %s", b.Scope(), why.Text)
	return why, true
}

// whyNotPaidBy explains why an account refuses a job on all of the offerings, since when and until when.
func (e *Engine) whyNotPaidBy(a *budget.Account, key GroupKey, offers []drover.Offering) Verdict {
	ask := asked{key, 1, false}
	t := e.minimumCostOn(a, ask, offers)
	why := e.whyNotNow(a, ask, t)
	if never := e.whyNever(a, ask, t); never != nil {
		why = *never
	}
	why.Since = e.fullSince(a)
	return why
}

// cheapestPerCPU returns the fitting offering with the cheapest vCPUs.
func cheapestPerCPU(s drover.Shape, offers []drover.Offering) (best drover.Offering, ok bool) {
	for _, o := range offers {
		if s.Accepts(o) && (!ok || o.VCPUPrice() < best.VCPUPrice()) {
			best, ok = o, true
		}
	}
	return best, ok
}

// refusesFor returns the window of a budget that starting one of the group's jobs on an instance of the offering would
// overdraw; nil if none.
func (e *Engine) refusesFor(b *Budget, o drover.Offering, g *group) *budget.Account {
	return e.ledger.RefusesOf(b, e.rental([]drover.Offering{o}, wanted{g, 1}))
}

// why explains what an account refuses, and until when. What is spent and committed changes with each event: see
// budgetUses.
func (e *Engine) why(a *budget.Account) Verdict {
	if a.Budget == nil {
		return e.verdict(drover.ReasonBudget, "more work would exceed %s; raise the limit", wordsOf(a))
	}
	why := e.verdict(drover.ReasonBudget, "more work would exceed %s; raise the limit, or wait for the next window", withWindow(a))
	why.Until = a.To
	return why
}

// budgetUses tells how much of each budget is used that counts a payer's jobs.
func (e *Engine) budgetUses(p budget.Payer) (all []Verdict) {
	for _, a := range e.ledger.Accounts() {
		if a.Limit == 0 || !a.Covers(p) {
			continue
		}
		sum, spent := e.ledger.Sum(a), e.ledger.Spent(a)
		text := fmt.Sprintf("%s: %v has been spent, %v is committed to running work, and %v is left", withWindow(a), spent, max(0, sum-spent), max(0, a.Limit-sum))
		if a.Present || sum > 0 {
			all = append(all, Verdict{Cause: drover.ReasonBudget, Text: text, Since: e.fullSince(a)})
		}
	}
	return all
}
