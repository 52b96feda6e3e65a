package budget

import (
	"time"

	"drover"
)

// Passing reports that an account has newly exceeded a limit.
type Passing struct {
	Account *Account
	Hard    bool
	Limit   drover.Money
	Spent   drover.Money
}

// Watch finds exceeded limits. passed reports each once per window. stop lists, each time, the accounts over a hard
// limit whose budget stops running jobs. changed is the spending to be stored. Spending is added up only where a limit
// may newly have been exceeded.
func (l *Ledger) Watch() (passed []Passing, stop []*Account, changed []Spending) {
	if l.over = false; len(l.settings.Budgets) == 0 {
		return nil, nil, nil
	}
	l.refresh()
	l.fillSome()
	for _, a := range l.accounts {
		if a.Budget == nil || !a.Present {
			continue
		}
		l.over = l.over || a.OfFleet() && a.Limit > 0 && l.Exceeds(a, 0)
		told, stops := l.watch(a)
		if len(told) > 0 {
			passed, changed = append(passed, told...), append(changed, *l.spendingOf(a.Budget.Scope()))
		}
		if stops {
			stop = append(stop, a)
		}
	}
	return passed, stop, changed
}

// Due reports whether the next Watch adds up the spending of an account.
func (l *Ledger) Due(a *Account) bool { return l.now >= a.look }

func (l *Ledger) watch(a *Account) (told []Passing, stop bool) {
	soft := a.Budget.Soft.Of(a.Window)
	least := a.Limit
	if soft > 0 && (least == 0 || soft < least) {
		least = soft
	}
	if !l.Due(a) || l.Most(a) <= least {
		return nil, false
	}
	spent := l.Spent(a)
	window := &l.spendingOf(a.Budget.Scope()).Windows[a.Window]
	if soft > 0 && spent > soft && !window.Warned {
		window.Warned, window.Reported = true, l.now
		told = append(told, Passing{a, false, soft, spent})
	}
	a.look = l.passes(spent, soft, a.Limit)
	if a.Limit == 0 || spent <= a.Limit {
		return told, false
	}
	if !window.Passed {
		window.Passed, window.Reported = true, l.now
		told = append(told, Passing{a, true, a.Limit, spent})
	}
	if a.Budget.Stop {
		a.look = 0 // whatever starts later is stopped as well
	}
	return told, a.Budget.Stop
}

// longestWindow is longer than any window.
const longestWindow = 32 * 24 * time.Hour

// passes returns the earliest time at which another of the limits can be exceeded.
func (l *Ledger) passes(spent drover.Money, limits ...drover.Money) drover.Time {
	rate := drover.Money(0)
	for _, e := range l.entries {
		rate += e.price
	}
	at := Never
	for _, limit := range limits {
		if left := limit - spent; limit > 0 && left >= 0 {
			at = min(at, l.now.Add(min(left.Buys(rate), longestWindow)))
		}
	}
	return at
}

// Overspent reports whether the fleet's limit is already exceeded: spending exceeds the limit on its whole life, or
// spending and commitments exceed a hard budget, because prices moved or jobs without a timeout ran longer than an
// hour.
func (l *Ledger) Overspent() bool {
	limit := l.settings.Max
	if l.over || limit == 0 {
		return l.over
	}
	l.refresh()
	whole := l.accounts[0]
	return l.Most(whole) > limit && l.Spent(whole) > limit
}

// Usage is how much of a budget is used in its current window.
type Usage struct {
	Scope     string
	Window    string       // hourly, daily or monthly
	Hard      drover.Money // 0: none
	Soft      drover.Money // 0: none
	Spent     drover.Money
	Committed drover.Money // committed to running work, not yet spent
	Since     drover.Time  // the last start of work that it counts, or report of an exceeded limit; 0: none
	Until     drover.Time  // when the next window begins
}

// Usages lists the usage of each budget.
func (l *Ledger) Usages() (list []Usage) {
	if len(l.settings.Budgets) == 0 {
		return nil
	}
	l.refresh()
	l.renew()
	for _, a := range l.accounts {
		if a.Budget != nil && a.Present {
			spent := l.Spent(a)
			list = append(list, Usage{a.Budget.Scope(), a.Window.String(), a.Limit, a.Budget.Soft.Of(a.Window), spent, max(0, a.sum()-spent), l.Since(a), a.To})
		}
	}
	return list
}

// Since returns since when the account is as full as now: the last start of work that it counts, or the last report of
// an exceeded limit; 0 if none.
func (l *Ledger) Since(a *Account) (since drover.Time) {
	l.refresh()
	if a.Present && a.Budget != nil {
		since = a.From
		if s := l.spendingOf(a.Budget.Scope()); s != nil {
			since = max(since, s.Windows[a.Window].Reported)
		}
	}
	for _, e := range l.entries {
		since = max(since, e.claim.since(a))
	}
	return since
}

// since returns the last start of work that the account counts.
func (c *Claim) since(a *Account) (since drover.Time) {
	if a.OfFleet() {
		since = c.Asked
	}
	for _, l := range c.Bound {
		if a.Covers(l.Payer) {
			since = max(since, c.Asked)
		}
	}
	for _, u := range c.Uses {
		if a.Covers(u.Payer) {
			since = max(since, u.Started)
		}
	}
	return since
}

// Within returns the least part of a period that falls into one window, wherever it begins: a whole window if it covers
// one, otherwise half of the period. Months count as 28 days.
func (a *Account) Within(stretch time.Duration) time.Duration {
	if a.Budget == nil {
		return stretch
	}
	return min(stretch/2, a.Window.shortest())
}
