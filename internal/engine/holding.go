package engine

import (
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// How long an idle instance is kept. Keeping it costs its price until work arrives; booting another then costs that
// one's price for the boot. The last few times that work of its kind had ended decide which is cheaper:
//
//   - Too few such times are known: one instance is kept for as long as a boot takes, and others that become idle
//     meanwhile are destroyed. That costs at most twice the optimum (the ski rental problem's answer).
//   - Keeping instances for some time would have cost at least a quarter less in all than booting others: it is kept
//     for that long and a little more, since no two gaps are equal.
//   - No time would have: it is destroyed.
//
// It is never kept for less than what is paid for anyway, nor longer than idle_timeout.

// holding returns how long an idle instance is kept, and why if that is not the configured time.
func (e *Engine) holding(in *fleet.Member) (hold time.Duration, why string) {
	most := e.life().IdleTimeout
	boot, known := stat(e.s.Stats.Boots, BootKey(in.Cloud, in.Type.Name))
	if !known || in.Price == 0 {
		return most, ""
	}
	another := fmt.Sprintf("a new instance would boot in %v", boot.Mean.Round(time.Second))
	hold, over, seen := e.bestHold(in, boot.Mean)
	switch {
	case seen < gapsLeast && e.anotherKept(in, boot.Mean):
		hold, why = 0, "there is too little data on when new work arrives, and another idle instance is being kept"
	case seen < gapsLeast:
		hold, why = boot.Mean, another
	case hold == 0:
		why = fmt.Sprintf("new work for it arrives too rarely, and %s", another)
	default:
		why = fmt.Sprintf("%d of its last %d idle periods ended within %v, and %s", over, seen, hold.Round(time.Second), another)
		hold += hold/4 + time.Second
	}
	return min(most, max(hold, e.paidFor(in))), why
}

// anotherKept reports whether an instance that became idle earlier, but less than a boot time before, is kept for work
// that this one fits too.
func (e *Engine) anotherKept(in *fleet.Member, boot time.Duration) bool {
	o := in.Offering()
	for i := range e.s.Stats.Gaps {
		p := &e.s.Stats.Gaps[i]
		for _, at := range p.Since {
			if at < in.IdleSince && in.IdleSince.Sub(at) < boot && p.Shape.Accepts(o) {
				return true
			}
		}
	}
	return false
}

// bestHold returns the longest time that is worth keeping an instance for any shape of work that fits, and how many of
// the seen gaps ended within it. The boot it saves is valued at the price of the instance that would be rented, which
// is lower for small work.
func (e *Engine) bestHold(in *fleet.Member, boot time.Duration) (hold time.Duration, over, seen int) {
	o := in.Offering()
	for i := range e.s.Stats.Gaps {
		p := &e.s.Stats.Gaps[i]
		n := p.seen(e.s.Now, boot)
		if n < gapsLeast || !p.Shape.Accepts(o) {
			continue
		}
		saved := boot
		if solo := e.soloPrice(p.Shape); solo > 0 && solo < in.Price {
			saved = time.Duration(drover.Money(boot).Part(int64(solo), int64(in.Price)))
		}
		if h, k := p.best(e.s.Now, saved); seen == 0 || h > hold {
			hold, over, seen = h, k, n
		}
	}
	return hold, over, seen
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
		left -= min(left, e.life().ShutdownTimeout) // so that its cloud is told in time
	}
	return max(left, in.Created.Add(minAge).Sub(in.IdleSince))
}
