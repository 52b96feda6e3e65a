package engine

import (
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// How long an idle instance is kept. To keep it costs its price for as long as nothing comes; to boot another when something does costs that one's
// price for as long as it boots. Which is less is asked of the last few times when work of its kind had ended:
//
//   - Of such times too little is known: one is kept for as long as a boot takes, and what falls idle meanwhile goes. Whatever comes next, that costs at most
//     twice what would have been best (the ski rental problem's answer).
//   - Keeping instances for some time would have cost less than booting others, for all those times together: it is kept for that long, a
//     little more, since no two times are alike.
//   - Nothing would have: it goes.
//
// Never for less than is paid in any case, and never for longer than idle_timeout.

// holding is how long an idle instance is kept, and why, if that is not simply as long as is configured.
func (e *Engine) holding(in *fleet.Member) (hold time.Duration, why string) {
	most := e.life().IdleTimeout
	boot, known := stat(e.s.Stats.Boots, BootKey(in.Cloud, in.Type.Name))
	if !known || in.Price == 0 {
		return most, ""
	}
	another := fmt.Sprintf("a new instance would boot in %v", boot.Mean.Round(time.Second))
	hold, over, seen := e.pays(in, boot.Mean)
	switch {
	case seen < gapsLeast && e.keptFor(in, boot.Mean):
		hold, why = 0, "too little is known about when work for it returns, and another instance is kept meanwhile"
	case seen < gapsLeast:
		hold, why = boot.Mean, another
	case hold == 0:
		why = fmt.Sprintf("work for it returns too rarely, and %s", another)
	default:
		why = fmt.Sprintf("of the last %d pauses in its work, %d ended within %v, and %s", seen, over, hold.Round(time.Second), another)
		hold += hold/4 + time.Second
	}
	return min(most, max(hold, e.paidFor(in))), why
}

// keptFor reports whether another that fell idle before the instance, and no longer ago than a boot takes, is kept for work that it can hold.
func (e *Engine) keptFor(in *fleet.Member, boot time.Duration) bool {
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

// pays is the longest for which it pays to keep an instance for any shape of work that it can hold, and how many of how many pauses were
// over by then. What a boot of another is worth follows from what that one would cost, which for small work is less.
func (e *Engine) pays(in *fleet.Member, boot time.Duration) (hold time.Duration, over, seen int) {
	o := in.Offering()
	for i := range e.s.Stats.Gaps {
		p := &e.s.Stats.Gaps[i]
		n := p.seen(e.s.Now, boot)
		if n < gapsLeast || !p.Shape.Accepts(o) {
			continue
		}
		saved := boot
		if alone := e.alone(p.Shape); alone > 0 && alone < in.Price {
			saved = time.Duration(drover.Money(boot).Part(int64(alone), int64(in.Price)))
		}
		if h, k := p.best(e.s.Now, saved); seen == 0 || h > hold {
			hold, over, seen = h, k, n
		}
	}
	return hold, over, seen
}

// youngest is how old an instance gets at least that falls idle: most clouds bill that in any case, and one that is there at once would come and go with
// each job.
const youngest = time.Minute

// paidFor is for how long after it fell idle an instance is paid anyway, as its cloud bills, and young.
func (e *Engine) paidFor(in *fleet.Member) time.Duration {
	if in.Created == 0 {
		return 0
	}
	left := e.paidUntil(in, in.IdleSince).Sub(in.IdleSince)
	if e.limits(in.Cloud).Billing.Period > 0 {
		left -= min(left, e.life().ShutdownTimeout) // so that its cloud hears of it in time
	}
	return max(left, in.Created.Add(youngest).Sub(in.IdleSince))
}
