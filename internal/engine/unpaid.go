package engine

import (
	"cmp"
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/verdict"
)

// What a budget refuses now it may allow when it begins anew. What costs more than a whole window of it has may still be paid by two of them, if it begins in
// the one and ends in the next. What takes too much of one window wherever it falls is never allowed: that waits until the configuration changes, or what is
// offered, and is told so. It is not cancelled, since a budget that is raised for a while is no reason to submit again.

// asked is what a group asks for at least: one job, or a gang of so many; on what is there, where there is something that can hold it.
type asked struct {
	key    GroupKey
	count  int
	hosted bool
}

// askedBy is what a group asks for.
func (e *Engine) askedBy(g *group) asked {
	ask := asked{g.Key, 1, e.hosted(g)}
	if g.Key.Gang > 0 && g.Queued > 0 {
		_, members := g.NextGang()
		ask.count = len(members)
	}
	return ask
}

// whyUnpaid says why an account refuses what a group asks for, and until when; or that none of its windows can ever pay that.
func (e *Engine) whyUnpaid(g *group, a *budget.Account) Verdict {
	if why := e.whyNeverPaid(g); why != nil {
		return *why
	}
	ask := e.askedBy(g)
	if a.OfFleet() && ask.hosted { // it may cost the fleet nothing more
		return e.why(a)
	}
	return e.whyNotNow(a, ask, e.minimumCostOf(a, ask))
}

// whyNeverPaid says that no budget can ever pay the least that a group asks for; nil if each can.
func (e *Engine) whyNeverPaid(g *group) *Verdict {
	if g.Queued == 0 {
		return nil
	}
	ask := e.askedBy(g)
	for _, a := range e.ledger.Present() {
		if a.OfFleet() && ask.hosted {
			continue
		}
		if why := e.whyNever(a, ask, e.minimumCostOf(a, ask)); why != nil {
			return why
		}
	}
	return nil
}

// whyNever says that no window of an account's kind, nor two of them together, can ever pay the minimum cost of what is asked for; nil if they can.
func (e *Engine) whyNever(a *budget.Account, ask asked, t minimumCost) *Verdict {
	if t.least <= a.Limit {
		return nil
	}
	return new(e.whyDear(a, ask, t, "can never pay for %s"))
}

// whyNotNow says why an account refuses what is asked for, which it may pay another time.
func (e *Engine) whyNotNow(a *budget.Account, ask asked, t minimumCost) Verdict {
	if a.Budget == nil || t.whole <= a.Limit {
		return e.why(a)
	}
	// It is tried again when so little is left of the window that it can pay for its part, as far as is known now.
	why := e.whyDear(a, ask, t, "can pay for %s only out of two windows")
	pays := time.Duration(drover.Money(t.span).Part(int64(max(0, a.Limit-e.ledger.Sum(a))), int64(t.whole)))
	why.Until = min(a.To, max(a.To.Add(-pays).Add(time.Second), e.s.Now.Add(time.Minute)))
	return why
}

// whyDear says that the minimum cost of what is asked for is more than an account's window has.
func (e *Engine) whyDear(a *budget.Account, ask asked, t minimumCost, can string) Verdict {
	what, timeout, boot := "it", "a shorter timeout", ""
	if ask.count > 1 {
		what = fmt.Sprintf("%d jobs that start together", ask.count)
	}
	if ask.key.Timeout == 0 {
		timeout = "a timeout (no timeout counts as an hour)"
	}
	if !ask.hosted {
		boot = e.beside(t.of.Cloud)
	}
	return e.verdict(drover.ReasonBudget, "%s %s (up to %v%s on %s%s); raise it, give the job %s, or allow a cheaper offering",
		wordsOf(a), fmt.Sprintf(can, what), t.whole, perWindow(a), t.of.Name(), boot, timeout)
}

// retryAt is until when the group waits for money, as far as is known; 0 if it does not.
func (g *group) retryAt() drover.Time {
	if g.Queued == 0 || g.Reason.Cause != verdict.Budget {
		return 0
	}
	return g.Reason.Until
}

// minimumCost is what is bound of an account's money by what is asked for, on the offering on which that is least; nothing if none can hold it, or it is not the
// account's.
type minimumCost struct {
	whole drover.Money    // of a window that begins with it
	span  time.Duration   // as long as it takes of that
	least drover.Money    // of one window, wherever it falls and whatever has booted already: no more than is really bound
	of    drover.Offering // named nothing if there is none
}

// minimumCostKey is for whom a minimum cost is, and of what kind of window.
type minimumCostKey struct {
	asked
	budget *Budget
	window budget.Window
}

// minimumCostOf is the minimum cost of what is asked for on what may be rented. It is remembered until that changes.
func (e *Engine) minimumCostOf(a *budget.Account, ask asked) minimumCost {
	e.dropStaleCosts()
	of := minimumCostKey{ask, a.Budget, a.Window}
	t, known := e.minimumCosts[of]
	if !known {
		if len(e.minimumCosts) >= soloPricesMax {
			clear(e.minimumCosts)
		}
		t = e.minimumCostOn(a, ask, e.market.Offerings())
		e.minimumCosts[of] = t
	}
	return t
}

// minimumCostOn is the minimum cost of what is asked for on some offerings.
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
		t := minimumCost{of: o, least: e.together(a, ask, o, e.ledger.Adds(part, p)) - rounding*drover.Money(ask.count)}
		p.Boots = boots
		t.whole, t.span = e.together(a, ask, o, e.ledger.Adds(whole, p)), min(whole.To.Sub(e.s.Now), boots+p.Longest())
		if least.of.Cloud == "" || t.whole < least.whole {
			least = t
		}
	}
	return least
}

// rounding is what a part of a cost may be less than it is by itself, since sums are cut to nano-dollars.
const rounding = 2

// together is what all that is asked for binds, if one of it on an instance of the offering binds so much: for the fleet the instance is paid once for as many
// as it holds.
func (e *Engine) together(a *budget.Account, ask asked, o drover.Offering, one drover.Money) drover.Money {
	cost := one * drover.Money(ask.count)
	if a.OfFleet() && !e.life().UseOnce {
		cost /= drover.Money(max(1, timesOn(o.Type, o.Type.Resources, ask.key.Shape.Need, ask.count)))
	}
	return cost
}

// leastPrice is what an hour of an offering may come to cost: as reserved, if any of it may be.
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
	return fmt.Sprintf("the %s budget of %s, %v,", a.Window, a.Budget.Whose(), a.Limit)
}

// perWindow is how long one of the account's windows is, in words that follow an amount.
func perWindow(a *budget.Account) string {
	if a.Budget == nil {
		return ""
	}
	return [...]string{" in an hour", " in a day", " in a month"}[a.Window]
}

// unpaidSince is since when an account refuses what a group asks for: what can never be paid, since it is configured so.
func (e *Engine) unpaidSince(g *group, a *budget.Account) drover.Time {
	if e.whyNeverPaid(g) != nil {
		return e.s.Configured
	}
	return e.fullSince(a)
}

// fullSince is since when as much of an account as now is spent or promised.
func (e *Engine) fullSince(a *budget.Account) drover.Time {
	return cmp.Or(e.ledger.Since(a), e.s.Configured)
}
