package engine

import (
	"cmp"
	"fmt"

	"drover"
	"drover/internal/engine/budget"
)

// watchBudgets tells of limits that are passed, and has what a passed budget asks to be stopped stopped.
func (e *Engine) watchBudgets() {
	passed, stop, changed := e.ledger.Watch()
	for _, p := range passed {
		e.tellPassed(p)
	}
	e.writeSpending(changed)
	for _, a := range stop {
		e.stopFor(a)
	}
}

func (e *Engine) tellPassed(p budget.Passing) {
	kind, follows := "soft", "nothing is stopped"
	switch {
	case p.Hard && p.Account.Budget.Stop:
		kind, follows = "hard", "running jobs are stopped and requeued"
	case p.Hard:
		kind, follows = "hard", "running jobs finish"
	}
	why := e.verdict(drover.ReasonBudget, "the %s %s budget of the %s, %v, is exceeded: %v is spent", kind, p.Account.Window, p.Account.Budget.Scope(), p.Limit, p.Spent)
	why.Until = p.Account.To
	e.note(Note{Level: Warn, Text: fmt.Sprintf("%s; %s; its next window begins at %v", why.Text, follows, p.Account.To), Reason: new(why.Reason())})
}

// stopFor ends the attempts that a passed budget counts. Their jobs wait until it begins anew.
func (e *Engine) stopFor(a *budget.Account) {
	for _, in := range e.fleet.All() {
		for _, t := range in.Load {
			if t.Stop == nil && a.Covers(payer(e.queue.KeyOf(e.job(t.ID.Job.Number)))) {
				e.stopAttempt(t, e.verdict(drover.ReasonPreempted, "the %s budget of the %s, %v, is exceeded", a.Window, a.Budget.Scope(), a.Limit))
			}
		}
	}
}

// BudgetState is how much of a budget is used in its present window.
type BudgetState = budget.Usage

// Budgets lists what is used of each budget.
func (e *Engine) Budgets() []BudgetState {
	list := e.ledger.Usages()
	for i := range list {
		list[i].Since = cmp.Or(list[i].Since, e.s.Configured)
	}
	return list
}
