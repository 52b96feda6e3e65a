package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// What a budget refuses now it may allow in its next window. What costs more than a whole window may still be paid from
// two, if it starts in one and ends in the next. What takes too much of one window wherever it falls is never allowed:
// it waits until the configuration or the offerings change, and its reason says so. It is not cancelled, since raising
// a budget for a while should not require submitting again.

// asked is the least that a group asks for: one job, or a whole gang; hosted if an existing instance may run it.
type asked struct {
	key    GroupKey
	count  int
	hosted bool
}

// askedBy returns what a group asks for.
func (e *Engine) askedBy(g *group) asked {
	return asked{g.Key, max(1, g.Next()), e.hosted(g)}
}

// whyUnpaid explains why an account refuses what a group asks for, and until when; or that no window can ever pay for
// it.
func (e *Engine) whyUnpaid(g *group, a *budget.Account) Verdict {
	if why := e.whyNeverPaid(g); why != nil {
		return *why
	}
	if e.mayCostNothing(g, a) {
		return e.why(a)
	}
	ask := e.askedBy(g)
	return e.whyNotNow(a, ask, e.minimumCostOf(a, ask))
}

// whyNeverPaid explains that a budget can never pay for the least that a group asks for; nil if all can.
func (e *Engine) whyNeverPaid(g *group) *Verdict {
	if g.Queued == 0 {
		return nil
	}
	ask := e.askedBy(g)
	for _, a := range e.ledger.Present() {
		if why := e.whyNever(a, ask, e.minimumCostOf(a, ask)); why != nil && !e.mayCostNothing(g, a) {
			return why
		}
	}
	return nil
}

// mayCostNothing reports whether an existing instance may ever run the group's jobs at no further cost to an account: any
// instance, if it is the fleet's; otherwise a pool's, which its pool pays for.
func (e *Engine) mayCostNothing(g *group, a *budget.Account) bool {
	if a.OfFleet() {
		return e.hosted(g)
	}
	return slices.ContainsFunc(e.fleet.Census().Kinds, func(k *fleet.Kind) bool { return k.One().Pooled() && k.MayServe(&g.demand) })
}

// whyNever explains that no window of an account, nor two together, can ever pay the minimum cost; nil if they can.
func (e *Engine) whyNever(a *budget.Account, ask asked, t minimumCost) *Verdict {
	if t.least <= a.Limit {
		return nil
	}
	return new(e.whyExpensive(a, ask, t, "can never cover %s"))
}

// whyNotNow explains why an account refuses what it may pay for at another time.
func (e *Engine) whyNotNow(a *budget.Account, ask asked, t minimumCost) Verdict {
	if a.Budget == nil || t.whole <= a.Limit {
		return e.why(a)
	}
	// Retry when so little of the window is left that it can pay for its part, as far as is known now.
	why := e.whyExpensive(a, ask, t, "can cover %s only if the cost is split between two windows")
	pays := time.Duration(drover.Money(t.span).Part(int64(max(0, a.Limit-e.ledger.Sum(a))), int64(t.whole)))
	why.Until = min(a.To, max(a.To.Add(-pays).Add(time.Second), e.s.Now.Add(time.Minute)))
	return why
}

// whyExpensive explains that the minimum cost exceeds an account's window.
func (e *Engine) whyExpensive(a *budget.Account, ask asked, t minimumCost, can string) Verdict {
	what, timeout, boot := "the job", "a shorter timeout", ""
	if ask.count > 1 {
		what = fmt.Sprintf("%d jobs that start together", ask.count)
	}
	if ask.key.Timeout == 0 {
		timeout = "a timeout (without one, an hour is assumed)"
	}
	if !ask.hosted {
		boot = e.overheadText(t.of.Cloud)
	}
	return e.verdict(drover.ReasonBudget, "%s %s (up to %v%s on %s%s); raise the limit, give the job %s, or allow a cheaper offering",
		wordsOf(a), fmt.Sprintf(can, what), t.whole, perWindow(a), t.of.Name(), boot, timeout)
}

// retryAt returns until when the group waits for money, as far as is known; 0 if it does not.
func (g *group) retryAt() drover.Time {
	if g.Queued == 0 || g.Reason.Cause != verdict.Budget {
		return 0
	}
	return g.Reason.Until
}

// minimumCost is what a request commits of an account on the offering where that is least; zero if none fits, or the
// account is not concerned.
type minimumCost struct {
	whole drover.Money    // of a window that begins with it
	span  time.Duration   // its duration in that window
	least drover.Money    // of one window wherever it falls, without any boot: a lower bound of what is committed
	of    drover.Offering // without a name if there is none
}

// minimumCostKey identifies a minimum cost: the request, and the kind of window.
type minimumCostKey struct {
	asked
	budget *Budget
	window budget.Window
}

// minimumCostOf returns the minimum cost of a request on all offerings. It is cached until they change.
func (e *Engine) minimumCostOf(a *budget.Account, ask asked) minimumCost {
	e.dropStaleCosts()
	of := minimumCostKey{ask, a.Budget, a.Window}
	t, known := e.costs.minimum[of]
	if !known {
		if len(e.costs.minimum) >= costsMax {
			clear(e.costs.minimum)
		}
		t = e.minimumCostOn(a, ask, e.market.Offerings())
		e.costs.minimum[of] = t
	}
	return t
}

// minimumCostOn returns the minimum cost of a request on the given offerings.
func (e *Engine) minimumCostOn(a *budget.Account, ask asked, offers []drover.Offering) (least minimumCost) {
	if !a.Covers(payer(ask.key)) {
		return least
	}
	p := budget.Commitment{Loads: []budget.Load{loadOf(ask.key, 1)}}
	whole, part := a.Emptied(e.s.Now), a.Emptied(e.s.Now)
	part.To = min(part.To, e.s.Now.Add(a.Within(budget.Horizon(ask.key.Timeout))))
	boots := e.life().BootTimeout
	if ask.hosted {
		boots = 0
	}
	for _, o := range offers {
		if !ask.key.Shape.Accepts(o) {
			continue
		}
		o.Price = e.leastPrice(o)
		p.Offers, p.Billing, p.Boots = []drover.Offering{o}, e.limits(o.Cloud).Billing, 0
		t := minimumCost{of: o, least: e.totalCommitted(a, ask, o, e.ledger.Adds(part, p)) - rounding*drover.Money(ask.count)}
		p.Boots = boots
		t.whole, t.span = e.totalCommitted(a, ask, o, e.ledger.Adds(whole, p)), min(whole.To.Sub(e.s.Now), boots+p.Longest())
		if least.of.Cloud == "" || t.whole < least.whole {
			least = t
		}
	}
	return least
}

// rounding is how much smaller parts may be than their sum, since sums are rounded down to nano-dollars.
const rounding = 2

// totalCommitted returns what the whole request commits if one job on an instance of the offering commits this much:
// the fleet pays once for all jobs on an instance.
func (e *Engine) totalCommitted(a *budget.Account, ask asked, o drover.Offering, one drover.Money) drover.Money {
	cost := one * drover.Money(ask.count)
	if a.OfFleet() && !e.life().UseOnce {
		cost /= drover.Money(max(1, timesOn(o.Type, o.Type.Resources, ask.key.Shape.Need, ask.count)))
	}
	return cost
}

// leastPrice returns the lowest price that an offering may have: a reservation's, if there is one.
func (e *Engine) leastPrice(o drover.Offering) drover.Money {
	least := o.Price
	for _, r := range e.limits(o.Cloud).Reserved {
		if r.Type == o.Type.Name && o.Market == drover.OnDemand {
			least = min(least, r.Price)
		}
	}
	return least
}

// wordsOf names the account's budget.
func wordsOf(a *budget.Account) string {
	if a.Budget == nil {
		return fmt.Sprintf("the limit of %v on the fleet's total cost", a.Limit)
	}
	return fmt.Sprintf("the %s budget of %s (%v)", a.Window, a.Budget.Whose(), a.Limit)
}

// withWindow names the account's budget, and its window unless that is the current one.
func withWindow(a *budget.Account) string {
	if a.Budget == nil || a.Present {
		return wordsOf(a)
	}
	return fmt.Sprintf("%s in the window that begins at %v", wordsOf(a), a.From)
}

// perWindow returns the length of the account's windows, as a suffix for an amount.
func perWindow(a *budget.Account) string {
	if a.Budget == nil {
		return ""
	}
	return [...]string{" in an hour", " in a day", " in a month"}[a.Window]
}

// unpaidSince returns since when an account refuses what a group asks for: since its configuration, if it can never be
// paid.
func (e *Engine) unpaidSince(g *group, a *budget.Account) drover.Time {
	if e.whyNeverPaid(g) != nil {
		return e.s.Configured
	}
	return e.fullSince(a)
}

// fullSince returns since when the account's committed and spent sum is as high as now.
func (e *Engine) fullSince(a *budget.Account) drover.Time {
	return cmp.Or(e.ledger.Since(a), e.s.Configured)
}
