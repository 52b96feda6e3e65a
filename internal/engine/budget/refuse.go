package budget

import (
	"slices"

	"drover"
)

// Refuses returns the account that the commitments, each for another instance, would overdraw once the freed instances
// are gone: of several, the one whose window ends last; nil if there is none.
func (l *Ledger) Refuses(freed []*Claim, all ...Commitment) *Account {
	return l.Worst(func(_ int, a *Account) (more, less drover.Money) {
		return l.AddsAll(a, all), l.relief(a, freed)
	})
}

// Worst returns the account that a change would overdraw: of several, the one whose window ends last; nil if there is
// none.
func (l *Ledger) Worst(change func(i int, a *Account) (more, less drover.Money)) (worst *Account) {
	l.refresh()
	for i, a := range l.accounts {
		if a.Limit == 0 || worst != nil && a.To <= worst.To {
			continue
		}
		more, less := change(i, a)
		touched := more > 0 || a.Present && a.OfFleet() || a.last && a.OfFleet() && addsAfter(a, i, change) > 0
		if touched && l.Exceeds(a, more-less) {
			worst = a
		}
	}
	return worst
}

// Exhausted reports whether a current budget of the fleet refuses every change, even one that adds nothing to it.
func (l *Ledger) Exhausted() bool {
	l.refresh()
	return slices.ContainsFunc(l.accounts, func(a *Account) bool { return a.Limit > 0 && a.Present && a.OfFleet() && l.Exceeds(a, 0) })
}

// addsAfter returns what a change adds after an account's window. If prices rose and the window is overdrawn, later
// windows may be too: they hold the same commitments.
func addsAfter(a *Account, i int, change func(i int, a *Account) (more, less drover.Money)) drover.Money {
	later := *a
	later.From, later.To = a.To, Never
	more, _ := change(i, &later)
	return more
}

// Overdrawn returns the account that an existing instance overdraws, chosen as Refuses does; nil if there is none.
func (l *Ledger) Overdrawn(id int64) *Account {
	l.refresh()
	e, _ := l.find(id)
	if e == nil {
		return nil
	}
	return l.Worst(func(i int, _ *Account) (more, less drover.Money) { return e.sums[i], e.sums[i] })
}

// RefusesOf is Refuses within one budget.
func (l *Ledger) RefusesOf(b *Budget, c Commitment) (worst *Account) {
	l.refresh()
	for _, a := range l.accounts {
		if a.Budget != b || a.Limit == 0 {
			continue
		}
		if more := l.Adds(a, c); more > 0 && l.Exceeds(a, more) && (worst == nil || a.To > worst.To) {
			worst = a
		}
	}
	return worst
}

// Allotment is what a decision takes, part by part, of the budgets of users and labels.
type Allotment struct {
	l     *Ledger
	taken []drover.Money // of each account
}

// Allot returns an allotment of which nothing is taken. It is valid until the settings change or a window ends.
func (l *Ledger) Allot() *Allotment {
	l.refresh()
	return &Allotment{l, make([]drover.Money, len(l.accounts))}
}

// Limits reports whether any of the budgets limits a payer.
func (t *Allotment) Limits(p Payer) bool {
	return slices.ContainsFunc(t.l.accounts, func(a *Account) bool { return a.limits(p) })
}

// limits reports whether the account limits a payer in particular.
func (a *Account) limits(p Payer) bool { return !a.OfFleet() && a.Limit > 0 && a.Covers(p) }

// Allows returns how many jobs of a load the budgets still allow as part of a commitment, and the account that refuses
// the next one; nil if all are allowed.
func (t *Allotment) Allows(c Commitment, load Load) (n int, refuses *Account) {
	n, load.Count = load.Count, 1
	c.Loads = []Load{load}
	for i, a := range t.l.accounts {
		if !a.limits(load.Payer) {
			continue
		}
		if each := t.l.Adds(a, c); each > 0 && t.l.Exceeds(a, t.taken[i]+each*drover.Money(n)) {
			n, refuses = t.l.Allows(a, each, t.taken[i]), a
		}
	}
	return n, refuses
}

// Take takes what a load adds as part of a commitment.
func (t *Allotment) Take(c Commitment, load Load) {
	c.Loads = []Load{load}
	for i, a := range t.l.accounts {
		if a.limits(load.Payer) {
			t.taken[i] += t.l.Adds(a, c)
		}
	}
}

// AddsAll returns what commitments, each for another instance, add to an account.
func (l *Ledger) AddsAll(a *Account, all []Commitment) (more drover.Money) {
	for _, c := range all {
		more += l.Adds(a, c)
	}
	return more
}

// Adds returns what a commitment adds to an account.
func (l *Ledger) Adds(a *Account, c Commitment) (more drover.Money) {
	ends, offers := l.now.Add(c.Boots+c.Longest()), c.Offers
	if c.On != nil {
		offers = c.On.Offers
	}
	switch {
	case a.OfFleet() && c.On != nil:
		now := c.On.CommittedUntil(l.now)
		return c.On.maxTariff().Cost(c.On.from(), max(a.From, now), min(a.To, max(now, c.On.paidUntil(ends))))
	case a.OfFleet():
		return drover.Tariff{Price: maxPrice(offers)}.Cost(l.now, a.From, min(a.To, c.Billing.Latest(ends)))
	}
	for _, load := range c.Loads {
		if a.Covers(load.Payer) {
			more += a.part(offers, load, l.now, l.now.Add(c.Boots)) * drover.Money(load.Count)
		}
	}
	return more
}

// relief returns what would no longer be committed if the freed instances ended now.
func (l *Ledger) relief(a *Account, freed []*Claim) (less drover.Money) {
	for _, c := range freed {
		if a.OfFleet() {
			less += c.maxTariff().Cost(c.from(), max(a.From, c.paidUntil(l.now)), min(a.To, c.CommittedUntil(l.now)))
		}
	}
	return less
}
