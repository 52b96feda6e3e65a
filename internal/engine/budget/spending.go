package budget

import (
	"cmp"
	"slices"

	"drover"
)

// Spending is what was spent in a budget's name by what is over: by instances that are gone, or attempts that are final.
type Spending struct {
	Scope   string         `json:"scope"`
	Spells  [windows]Spell `json:"spells"`
	Dropped bool           `json:"dropped,omitempty"` // there is no such budget any more
}

// Spell is what was spent in the present window.
type Spell struct {
	Begin  drover.Time  `json:"begin"`
	Cost   drover.Money `json:"cost"`
	Next   drover.Money `json:"next,omitempty"`   // of the window after it, which begins with that: what is over may be paid until then
	Warned bool         `json:"warned,omitempty"` // that the soft limit is passed was told
	Passed bool         `json:"passed,omitempty"` // and of the hard one
	Told   drover.Time  `json:"told,omitempty"`   // when the last of these was
}

// NewSpending is the count of a budget that has spent nothing in the windows of a moment.
func NewSpending(b Budget, now drover.Time) Spending {
	s := Spending{Scope: b.Scope()}
	s.turn(now)
	return s
}

// Since is when the longest of the windows began.
func (s *Spending) Since() drover.Time { return s.Spells[Monthly].Begin }

// Add counts what is over: cost is what it costs in a stretch of time.
func (s *Spending) Add(cost func(from, to drover.Time) drover.Money) {
	for w := range s.Spells {
		spell := &s.Spells[w]
		next := Window(w).end(spell.Begin)
		spell.Cost += cost(spell.Begin, next)
		spell.Next += cost(next, Window(w).end(next))
	}
}

// turn brings the windows up to now, and reports whether that changed any.
func (s *Spending) turn(now drover.Time) (changed bool) {
	for w := range s.Spells {
		begin, was := Window(w).begin(now), s.Spells[w]
		if was.Begin >= begin {
			continue
		}
		paid := drover.Money(0) // before it began
		if Window(w).end(was.Begin) == begin {
			paid = was.Next
		}
		s.Spells[w], changed = Spell{Begin: begin, Cost: paid}, true
	}
	return changed
}

// spendingOf is what was spent in a scope; nil if nobody counts it.
func (l *Ledger) spendingOf(scope string) *Spending {
	at, ok := slices.BinarySearchFunc(l.spending, scope, func(s Spending, scope string) int { return cmp.Compare(s.Scope, scope) })
	if !ok {
		return nil
	}
	return &l.spending[at]
}

// State is what the ledger was made with, as it is now: what was spent by instances that are gone, by scope, and when the first of the windows ends. It
// shares no memory with the ledger.
func (l *Ledger) State() (spent drover.Money, spending []Spending, turn drover.Time) {
	return l.spent, slices.Clone(l.spending), l.turn
}

// Keep begins and ends to count for the budgets that are now configured, and returns what has changed. What was spent before one was is given.
func (l *Ledger) Keep(past []Spending) (changed []Spending) {
	var kept []Spending
	for _, b := range l.settings.Budgets {
		if s := l.spendingOf(b.Scope()); s != nil {
			if s.turn(l.now) { // no controller was there when its windows ended
				changed = append(changed, *s)
			}
			kept = append(kept, *s)
			continue
		}
		s := Spending{Scope: b.Scope()}
		if at := slices.IndexFunc(past, func(p Spending) bool { return p.Scope == s.Scope }); at >= 0 {
			s.Spells = past[at].Spells
		}
		s.turn(l.now)
		kept, changed = append(kept, s), append(changed, s)
	}
	for _, s := range l.spending {
		if !slices.ContainsFunc(kept, func(k Spending) bool { return k.Scope == s.Scope }) {
			changed = append(changed, Spending{Scope: s.Scope, Dropped: true})
		}
	}
	slices.SortFunc(kept, func(a, b Spending) int { return cmp.Compare(a.Scope, b.Scope) })
	l.turn, l.spending, l.open = nextTurn(l.now), kept, false
	return changed
}

// nextTurn is when the first of the windows ends that a moment is in: days and months end with an hour.
func nextTurn(now drover.Time) drover.Time { return Hourly.end(Hourly.begin(now)) }

// Cost is what is over costs in a stretch of time.
type Cost func(from, to drover.Time) drover.Money

// SettleInstance counts what an instance that is gone cost in all, and in a stretch of time; or takes that back, if both are negative. It returns what has
// changed.
func (l *Ledger) SettleInstance(whole drover.Money, cost Cost) []Spending {
	l.spent += whole
	return l.settle((*Budget).OfFleet, cost)
}

// SettleAttempt counts what an attempt cost that is final, and returns what has changed.
func (l *Ledger) SettleAttempt(p Payer, cost Cost) []Spending {
	return l.settle(func(b *Budget) bool { return !b.OfFleet() && b.Covers(p) }, cost)
}

func (l *Ledger) settle(of func(*Budget) bool, cost Cost) (changed []Spending) {
	for i := range l.settings.Budgets {
		b := &l.settings.Budgets[i]
		s := l.spendingOf(b.Scope())
		if s == nil || !of(b) {
			continue
		}
		before := s.Spells
		if s.Add(cost); s.Spells != before {
			changed = append(changed, *s)
		}
	}
	return changed
}
