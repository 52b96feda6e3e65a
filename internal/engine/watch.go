package engine

import (
	"fmt"
	"time"

	"drover"
)

// watchBudgets tells of limits that are passed, and has what a passed budget asks to be stopped stopped.
func (e *Engine) watchBudgets() {
	if e.over = false; len(e.s.Settings.Budgets) == 0 {
		return
	}
	b := e.book()
	e.fillSome(b)
	for i := range b.accounts {
		if a := &b.accounts[i]; a.budget != nil && a.present {
			e.over = e.over || a.fleets() && a.limit > 0 && e.exceeds(b, a, 0, a.limit)
			e.watch(b, a)
		}
	}
}

// watch looks whether a limit is passed. It adds up what is spent only when that may pass one that it had not passed before.
func (e *Engine) watch(b *books, a *account) {
	soft := a.budget.Soft.of(a.window)
	least := a.limit
	if soft > 0 && (least == 0 || soft < least) {
		least = soft
	}
	if e.s.Now < a.look || e.most(b, a) <= least {
		return
	}
	spent, s := e.spentOf(b, a), e.spending(a.budget.Scope())
	spell := &s.Spells[a.window]
	if soft > 0 && spent > soft && !spell.Warned {
		spell.Warned, spell.Told = true, e.s.Now
		e.tellPassed(a, soft, "soft", "nothing is stopped")
		e.writeSpending(s)
	}
	a.look = e.passes(spent, soft, a.limit)
	if a.limit == 0 || spent <= a.limit {
		return
	}
	if !spell.Passed {
		spell.Passed, spell.Told = true, e.s.Now
		e.tellPassed(a, a.limit, "hard", map[bool]string{false: "what runs finishes", true: "what runs is stopped, and waits"}[a.budget.Stop])
		e.writeSpending(s)
	}
	if a.budget.Stop {
		a.look = 0 // whatever begins is stopped as well
		e.stopFor(a)
	}
}

// longest is longer than any window is.
const longest = 32 * 24 * time.Hour

// passes is the earliest time at which one of the limits can be passed that is not yet, as things are now.
func (e *Engine) passes(spent drover.Money, limits ...drover.Money) drover.Time {
	rate := drover.Money(0)
	for _, in := range e.instances {
		rate += in.entry.paid
	}
	at := never
	for _, limit := range limits {
		if left := limit - spent; limit > 0 && left >= 0 {
			at = min(at, e.s.Now.Add(min(left.Buys(rate), longest)))
		}
	}
	return at
}

func (e *Engine) tellPassed(a *account, limit drover.Money, kind, follows string) {
	why := e.reason(drover.ReasonBudget, "the %s %s budget of the %s, %v, is passed: %v is spent", kind, a.window, a.budget.Scope(), limit, a.spent)
	why.Until = a.to
	e.note(Note{Level: Warn, Text: fmt.Sprintf("%s; %s until it begins anew at %v", why.Text, follows, a.to), Reason: &why})
}

// stopFor ends the attempts that a passed budget counts. Their jobs wait until it begins anew.
func (e *Engine) stopFor(a *account) {
	for _, in := range e.instances {
		for _, t := range in.load {
			if t.Stop == nil && a.budget.covers(e.keyOf(e.job(t.ID.Job.Number))) {
				e.stopAttempt(t, e.reason(drover.ReasonPreempted, "the %s budget of the %s, %v, is passed", a.window, a.budget.Scope(), a.limit))
			}
		}
	}
}

// BudgetState is how much of a budget is used in its present window.
type BudgetState struct {
	Scope   string
	Window  string       // hourly, daily or monthly
	Hard    drover.Money // 0: none
	Soft    drover.Money // 0: none
	Spent   drover.Money
	Pledged drover.Money // beside that, to what runs
	Since   drover.Time  // when that was last changed by what it counts, or a limit found to be passed
	Until   drover.Time  // when it begins anew
}

// Budgets lists what is used of each budget.
func (e *Engine) Budgets() (list []BudgetState) {
	if len(e.s.Settings.Budgets) == 0 {
		return nil
	}
	b := e.book()
	e.renew(b)
	for i := range b.accounts {
		if a := &b.accounts[i]; a.budget != nil && a.present {
			spent := e.spentOf(b, a)
			list = append(list, BudgetState{a.budget.Scope(), a.window.String(), a.limit, a.budget.Soft.of(a.window), spent, max(0, a.sum()-spent), e.fullSince(a), a.to})
		}
	}
	return list
}
