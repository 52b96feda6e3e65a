package budget

import (
	"time"

	"drover"
)

// Passing is that an account has passed a limit that it had not passed before.
type Passing struct {
	Account *Account
	Hard    bool
	Limit   drover.Money
	Spent   drover.Money
}

// Watch looks for limits that are passed, which is told once for each window. Accounts whose hard limit is passed, and whose budget stops what runs then, are
// given each time. It adds up what is spent only where that may pass a limit that was not passed before.
func (l *Ledger) Watch() (passed []Passing, stop []*Account, changed []Spending) {
	if l.over = false; len(l.settings.Budgets) == 0 {
		return nil, nil, nil
	}
	l.refresh()
	l.fillSome()
	for i := range l.accounts {
		a := &l.accounts[i]
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

func (l *Ledger) watch(a *Account) (told []Passing, stop bool) {
	soft := a.Budget.Soft.Of(a.Window)
	least := a.Limit
	if soft > 0 && (least == 0 || soft < least) {
		least = soft
	}
	if l.now < a.look || l.Most(a) <= least {
		return nil, false
	}
	spent := l.Spent(a)
	spell := &l.spendingOf(a.Budget.Scope()).Spells[a.Window]
	if soft > 0 && spent > soft && !spell.Warned {
		spell.Warned, spell.Told = true, l.now
		told = append(told, Passing{a, false, soft, spent})
	}
	a.look = l.passes(spent, soft, a.Limit)
	if a.Limit == 0 || spent <= a.Limit {
		return told, false
	}
	if !spell.Passed {
		spell.Passed, spell.Told = true, l.now
		told = append(told, Passing{a, true, a.Limit, spent})
	}
	if a.Budget.Stop {
		a.look = 0 // whatever begins is stopped as well
	}
	return told, a.Budget.Stop
}

// longestWindow is longer than any window is.
const longestWindow = 32 * 24 * time.Hour

// passes is the earliest time at which one of the limits can be passed that is not yet, as things are now.
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

// Overspent reports whether what is spent passes the limit on the fleet's whole life already, or what is spent and promised to what runs one of
// the fleet's hard budgets, since prices moved or jobs without a timeout took longer than an hour.
func (l *Ledger) Overspent() bool {
	limit := l.settings.Max
	if l.over || limit == 0 {
		return l.over
	}
	l.refresh()
	whole := &l.accounts[0]
	return l.Most(whole) > limit && l.Spent(whole) > limit
}

// Usage is how much of a budget is used in its present window.
type Usage struct {
	Scope   string
	Window  string       // hourly, daily or monthly
	Hard    drover.Money // 0: none
	Soft    drover.Money // 0: none
	Spent   drover.Money
	Pledged drover.Money // beside that, to what runs
	Since   drover.Time  // when that was last changed by what it counts, or a limit found to be passed; 0: not since it was configured
	Until   drover.Time  // when it begins anew
}

// Usages lists what is used of each budget.
func (l *Ledger) Usages() (list []Usage) {
	if len(l.settings.Budgets) == 0 {
		return nil
	}
	l.refresh()
	l.renew()
	for i := range l.accounts {
		if a := &l.accounts[i]; a.Budget != nil && a.Present {
			spent := l.Spent(a)
			list = append(list, Usage{a.Budget.Scope(), a.Window.String(), a.Limit, a.Budget.Soft.Of(a.Window), spent, max(0, a.sum()-spent), l.Since(a), a.To})
		}
	}
	return list
}

// Since is since when as much of an account as now is spent or promised: since the last was begun that it counts, or was found to pass it. It is 0 if
// there is nothing of the kind.
func (l *Ledger) Since(a *Account) (since drover.Time) {
	l.refresh()
	if a.Present && a.Budget != nil {
		since = a.From
		if s := l.spendingOf(a.Budget.Scope()); s != nil {
			since = max(since, s.Spells[a.Window].Told)
		}
	}
	for _, e := range l.entries {
		since = max(since, e.claim.since(a))
	}
	return since
}

// since is when the last was begun that an account counts.
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

// Within is how much of a stretch falls into one of the account's windows at least: all of a window, if it reaches over the whole of it, else half of the
// stretch, if it reaches from one into the next. The shortest month counts.
func (a *Account) Within(stretch time.Duration) time.Duration {
	if a.Budget == nil {
		return stretch
	}
	return min(stretch/2, a.Window.shortest())
}
