package budget

import (
	"cmp"
	"slices"

	"drover"
)

// Spending is what finished work has spent of a budget: that of departed instances, or of final attempts.
type Spending struct {
	Scope   string                  `json:"scope"`
	Windows [windows]WindowSpending `json:"spells"`
	Dropped bool                    `json:"dropped,omitempty"` // the budget is no longer configured
}

// WindowSpending is the spending in the current window.
type WindowSpending struct {
	Begin    drover.Time  `json:"begin"`
	Cost     drover.Money `json:"cost"`
	Next     drover.Money `json:"next,omitempty"`   // already spent of the next window: a finished instance may be paid for into it
	Warned   bool         `json:"warned,omitempty"` // exceeding the soft limit was reported
	Passed   bool         `json:"passed,omitempty"` // exceeding the hard limit was reported
	Reported drover.Time  `json:"told,omitempty"`   // time of the last report
}

// NewSpending returns the spending of a new budget at a moment.
func NewSpending(b Budget, now drover.Time) Spending {
	s := Spending{Scope: b.Scope()}
	s.turn(now)
	return s
}

// Since returns when the longest window began.
func (s *Spending) Since() drover.Time { return s.Windows[Monthly].Begin }

// Add counts finished work. cost returns what it cost between two times.
func (s *Spending) Add(cost func(from, to drover.Time) drover.Money) {
	for w := range s.Windows {
		window := &s.Windows[w]
		next := Window(w).end(window.Begin)
		window.Cost += cost(window.Begin, next)
		window.Next += cost(next, Window(w).end(next))
	}
}

// turn starts new windows where old ones have ended, and reports whether any did.
func (s *Spending) turn(now drover.Time) (changed bool) {
	for w := range s.Windows {
		begin, was := Window(w).begin(now), s.Windows[w]
		if was.Begin >= begin {
			continue
		}
		paid := drover.Money(0) // paid before the window began
		if Window(w).end(was.Begin) == begin {
			paid = was.Next
		}
		s.Windows[w], changed = WindowSpending{Begin: begin, Cost: paid}, true
	}
	return changed
}

// spendingOf returns the spending of a scope; nil if it is not counted.
func (l *Ledger) spendingOf(scope string) *Spending {
	at, ok := slices.BinarySearchFunc(l.spending, scope, func(s Spending, scope string) int { return cmp.Compare(s.Scope, scope) })
	if !ok {
		return nil
	}
	return &l.spending[at]
}

// State returns what New takes: what gone instances cost, the spending by scope, and when the first current window
// ends. It shares no memory with the ledger.
func (l *Ledger) State() (spent drover.Money, spending []Spending, turn drover.Time) {
	return l.spent, slices.Clone(l.spending), l.turn
}

// Keep starts counting for budgets that are newly configured, stops for those that are gone, and returns the changes.
// past is what new budgets have spent before they were configured.
func (l *Ledger) Keep(past []Spending) (changed []Spending) {
	var kept []Spending
	for _, b := range l.settings.Budgets {
		s, known := Spending{Scope: b.Scope()}, l.spendingOf(b.Scope())
		if known != nil {
			s = *known
		} else if at := slices.IndexFunc(past, func(p Spending) bool { return p.Scope == s.Scope }); at >= 0 {
			s.Windows = past[at].Windows
		}
		if turned := s.turn(l.now); turned || known == nil { // windows may have ended while no controller ran
			changed = append(changed, s)
		}
		kept = append(kept, s)
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

// nextTurn returns when the first current window ends: days and months end with an hour.
func nextTurn(now drover.Time) drover.Time { return Hourly.end(Hourly.begin(now)) }

// Cost returns what finished work cost between two times.
type Cost func(from, to drover.Time) drover.Money

// SettleInstance counts an instance that is gone, by its total cost and by its cost between two times. Negative costs
// reverse that. It returns what changed.
func (l *Ledger) SettleInstance(whole drover.Money, cost Cost) []Spending {
	l.spent += whole
	l.lookAgain() // its bill may continue until the end of a period
	return l.settle((*Budget).OfFleet, cost)
}

// SettleAttempt counts a final attempt, and returns what changed.
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
		before := s.Windows
		if s.Add(cost); s.Windows != before {
			changed = append(changed, *s)
		}
	}
	return changed
}
