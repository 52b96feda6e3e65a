package engine

import (
	"cmp"
	"fmt"
	"time"

	"drover"
)

// What the fleet costs, and what it has bound itself to spend.

// overspent reports whether what is spent already passes the limit on money.
func (e *Engine) overspent() bool {
	limit := e.s.Settings.MaxCost
	return limit > 0 && e.spent() > limit
}

// spent is what the fleet has cost up to now.
func (e *Engine) spent() drover.Money {
	sum := e.s.Spent
	for _, in := range e.instances {
		sum += e.accrued(in)
	}
	return sum
}

// committed is what the instance will have cost when the longest job admitted to it has ended, of which those that say no timeout
// count as an hour. Want is the horizon of a job that is yet to be admitted, 0 for none.
func (e *Engine) committed(in *instance, want time.Duration) drover.Money {
	end := e.s.Now.Add(want)
	for _, a := range in.load {
		if a.State != drover.AttemptCollecting {
			end = max(end, a.Started.Add(horizon(e.job(a.ID.Job.Number).Timeout)))
		}
	}
	from, price := in.Created, in.Price
	if in.coming() && len(in.Bound) > 0 {
		end = max(end, in.Asked.Add(e.life().BootTimeout+boundHorizon(in)))
	}
	if from == 0 {
		from = in.Asked
	}
	for _, o := range in.Candidates {
		price = max(price, o.Price)
	}
	return price.For(end.Sub(from))
}

// horizon is how long a job is taken to run when money is committed for it.
func horizon(timeout time.Duration) time.Duration {
	if timeout > 0 {
		return timeout
	}
	return time.Hour
}

// horizon is that of each of the group's jobs.
func (g *group) horizon() time.Duration { return horizon(g.key.Timeout) }

// boundHorizon is the horizon of the longest job bound to the instance.
func boundHorizon(in *instance) (most time.Duration) {
	for _, b := range in.Bound {
		most = max(most, horizon(b.Group.Timeout))
	}
	return most
}

// affords reports whether the fleet stays within its limit on money if in is also committed for want, and extra is spent besides.
// In may be nil.
func (e *Engine) affords(in *instance, want time.Duration, extra drover.Money) bool {
	limit := e.s.Settings.MaxCost
	if limit == 0 {
		return true
	}
	sum := e.s.Spent + extra
	for _, o := range e.instances {
		w := time.Duration(0)
		if o == in {
			w = want
		}
		sum += e.committed(o, w)
	}
	return sum <= limit
}

func (e *Engine) budgetText() string {
	return fmt.Sprintf("more would pass the limit of %v: %v is spent", e.s.Settings.MaxCost, e.spent())
}

// accrued is what the instance has cost up to now.
func (e *Engine) accrued(in *instance) drover.Money {
	if in.Created == 0 {
		return 0
	}
	return in.Price.For(e.billEnd(in).Sub(in.Created))
}

// billEnd is up to when the instance is paid: its destruction, however much later that is seen, else now.
func (e *Engine) billEnd(in *instance) drover.Time { return cmp.Or(in.Ended, e.s.Now) }

// share is what the attempt costs of its instance's price: by its part of the vCPUs, so that the shares of attempts that run side
// by side never add up to more than the whole.
func (e *Engine) share(a *Attempt) drover.Money {
	in, j := e.instance(a.Instance), e.job(a.ID.Job.Number)
	if in == nil || j == nil || in.Resources.CPU <= 0 {
		return 0
	}
	cpu := min(j.Shape.Need.CPU, in.Resources.CPU)
	return in.Price.For(a.Ended.Sub(a.Started)).Part(int64(cpu), int64(in.Resources.CPU))
}
