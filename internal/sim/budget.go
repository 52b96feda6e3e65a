package sim

import (
	"time"

	"drover"
	"drover/internal/engine"
)

// paid is the bill of an instance that is gone.
type paid struct {
	tariff       drover.Tariff
	created, end drover.Time
}

// withinBudgets checks that what is spent, and promised to what runs, is within every window of the fleet's hard budgets that the promises touch,
// as a decision to rent or to begin leaves it. Prices that move, and what another store named, may pass one without a decision: then nothing
// more may be decided on.
func (w *World) withinBudgets(what string, more *engine.Instance, begun *engine.Attempt) {
	for _, b := range w.controller.settings.Budgets {
		if b.Scope() != "fleet" {
			continue
		}
		bills := w.promised(more, begun)
		for _, window := range []struct {
			limit       drover.Money
			begin, next func(time.Time) time.Time
		}{
			{b.Hard.Hourly, func(t time.Time) time.Time { return t.Truncate(time.Hour) }, func(t time.Time) time.Time { return t.Add(time.Hour) }},
			{b.Hard.Daily, func(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }, func(t time.Time) time.Time { return t.Add(24 * time.Hour) }},
		} {
			last := drover.Time(0)
			for _, p := range bills {
				last = max(last, p.end)
			}
			for from := window.begin(w.controller.decides.Std()); window.limit > 0 && drover.TimeOf(from) < last; from = window.next(from) {
				sum := drover.Money(0)
				for _, p := range bills {
					sum += p.tariff.Cost(p.created, drover.TimeOf(from), min(p.end, drover.TimeOf(window.next(from))))
				}
				if sum > window.limit {
					w.fail("%s would have %v spent and promised from %v on, with a budget of %v", what, sum, from, window.limit)
				}
			}
		}
	}
}

// promised are all bills, of what is gone, and of what is there up to the end of the longest job on it, as one decision leaves them.
func (w *World) promised(more *engine.Instance, begun *engine.Attempt) []paid {
	d, life := w.Disk, w.settings.Lifecycle
	bills := append([]paid{}, d.paid...)
	enter := func(in engine.Instance) {
		p := paid{in.Tariff(), in.Created, in.Ended}
		if p.created == 0 {
			p.created = in.Asked
		}
		if p.end == 0 {
			p.end = w.controller.decides
		}
		for _, o := range in.Candidates {
			p.tariff.Price = max(p.tariff.Price, o.Price)
		}
		for _, a := range d.attempts {
			if a.Instance == in.ID && a.State != drover.AttemptCollecting {
				p.end = max(p.end, a.Started.Add(horizonOf(d.jobs[a.ID.Job.Number].Timeout)))
			}
		}
		if begun != nil && begun.Instance == in.ID {
			p.end = max(p.end, begun.Started.Add(horizonOf(d.jobs[begun.ID.Job.Number].Timeout)))
		}
		for _, b := range in.Bound {
			p.end = max(p.end, in.Asked.Add(life.BootTimeout+horizonOf(b.Group.Timeout)))
		}
		bills = append(bills, p)
	}
	for _, in := range d.instances {
		enter(in)
	}
	if more != nil {
		enter(*more)
	}
	return bills
}

func horizonOf(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return time.Hour
	}
	return timeout
}
