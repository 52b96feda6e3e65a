package engine

import (
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/forecast"
)

// How long an idle instance is kept. Keeping it costs its price until work arrives; booting another then costs that
// one's price for the boot. The last few gaps between work of its kind decide which is cheaper:
//
//   - Too few gaps are known: one instance is kept for as long as a boot takes, and others that become idle
//     meanwhile are destroyed. That costs at most twice the optimum (the ski rental problem's answer).
//   - Keeping instances for some time would have cost at least a quarter less in all than booting others: it is kept
//     for that long and a little more, since no two gaps are equal.
//   - No such time would have: it is destroyed.
//
// It is never kept for less than what is paid for anyway, nor longer than idle_timeout.

// idleDeadline returns when an idle instance is destroyed; 0 if it is not.
func (e *Engine) idleDeadline(in *fleet.Member) drover.Time {
	if in.State != drover.InstanceIdle || in.Held() || !e.nodeDrained(in) {
		return 0
	}
	hold, _ := e.holding(in)
	at := in.IdleSince.Add(hold)
	_, departs := e.departs(in)
	switch {
	case departs || e.s.Closing || in.Idles() && e.ledger.Overspent(), !e.recordsCurrent() && len(in.Orphans) > 0: // everything waits for these orphans to end
		at = in.IdleSince
	case in.Standby > 0 || in.Expanding() || !e.recordsCurrent() || !in.Idles():
		return 0
	}
	if len(in.Orphans) > 0 {
		at = max(at, in.Known.Add(e.life().TermTimeout+killGrace), e.s.Looking.Add(killGrace))
	}
	if e.s.Draining || e.ledger.Overspent() {
		return at
	}
	if in.Unhealthy != nil && in.Reclaimed == nil {
		at = max(at, in.Unhealthy.Since.Add(e.life().KeepBroken))
	}
	return max(at, in.KeepUntil)
}

func (e *Engine) whyIdle(in *fleet.Member) Verdict {
	why, departs := e.departs(in)
	switch {
	case departs:
		return why
	case e.s.Closing:
		return e.verdict(drover.ReasonClosing, "no more work")
	case e.ledger.Overspent():
		return e.verdict(drover.ReasonBudget, "it is idle, and the budget is used up")
	case !e.recordsCurrent() && len(in.Orphans) > 0:
		return e.verdict(drover.ReasonUnproved, "attempt %v on it is not in the records and has not ended", in.Orphans[0])
	}
	return e.verdict(drover.ReasonIdle, "idle for %v", e.s.Now.Sub(in.IdleSince).Round(time.Second))
}

// holding returns how long an idle instance is kept, and why if that is not the configured time.
func (e *Engine) holding(in *fleet.Member) (hold time.Duration, why string) {
	most := e.life().IdleTimeout
	boot, known := e.forecast.Boot(in.Cloud, in.Type.Name)
	if !known || in.Price == 0 {
		return most, ""
	}
	another := fmt.Sprintf("a new instance would boot in %v", boot.Round(time.Second))
	best := e.bestHold(in, boot)
	switch hold = best.For; {
	case best.Seen == 0 && e.anotherKept(in, boot):
		hold, why = 0, "there is too little data on when new work arrives, and another idle instance is being kept"
	case best.Seen == 0:
		hold, why = boot, another
	case hold == 0:
		why = fmt.Sprintf("new work for it arrives too rarely, and %s", another)
	default:
		why = fmt.Sprintf("%d of its last %d idle periods ended within %v, and %s", best.Within, best.Seen, hold.Round(time.Second), another)
		hold += hold/4 + time.Second
	}
	return min(most, max(hold, e.paidFor(in))), why
}

// userOfGaps returns whose work counts for how long an instance is kept on which the job has run: if instances belong
// to users, the user's alone.
func (e *Engine) userOfGaps(j *Job) string {
	if e.life().Sharing == drover.ShareUser {
		return j.User
	}
	return ""
}

// anotherKept reports whether an instance that became idle earlier, but less than a boot time before, is kept for work
// that this one fits too.
func (e *Engine) anotherKept(in *fleet.Member, boot time.Duration) bool {
	o := in.Offering()
	return e.forecast.EndedBetween(in.User, in.IdleSince.Add(-boot), in.IdleSince, func(s drover.Shape) bool { return s.Accepts(o) })
}

// bestHold returns how long an instance is worth keeping. The boot it saves is valued at the price of the instance that
// would be rented, which is lower for small work.
func (e *Engine) bestHold(in *fleet.Member, boot time.Duration) forecast.Hold {
	o := in.Offering()
	return e.forecast.Hold(in.User, boot, e.s.Now, func(s drover.Shape) time.Duration {
		if !s.Accepts(o) {
			return 0
		}
		if solo := e.soloPrice(s); solo > 0 && solo < in.Price {
			return time.Duration(drover.Money(boot).Part(int64(solo), int64(in.Price)))
		}
		return boot
	})
}

// minAge is the least age of an instance that is destroyed for being idle. Most clouds bill a minute anyway, and an
// instance that boots immediately would otherwise come and go with each job.
const minAge = time.Minute

// paidFor returns for how long after becoming idle an instance is paid for anyway, by its cloud's billing and minAge.
func (e *Engine) paidFor(in *fleet.Member) time.Duration {
	if in.Created == 0 {
		return 0
	}
	left := e.paidUntil(in, in.IdleSince).Sub(in.IdleSince)
	if e.limits(in.Cloud).Billing.Period > 0 {
		left -= min(left, e.life().ShutdownTimeout) // so that the destroy call comes in time
	}
	return max(left, in.Created.Add(minAge).Sub(in.IdleSince))
}
