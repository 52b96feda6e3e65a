package engine

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/runtimes"
)

// Every act has one price: the dollars that it is expected to cost until the instances concerned are gone. A job on an instance that is there costs that one's price
// for as long as it then lives longer, which is nothing where others keep it longer anyway. One that an instance is rented for costs the cheapest offering that holds it
// alone, from its boot to the job's end. A job for which an instance is on its way already is not let in elsewhere for being there sooner: what is paid of that one's
// boot would be in vain. What has just booted takes what it was rented for; and a gang takes it as long as it is new, since the last of its instances may boot long
// after the first.

// costEffective reports whether the group's next job is worth its place on the instance: always, if nothing else may be had for it.
func (e *Engine) costEffective(g *group, in *fleet.Member) bool {
	if e.anywhere(g, in) || e.fresh(in) && in.RentedFor(g.Key) && g.unbound() > 0 || g.Key.Gang > 0 && !in.Used {
		return true
	}
	elsewhere, known := e.costElsewhere(g)
	if !known || e.costOn(g, in)+e.keptForOthers(g, in) <= elsewhere {
		return true
	}
	n := in.Free.Times(g.Key.Shape.Need, in.AtOnce(g.unbound()))
	return n > 1 && e.payTogether(g, in, n, in.Price)
}

// keptForOthers is what it is worth not to have an instance taken by work for which a cheaper one would do: others may be about to come that spare a boot there.
func (e *Engine) keptForOthers(g *group, in *fleet.Member) drover.Money {
	if alone := e.alone(g.Key.Shape); in.Price > alone+alone/64 {
		return in.Price.For(e.bootTimes().usual / 2)
	}
	return 0
}

// worthWaiting reports whether n of the group's jobs are worth their place on an instance that is on its way for others.
func (e *Engine) worthWaiting(g *group, in *fleet.Member, n int) bool {
	return e.anywhere(g, in) || e.payTogether(g, in, n, in.Price)
}

// payTogether reports whether n of the group's jobs cost no more on an instance with such a price than each on one of its own.
func (e *Engine) payTogether(g *group, in *fleet.Member, n int, price drover.Money) bool {
	anew, known := e.costAlone(g)
	left, last := e.leftOf(in), e.longestOf(g, n)
	return !known || price.For(runtimes.Beyond(&last, &left)) <= anew*drover.Money(n)
}

// costOn is what the group's next job is expected to cost on an instance.
func (e *Engine) costOn(g *group, in *fleet.Member) drover.Money {
	runs, left := e.runsOf(g).Left(0), e.leftOf(in)
	return in.Price.For(runtimes.Beyond(&runs, &left))
}

// costAlone is what the group's next job is expected to cost on an instance of its own; not known if none can be had.
func (e *Engine) costAlone(g *group) (cost drover.Money, known bool) {
	price := e.alone(g.Key.Shape)
	return price.For(e.bootTimes().usual + e.runsOf(g).Mean()), price > 0
}

// costElsewhere is what the group's next job is expected to cost if it is not placed now: on an instance of its own or, if one is on its way for it, what is still to be
// paid for that beyond what is paid in any case.
func (e *Engine) costElsewhere(g *group) (cost drover.Money, known bool) {
	price := e.alone(g.Key.Shape)
	if in := e.boundTo(g); in != nil && g.unbound() == 0 {
		rest, paid := max(0, e.bootTimes().quickest-e.s.Now.Sub(in.LastAsked())), time.Duration(0)
		if in.Begun {
			paid = e.limits(in.Cloud).Billing.PaidUntil(in.Asked, e.s.Now).Sub(e.s.Now)
		}
		return price.For(max(0, e.runsOf(g).Mean()+rest-paid)), price > 0
	}
	return e.costAlone(g)
}

// boundTo is the youngest of the instances on their way to which jobs of the group are bound, if it is among the last.
func (e *Engine) boundTo(g *group) *fleet.Member {
	bound := e.fleet.LastIndex().Bound
	for _, in := range slices.Backward(bound[max(0, len(bound)-boundReach):]) {
		if in.Reserved(g.Key) > 0 {
			return in
		}
	}
	return nil
}

const boundReach = 64

// runsOf is how long the group's next job is likely to run.
func (e *Engine) runsOf(g *group) runtimes.Dist {
	if len(g.Jobs) == 0 {
		return e.likely(&Job{User: g.Key.User, Expected: g.Key.Expected})
	}
	return e.likely(g.Jobs[0])
}

// longestOf is how long the longest of the group's next n jobs is likely to run.
func (e *Engine) longestOf(g *group, n int) runtimes.Points {
	if len(g.Jobs) == 0 {
		return runtimes.LongestOf(e.runsOf(g), n)
	}
	return runtimes.LongestOf(e.alike(g.Jobs[0]), n)
}

// loadMost is how many jobs of an instance are looked at for how long it has work.
const loadMost = 16

// leftOf is how much longer an instance is likely to have work, or is paid in any case.
func (e *Engine) leftOf(in *fleet.Member) (left runtimes.Points) {
	if in.Created != 0 && in.Ready != 0 {
		left = runtimes.At(e.paidUntil(in, e.s.Now).Sub(e.s.Now))
	}
	for _, a := range in.Load[:min(len(in.Load), loadMost)] {
		if a.State == drover.AttemptCollecting {
			continue
		}
		one := a.Likely.Left(e.s.Now.Sub(a.Started))
		left = runtimes.Longest(&left, &one)
	}
	for _, b := range in.Bound[:min(len(in.Bound), loadMost)] {
		one := e.longestOf(e.group(b.Group), b.Count)
		left = runtimes.Longest(&left, &one)
	}
	return left
}

// anywhere reports whether the group's next job is to take what there is.
func (e *Engine) anywhere(g *group, in *fleet.Member) bool {
	return g.Unschedulable || e.s.Closing || g.OnDemand > 0 && in.Market == drover.OnDemand
}

// fresh reports whether an instance has become ready, or has been made to fit what waits, just now, and nothing runs on it since before that.
func (e *Engine) fresh(in *fleet.Member) bool {
	return (!in.Used || in.Lent) && (in.IdleSince == e.s.Now || in.Ready == e.s.Now)
}

// alone is what an hour costs of what may be rented now and costs least for one job of the shape, its boot, its volume and half a billing period included; 0 if nothing holds it.
func (e *Engine) alone(s drover.Shape) (least drover.Money) {
	e.forgetStale()
	if least, known := e.singles[s]; known {
		return least
	}
	all, boots, cost := e.market.Offerings(), e.bootTimes(), drover.Money(0)
	for i := range all {
		// The price bounds what one with its volume costs from below, and most are passed over by that alone.
		o, hour := &all[i], time.Hour+boots.of(&all[i])
		if least != 0 && o.Price.For(hour) >= cost || !s.Accepts(*o) || e.market.BlockOf(*o) != nil {
			continue
		}
		price := e.withVolume(*o, s.Need.Disk).Price
		if c := price.For(hour); least == 0 || c < cost {
			least, cost = price, c
		}
	}
	if len(e.singles) >= singlesMost {
		clear(e.singles)
	}
	e.singles[s] = least
	return least
}

// singlesMost is for how many shapes that is remembered.
const singlesMost = 10_000

// forgetStale forgets what was worked out of offers, and of how long they boot, if those are not as they were.
func (e *Engine) forgetStale() {
	if now := e.market.Revision() + e.reboots; now != e.reckoned {
		clear(e.singles)
		clear(e.minimumCosts)
		e.reckoned = now
	}
}
