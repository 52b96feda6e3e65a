package budget

import (
	"math"
	"time"

	"drover"
)

// When an hour, day or month ends, the next one becomes current, with its sums already computed. The new window at the
// far end is a spare: nothing needs it before the next turn, so entries are added to it gradually over half an hour.
// Adding all entries of a large fleet at once would delay one decision in every hour.

const (
	ahead     = 2 // windows after the current one that are looked at
	fillLeast = 8 // entries added by one decision, at least
	fillIn    = 30 * time.Minute
)

// lastInstance is greater than all IDs.
const lastInstance = int64(math.MaxInt64)

// inSight returns how many windows of a kind have an account. Without a hard limit only the current and the next one
// matter.
func (b *Budget) inSight(w Window) int {
	if b.Hard.Of(w) == 0 {
		return 2
	}
	return 1 + ahead + 1
}

// setRole sets an account's role by where its window is now.
func (l *Ledger) setRole(a *Account) {
	begin := a.Window.begin(l.now)
	last := begin
	for range a.Budget.inSight(a.Window) - 1 {
		last = a.Window.end(last)
	}
	a.Present, a.last, a.spare = a.From == begin, a.To == last, a.From == last
	a.settled, a.Limit, a.runAt = nil, 0, Never
	window := &l.spendingOf(a.Budget.Scope()).Windows[a.Window]
	switch {
	case a.Present:
		a.settled, a.look = &window.Cost, 0
	case a.From == a.Window.end(begin):
		a.settled = &window.Next
	}
	if !a.spare {
		a.Limit = a.Budget.Hard.Of(a.Window)
	}
}

// Turn starts new windows where old ones have ended. It returns the spending that changed, and whether any window
// ended.
func (l *Ledger) Turn() (changed []Spending, ended bool) {
	if len(l.settings.Budgets) == 0 || l.now < l.turn {
		return nil, false
	}
	l.turn = nextTurn(l.now)
	for i := range l.spending {
		if s := &l.spending[i]; s.turn(l.now) {
			changed = append(changed, *s)
		}
	}
	l.rollover()
	return changed, true
}

// Ends returns when the first current window ends; 0 without budgets.
func (l *Ledger) Ends() drover.Time {
	if len(l.settings.Budgets) == 0 {
		return 0
	}
	return l.turn
}

// rollover reuses the accounts of ended windows for new windows.
func (l *Ledger) rollover() {
	if !l.open {
		return
	}
	l.fill(len(l.entries)) // first finish the last turn
	l.turned++
	l.filled, l.filledAt = 0, l.now
	lacking := false
	for _, a := range l.accounts {
		if a.Budget == nil {
			continue
		}
		for a.To <= l.now {
			for range a.Budget.inSight(a.Window) {
				a.From, a.To = a.To, a.Window.end(a.To)
			}
			a.committed, a.since = 0, l.turned
		}
		l.setRole(a)
		lacking = lacking || a.since == l.turned && !a.spare
	}
	if lacking { // no decision was made for longer than a window
		l.fill(len(l.entries))
	}
}

// fillSome adds some of the missing entries to the spare accounts.
func (l *Ledger) fillSome() {
	if l.filled == lastInstance || l.filledAt == l.now {
		return
	}
	due := int(int64(len(l.entries)) * int64(min(l.now.Sub(l.filledAt), fillIn)) / int64(fillIn))
	l.filledAt = l.now
	l.fill(max(due, fillLeast))
}

// fill does that for the next n instances.
func (l *Ledger) fill(n int) {
	known, at := l.find(l.filled)
	if known != nil {
		at++
	}
	rest := l.entries[at:]
	for _, e := range rest[:min(n, len(rest))] {
		if l.filled = e.id; e.turn < l.turned {
			l.enter(e)
		}
	}
	if n >= len(rest) {
		l.filled = lastInstance
	}
}
