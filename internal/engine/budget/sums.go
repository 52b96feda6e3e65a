package budget

import "drover"

// sum returns what is spent and committed. The moving part may be from an earlier moment.
func (a *Account) sum() drover.Money {
	if a.settled == nil {
		return a.committed
	}
	return *a.settled + a.committed
}

// Sum returns what is spent and committed in an account now.
func (l *Ledger) Sum(a *Account) drover.Money {
	l.refresh()
	l.renew()
	return a.sum()
}

// Most returns an upper bound of Sum without recomputing.
func (l *Ledger) Most(a *Account) drover.Money {
	if l.at == l.now {
		return a.sum()
	}
	return a.sum() + l.rate.For(l.now.Sub(l.at)) + l.loose
}

// Least returns a lower bound of Sum. As time passes, jobs waiting for a booting instance may take less of a window.
func (l *Ledger) Least(a *Account) drover.Money { return 2*a.sum() - l.Most(a) }

// renew recomputes the moving entries, so that sum is current.
func (l *Ledger) renew() {
	if l.at == l.now {
		return
	}
	l.at = l.now
	for i := 0; i < len(l.moving); {
		e := l.moving[i]
		if l.enter(e); i < len(l.moving) && l.moving[i] == e {
			i++
		}
	}
}

// Exceeds reports whether adding more work would exceed the account's limit.
func (l *Ledger) Exceeds(a *Account, more drover.Money) bool {
	switch {
	case l.Most(a)+more <= a.Limit:
		return false
	case l.Least(a)+more > a.Limit:
		return true
	}
	l.renew()
	return a.sum()+more > a.Limit
}

// Allows returns how many items at a price of each the limit allows, after what the same decision has already taken.
func (l *Ledger) Allows(a *Account, each, taken drover.Money) int {
	left := func(sum drover.Money) int { return int(max(0, a.Limit-sum-taken) / each) }
	if n := left(l.Most(a)); n == left(l.Least(a)) {
		return n
	}
	l.renew()
	return left(a.sum())
}

// Spent returns what is spent in an account so far.
func (l *Ledger) Spent(a *Account) drover.Money {
	if a.settled == nil {
		return 0
	}
	if a.runAt != l.now {
		a.running, a.runAt = 0, l.now
		for _, e := range l.entries {
			a.running += e.claim.spent(a, l.now)
		}
	}
	return *a.settled + a.running
}

// spend adds what an entry has cost, times a sign, to the amounts added up at this time.
func (l *Ledger) spend(e *entry, sign drover.Money) {
	for _, a := range l.accounts {
		if a.runAt == l.now {
			a.running += sign * e.claim.spent(a, l.now)
		}
	}
}

// Accounts returns all accounts. They belong to the ledger, and are valid until the settings change or a window ends.
func (l *Ledger) Accounts() []*Account {
	l.refresh()
	return l.accounts
}

// Present returns the accounts of the current windows with a hard limit, and that of the fleet's whole life.
func (l *Ledger) Present() (all []*Account) {
	l.refresh()
	for _, a := range l.accounts {
		if a.Present && a.Limit > 0 {
			all = append(all, a)
		}
	}
	return all
}
