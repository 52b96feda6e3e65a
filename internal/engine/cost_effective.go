package engine

import (
	"time"

	"drover"
)

// An instance that is used already is not given work that keeps it for far more than another would cost. Nothing is known of how long jobs
// will take, so each is taken to last as long as any other: then an instance with n of them is kept for a share of 1/n longer by one of them,
// and that share of its price is what the job costs there. Elsewhere it costs the price of the cheapest offering that holds it alone, and a
// boot besides: a sixty-fourth of the hour that it is taken to last. What has just booted takes whatever it holds and has no other instance on its way: it was
// rented for it. What has one is not let in for being there sooner, else what comes first takes the largest that comes, and for that one's
// work another is rented; but a gang takes it as long as it is new, since the last of its instances may boot long after the first. Nor is it bound to what boots for others, or did before they found another place.

// costEffective reports whether the group's next job is worth its place on the instance: always, if nothing else may be had for it.
func (e *Engine) costEffective(g *group, in *instance) bool {
	if e.anywhere(g, in) || e.fresh(in) && g.unbound() > 0 || g.Key.Gang > 0 && !in.Used {
		return true
	}
	jobs := in.seated + in.free.Times(g.Key.Shape.Need, in.atOnce(max(1, g.Queued)))
	for _, a := range in.load {
		if a.State != drover.AttemptCollecting {
			jobs++
		}
	}
	return e.shared(g, in, jobs)
}

// worthWaiting reports whether n of the group's jobs are worth their place on an instance that is on its way for others.
func (e *Engine) worthWaiting(g *group, in *instance, n int) bool {
	for _, b := range in.Bound {
		n += b.Count
	}
	return e.anywhere(g, in) || e.shared(g, in, n)
}

// anywhere reports whether the group's next job is to take what there is.
func (e *Engine) anywhere(g *group, in *instance) bool {
	return g.Unschedulable || e.s.Closing || g.OnDemand > 0 && in.Market == drover.OnDemand
}

// shared reports whether a job's share of an instance that runs so many, it among them, costs little more than the cheapest for it alone.
func (e *Engine) shared(g *group, in *instance, jobs int) bool {
	alone := e.alone(g.Key.Shape)
	return alone == 0 || in.Price <= alone || in.Price/drover.Money(max(1, jobs)) <= alone+alone/64
}

// fresh reports whether an instance has become ready just now, and nothing has begun on it.
func (e *Engine) fresh(in *instance) bool { return !in.Used && in.IdleSince == e.s.Now }

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
