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

// What the fleet costs, and what it has bound itself to spend.

// limited reports whether anything limits what is spent.
func (e *Engine) limited() bool { return e.ledger.Limited() }

// spent is what the fleet has cost up to now.
func (e *Engine) spent() drover.Money {
	sum, _, _ := e.ledger.State()
	for _, in := range e.fleet.All() {
		sum += e.accrued(in)
	}
	return sum
}

// horizon is how long each of the group's jobs is taken to run when money is committed for it.
func (g *group) horizon() time.Duration { return budget.Horizon(g.Key.Timeout) }

// accrued is what the instance has cost up to now.
func (e *Engine) accrued(in *fleet.Member) drover.Money {
	if in.Created == 0 {
		return 0
	}
	return in.Tariff().Cost(in.Created, in.Created, e.billEnd(in))
}

// paidUntil is up to when an instance is paid that ends at a time, as its cloud bills. Of one that is not known to be there its bill may begin
// at any time before, so a whole period may be left of it.
func (e *Engine) paidUntil(in *fleet.Member, ended drover.Time) drover.Time {
	billing := e.limits(in.Cloud).Billing
	if in.Created == 0 {
		return billing.Latest(ended)
	}
	return billing.PaidUntil(in.Created, ended)
}

// beside is what an instance may be paid for beside its work, in words.
func (e *Engine) beside(cloud string) string {
	text := fmt.Sprintf(", including a boot of up to %v", e.life().BootTimeout)
	if period := e.limits(cloud).Billing.Period; period > 0 {
		text += fmt.Sprintf(" and the rest of a billing period of %v", period)
	}
	return text
}

// billEnd is up to when the instance is paid: as its destruction has it, however much later that is seen, else now.
func (e *Engine) billEnd(in *fleet.Member) drover.Time { return cmp.Or(in.Ended, e.s.Now) }

// share is what the attempt costs of its instance's price: by its part of the vCPUs, so that the shares of attempts that run side
// by side never add up to more than the whole.
func (e *Engine) share(a *Attempt) drover.Money {
	in, j := e.fleet.Member(a.Instance), e.job(a.ID.Job.Number)
	if in == nil || j == nil || in.Pooled() {
		return 0
	}
	return e.bill(in).Share(useOf(a, j), a.Started, a.Ended)
}

// bill is what the instance is paid for up to now.
func (e *Engine) bill(in *fleet.Member) billing.Bill {
	return billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: e.billEnd(in), CPU: in.Resources.CPU}
}

// useOf is what an attempt has of its instance.
func useOf(a *Attempt, j *Job) billing.Use {
	return billing.Use{Started: a.Started, Ended: a.Ended, CPU: j.Shape.Need.CPU}
}
