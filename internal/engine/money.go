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

// What the fleet costs and has committed to spend.

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

// paidUntil returns until when an instance that ends at a given time is paid for, by its cloud's billing. The bill of
// an instance that is not known to exist may begin at any earlier time, so up to a whole period may be left.
func (e *Engine) paidUntil(in *fleet.Member, ended drover.Time) drover.Time {
	billing := e.limits(in.Cloud).Billing
	if in.Created == 0 {
		return billing.Latest(ended)
	}
	return billing.PaidUntil(in.Created, ended)
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
	in, j := e.fleet.Member(a.Instance), e.job(a.ID.Job.Number)
	if in == nil || j == nil || in.Pooled() {
		return 0
	}
	return e.bill(in).Share(useOf(a, j), a.Started, a.Ended)
}

// bill returns the instance's bill so far.
func (e *Engine) bill(in *fleet.Member) billing.Bill {
	return billing.Bill{Tariff: in.Tariff(), Created: in.Created, End: e.billEnd(in), CPU: in.Resources.CPU}
}

// useOf returns an attempt's use of its instance.
func useOf(a *Attempt, j *Job) billing.Use {
	return billing.Use{Started: a.Started, Ended: a.Ended, CPU: j.Shape.Need.CPU}
}
