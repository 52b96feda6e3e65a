package engine

import (
	"fmt"

	"drover"
)

// watchBudgets tells of limits that are passed, and has what a passed budget asks to be stopped stopped.
func (e *Engine) watchBudgets() {
	if e.over = false; len(e.s.Settings.Budgets) == 0 {
		return
	}
	for _, a := range e.book().accounts {
		if a.budget != nil && a.present {
			e.watch(a)
		}
	}
}

func (e *Engine) watch(a account) {
	s := e.spending(a.budget.Scope())
	spell, soft := &s.Spells[a.window], a.budget.Soft.of(a.window)
	if soft > 0 && a.spent > soft && !spell.Warned {
		spell.Warned = true
		e.tellPassed(a, soft, "soft", "nothing is stopped")
		e.writeSpending(s)
	}
	if a.limit == 0 {
		return
	}
	e.over = e.over || a.fleets() && a.sum > a.limit
	if a.spent <= a.limit {
		return
	}
	if !spell.Passed {
		spell.Passed = true
		e.tellPassed(a, a.limit, "hard", map[bool]string{false: "what runs finishes", true: "what runs is stopped, and waits"}[a.budget.Stop])
		e.writeSpending(s)
	}
	if a.budget.Stop {
		e.stopFor(a)
	}
}

func (e *Engine) tellPassed(a account, limit drover.Money, kind, follows string) {
	why := e.reason(drover.ReasonBudget, "the %s %s budget of the %s, %v, is passed: %v is spent", kind, a.window, a.budget.Scope(), limit, a.spent)
	why.Until = a.to
	e.note(Note{Level: Warn, Text: fmt.Sprintf("%s; %s until it begins anew at %v", why.Text, follows, a.to), Reason: &why})
}

// stopFor ends the attempts that a passed budget counts. Their jobs wait until it begins anew.
func (e *Engine) stopFor(a account) {
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
	Until   drover.Time  // when it begins anew
}

// Budgets lists what is used of each budget.
func (e *Engine) Budgets() (list []BudgetState) {
	for _, a := range e.newBooks().accounts {
		if a.budget != nil && a.present {
			list = append(list, BudgetState{
				a.budget.Scope(), a.window.String(), a.limit, a.budget.Soft.of(a.window), a.spent, max(0, a.sum-a.spent), a.to,
			})
		}
	}
	return list
}
