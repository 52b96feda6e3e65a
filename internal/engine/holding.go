package engine

import (
	"fmt"
	"time"
)

// How long an idle instance is kept. To keep it costs its price for as long as nothing comes; to boot another when something does costs the
// same price for as long as that boots. So the prices cancel, and two times are left to compare:
//
//   - Of arrivals nothing is known: it is kept for as long as a boot takes. Whatever comes then, that costs at most twice what would have
//     been best (the ski rental problem's answer).
//   - Work that it can run tends to arrive within that time: it is kept for a few times the usual gap, after which what used to come has most
//     likely ended.
//   - Work tends to arrive later than that: booting again is cheaper, and it goes.
//
// Never for less than a minute, for which clouds bill in any case, nor past the next end of a billing period, which is paid; and never for
// longer than idle_timeout.

const (
	holdLeast = time.Minute
	gapsLeast = 3 // gaps between arrivals, fewer of which are no habit
	gapsHeld  = 3 // for how many times the usual gap an instance is kept
)

// holding is how long an idle instance is kept, and why, if that is not simply as long as is configured.
func (e *Engine) holding(in *instance) (hold time.Duration, why string) {
	most := e.life().IdleTimeout
	boot, known := habit(e.s.Habits.Boots, BootKey(in.Cloud, in.Type.Name))
	if most <= holdLeast || !known {
		return most, ""
	}
	hold, why = boot.Mean, fmt.Sprintf("another would boot in %v", boot.Mean.Round(time.Second))
	if gap, comes := e.gapFor(in); comes {
		why = fmt.Sprintf("work for it comes every %v, and another would boot in %v", gap.Round(time.Second), boot.Mean.Round(time.Second))
		if hold = holdLeast; gap <= boot.Mean {
			hold = max(boot.Mean, gapsHeld*gap)
		}
	}
	return min(most, max(hold, holdLeast, e.paidFor(in))), why
}

// gapFor is after how long work that the instance can run tends to arrive, the soonest there is. What has long failed to come is expected no
// more.
func (e *Engine) gapFor(in *instance) (gap time.Duration, comes bool) {
	o := in.offering()
	for _, h := range e.s.Habits.Gaps {
		if h.Count < gapsLeast || e.s.Now.Sub(h.Last) > max(gapsHeld*h.Mean, holdLeast) || comes && h.Mean >= gap {
			continue
		}
		if h.Shape.Accepts(o) {
			gap, comes = h.Mean, true
		}
	}
	return gap, comes
}

// paidFor is for how long after it fell idle an instance is paid anyway, where its cloud bills by periods.
func (e *Engine) paidFor(in *instance) time.Duration {
	period := e.limits(in.Cloud).BillingPeriod
	if period <= holdLeast || in.Created == 0 {
		return 0
	}
	left := period - in.IdleSince.Sub(in.Created)%period
	return left - min(left, e.life().ShutdownTimeout) // so that its cloud hears of it in time
}
