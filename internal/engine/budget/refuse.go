package budget

import "drover"

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
	for i := range l.accounts {
		a := &l.accounts[i]
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
	for i := range l.accounts {
		a := &l.accounts[i]
		if a.Budget != b || a.Limit == 0 {
			continue
		}
		if more := l.Adds(a, c); more > 0 && l.Exceeds(a, more) && (worst == nil || a.To > worst.To) {
			worst = a
		}
	}
	return worst
}

// Within returns how many jobs of each load the budgets of users and labels allow, and the account that refuses the
// next one; nil if all are allowed.
func (l *Ledger) Within(c Commitment) (counts []int, worst *Account) {
	l.refresh()
	taken := make([]drover.Money, len(l.accounts))
	for _, load := range c.Loads {
		n, one := load.Count, c
		for i := range l.accounts {
			a := &l.accounts[i]
			if a.OfFleet() || a.Limit == 0 || !a.Covers(load.Payer) {
				continue
			}
			one.Loads = load.times(1)
			if each := l.Adds(a, one); each > 0 && l.Exceeds(a, taken[i]+each*drover.Money(n)) {
				n, worst = l.Allows(a, each, taken[i]), a
			}
		}
		for i := range l.accounts {
			if a := &l.accounts[i]; !a.OfFleet() && a.Covers(load.Payer) {
				one.Loads = load.times(n)
				taken[i] += l.Adds(a, one)
			}
		}
		counts = append(counts, n)
	}
	return counts, worst
}

// times returns the load with another count.
func (l Load) times(n int) []Load {
	l.Count = n
	return []Load{l}
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
		now := c.On.committedUntil(l.now)
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
			less += c.maxTariff().Cost(c.from(), max(a.From, c.paidUntil(l.now)), min(a.To, c.committedUntil(l.now)))
		}
	}
	return less
}
