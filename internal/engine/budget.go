package engine

import (
	"cmp"
	"fmt"
	"time"

	"drover"
	"drover/internal/billing"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// The ledger of package budget keeps the fleet's costs. This file tells it about instances and attempts, and writes its
// counts.

// Settings and counts of budgets, as the store and the configuration use them.
type (
	Budget   = budget.Budget
	Amounts  = budget.Amounts
	Spending = budget.Spending
)

// NewSpending returns the count of a budget that has spent nothing in the windows current at now.
func NewSpending(b Budget, now drover.Time) Spending { return budget.NewSpending(b, now) }

// payer returns who pays for the group's jobs.
func payer(key GroupKey) budget.Payer { return budget.Payer{User: key.User, Labels: key.Labels} }

// trackSpending configures the ledger with the settings and all instances.
func (e *Engine) trackSpending() {
	ids := make([]int64, e.fleet.Len())
	for i, in := range e.fleet.All() {
		ids[i] = in.ID
	}
	e.ledger.Configure(budget.Settings{Max: e.s.Settings.MaxCost, Budgets: e.s.Settings.Budgets}, ids)
}

// claimOf returns an instance's cost and what is committed to its jobs; false if the instance is gone.
func (e *Engine) claimOf(id int64) (budget.Claim, bool) {
	in := e.fleet.Member(id)
	if in == nil || in.State == drover.InstanceGone {
		return budget.Claim{}, false
	}
	return e.claim(in), true
}

func (e *Engine) claim(in *fleet.Member) budget.Claim {
	c := budget.Claim{
		Asked: in.LastAsked(), Created: in.Created, Ended: in.Ended, Tariff: in.Tariff(), CPU: in.Resources.CPU,
		Offers: in.Offerings(), Billing: e.limits(in.Cloud).Billing, Boot: e.life().BootTimeout, Stays: in.Stays(),
	}
	for _, a := range in.Load {
		j := e.job(a.ID.Job.Number)
		c.Uses = append(c.Uses, budget.Use{Payer: payerOn(in, payer(e.queue.KeyOf(j))), Started: a.Started, Ended: a.Ended, CPU: j.Shape.Need.CPU, Horizon: budget.Horizon(j.Timeout)})
	}
	for _, b := range in.Reservations {
		c.Bound = append(c.Bound, loadOf(b.Group, b.Count))
	}
	c.Bound = payOn(in, c.Bound)
	return c
}

// loadOf returns what n of a group's jobs ask of a budget.
func loadOf(key GroupKey, n int) budget.Load {
	return budget.Load{Payer: payer(key), CPU: key.Shape.Need.CPU, Horizon: budget.Horizon(key.Timeout), Count: n}
}

func loadsOf(all ...wanted) (loads []budget.Load) {
	for _, w := range all {
		loads = append(loads, loadOf(w.g.Key, w.count))
	}
	return loads
}

// onInstance returns what more jobs on an instance would commit, if they start within boots.
func (e *Engine) onInstance(in *fleet.Member, boots time.Duration, loads ...wanted) budget.Commitment {
	return budget.Commitment{On: e.ledger.Claim(in.ID), Boots: boots, Loads: payOn(in, loadsOf(loads...))}
}

// rental returns what renting an instance, which may be any of these offerings of one cloud, would commit.
func (e *Engine) rental(offers []drover.Offering, loads ...wanted) budget.Commitment {
	return budget.Commitment{Offers: offers, Billing: e.limits(offers[0].Cloud).Billing, Boots: e.life().BootTimeout, Loads: loadsOf(loads...)}
}

// turnWindows starts new budget windows when the current ones have ended, and retries work that waits for money; also
// work whose retry time has come since was.
func (e *Engine) turnWindows(was drover.Time) {
	if len(e.s.Settings.Budgets) == 0 {
		return
	}
	for _, g := range e.groups {
		if at := g.retryAt(); at > was && at <= e.s.Now {
			e.pending.Place, e.pending.Plan = true, true
		}
	}
	changed, ended := e.ledger.Turn()
	if ended {
		e.pending.Place, e.pending.Plan = true, true
	}
	e.writeSpending(changed)
}

func (e *Engine) writeSpending(changed []Spending) {
	for _, s := range changed {
		e.write(Write{Spending: &s})
	}
}

// settleInstance counts the cost of an instance that is gone, and returns it.
func (e *Engine) settleInstance(in *fleet.Member) drover.Money {
	if in.Created == 0 {
		return 0
	}
	cost := e.accrued(in)
	e.writeSpending(e.ledger.SettleInstance(cost, e.bill(in).Cost))
	return cost
}

// unsettleInstance reverses that when the instance turns out to exist.
func (e *Engine) unsettleInstance(in *fleet.Member, cost drover.Money) {
	bill := e.bill(in)
	e.writeSpending(e.ledger.SettleInstance(-cost, func(from, to drover.Time) drover.Money { return -bill.Cost(from, to) }))
}

// settleAttempt counts the cost of a final attempt.
func (e *Engine) settleAttempt(a *Attempt) {
	if len(e.s.Settings.Budgets) == 0 {
		return
	}
	in, j := e.fleet.Member(a.Instance), e.job(a.ID.Job.Number)
	bill, use := e.bill(in), useOf(a, j)
	e.writeSpending(e.ledger.SettleAttempt(payerOn(in, payer(e.queue.KeyOf(j))), func(from, to drover.Time) drover.Money { return bill.Share(use, from, to) }))
}

// allowsOn reports whether the budgets allow the group's next request: one more job on an instance, or a gang on as
// many like it as that takes.
func (e *Engine) allowsOn(in *fleet.Member, g *group) bool {
	if !e.limited() {
		return true
	}
	n := e.askedBy(g).count
	per := max(1, in.Resources.Times(g.Key.Shape.Need, in.AtOnce(n))) // none, if its volume has yet to grow
	p := e.onInstance(in, 0, wanted{g, n})
	return e.ledger.Worst(func(_ int, a *budget.Account) (more, less drover.Money) {
		more = e.ledger.Adds(a, p)
		if a.OfFleet() {
			more *= drover.Money((n + per - 1) / per)
		}
		return more, 0
	}) == nil
}

// withinBudgets returns how many of the jobs in a commitment the budgets of users and labels allow, and which account
// the next one would overdraw; nil if all are allowed.
func (e *Engine) withinBudgets(p budget.Commitment, loads []wanted) (allowed []wanted, worst *budget.Account) {
	left := e.ledger.Allot()
	for i, load := range p.Loads {
		n, refuses := left.Allows(p, load)
		if refuses != nil {
			worst = refuses
		}
		if load.Count = n; n > 0 {
			allowed = append(allowed, wanted{loads[i].g, n})
			left.Take(p, load)
		}
	}
	return allowed, worst
}

// watchBudgets reports limits that were exceeded, and stops what an exceeded budget wants stopped.
func (e *Engine) watchBudgets() {
	passed, stop, changed := e.ledger.Watch()
	for _, p := range passed {
		e.notePassed(p)
	}
	e.writeSpending(changed)
	for _, a := range stop {
		e.stopFor(a)
	}
}

func (e *Engine) notePassed(p budget.Passing) {
	kind, follows := "soft", "nothing is stopped"
	switch {
	case p.Hard && p.Account.Budget.Stop:
		kind, follows = "hard", "running jobs are stopped and requeued"
	case p.Hard:
		kind, follows = "hard", "running jobs finish"
	}
	why := e.verdict(drover.ReasonBudget, "the %s %s budget of %s, %v, is exceeded: %v has been spent", kind, p.Account.Window, p.Account.Budget.Whose(), p.Limit, p.Spent)
	why.Until = p.Account.To
	e.note(Note{Level: Warn, Text: fmt.Sprintf("%s; %s; the next window begins at %v", why.Text, follows, p.Account.To), Reason: new(why.Reason())})
}

// stopFor stops the attempts that an exceeded budget counts. Their jobs wait for its next window.
func (e *Engine) stopFor(a *budget.Account) {
	for _, in := range e.fleet.All() {
		for _, t := range in.Load {
			if t.Stop == nil && a.Covers(payerOn(in, payer(e.queue.KeyOf(e.job(t.ID.Job.Number))))) {
				e.stopAttempt(t, e.verdict(drover.ReasonPreempted, "the %s budget of %s (%v) is exceeded", a.Window, a.Budget.Whose(), a.Limit))
			}
		}
	}
}

// BudgetState is how much of a budget is used in its current window.
type BudgetState = budget.Usage

// Budgets lists the use of each budget.
func (e *Engine) Budgets() []BudgetState {
	list := e.ledger.Usages()
	for i := range list {
		list[i].Since = cmp.Or(list[i].Since, e.s.Configured)
	}
	return list
}

// From here on: what the fleet costs and has committed to spend.

// limited reports whether any budget is set.
func (e *Engine) limited() bool { return e.ledger.Limited() }

// spent returns the fleet's cost so far.
func (e *Engine) spent() drover.Money {
	sum, _, _ := e.ledger.State()
	for _, in := range e.fleet.All() {
		sum += e.accrued(in)
	}
	return sum
}

// horizon returns how long each of the group's jobs is assumed to run when money is committed for it.
func (g *group) horizon() time.Duration { return budget.Horizon(g.Key.Timeout) }

// accrued returns the instance's cost so far.
func (e *Engine) accrued(in *fleet.Member) drover.Money {
	if in.Created == 0 {
		return 0
	}
	return in.Tariff().Cost(in.Created, in.Created, e.billEnd(in))
}

// paidUntil returns until when an instance that ends at a given time is paid for, by its cloud's billing.
func (e *Engine) paidUntil(in *fleet.Member, ended drover.Time) drover.Time {
	return budget.PaidUntil(e.limits(in.Cloud).Billing, in.Created, ended)
}

// overheadText describes what is paid for an instance besides its work.
func (e *Engine) overheadText(cloud string) string {
	text := fmt.Sprintf(", including a boot of up to %v", e.life().BootTimeout)
	if period := e.limits(cloud).Billing.Period; period > 0 {
		text += fmt.Sprintf(" and the rest of a billing period of %v", period)
	}
	return text
}

// billEnd returns the end of the instance's bill: set by its destruction, however late that is noticed, otherwise now.
func (e *Engine) billEnd(in *fleet.Member) drover.Time { return cmp.Or(in.Ended, e.s.Now) }

// share returns the attempt's part of its instance's price, by vCPUs: the shares of attempts that run together never
// exceed the whole.
func (e *Engine) share(a *Attempt) drover.Money {
	return e.bill(e.fleet.Member(a.Instance)).Share(useOf(a, e.job(a.ID.Job.Number)), a.Started, a.Ended)
}

// bill returns the instance's bill so far.
func (e *Engine) bill(in *fleet.Member) billing.Bill {
	return billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: e.billEnd(in), CPU: in.Resources.CPU}
}

// useOf returns an attempt's use of its instance.
func useOf(a *Attempt, j *Job) billing.Use {
	return billing.Use{Started: a.Started, Ended: a.Ended, CPU: j.Shape.Need.CPU}
}
