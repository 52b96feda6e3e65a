package engine

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/runtimes"
)

// Each choice has one price: the dollars it is expected to cost until the instances concerned are gone. A job on an
// existing instance costs that instance's price for as long as the job extends its life, which is nothing if other jobs
// keep it longer. A job that needs a new instance costs the cheapest offering that fits it, from boot to end. A job
// with a reservation on a coming instance is not moved elsewhere only because that is ready first: that boot would be
// paid for nothing. An instance that has just booted takes what it was rented for; gangs may use it as long as it is
// unused, since the gang's last instance may boot long after the first.

// costEffective returns which instances are worth their room for the group's next job: all if nothing else can be rented
// for it.
func (e *Engine) costEffective(g *group) func(in *fleet.Member) bool {
	elsewhere, known, computed := drover.Money(0), false, false
	return func(in *fleet.Member) bool {
		if e.atAnyCost(g, in) || e.justReady(in) && in.RentedFor(g.Key) > 0 && g.unreserved() > 0 || g.Key.Gang > 0 && !in.Used {
			return true
		}
		if !computed {
			elsewhere, known = e.costElsewhere(g)
			computed = true
		}
		if !known || e.costOn(g, in)+e.opportunityCost(g, in) <= elsewhere || e.spare(in) && g.unreserved() > 0 {
			return true
		}
		n := in.Free.Times(g.Key.Shape.Need, in.AtOnce(g.unreserved()))
		return n > 1 && e.cheaperTogether(g, in, n, in.Price)
	}
}

// opportunityCost is the price of using an instance for work that a cheaper type would fit: other work may arrive soon
// and save a boot there.
func (e *Engine) opportunityCost(g *group, in *fleet.Member) drover.Money {
	if solo := e.soloPrice(g.Key.Shape); in.Price > solo+solo/64 {
		return in.Price.For(e.forecast.BootTimes().Usual / 2)
	}
	return 0
}

// worthReserving reports whether n of the group's jobs are worth their room on an instance that is coming for other
// jobs, or for none any more, since its jobs' priority has changed for example.
func (e *Engine) worthReserving(g *group, in *fleet.Member, n int) bool {
	return e.atAnyCost(g, in) || len(in.Reservations) == 0 && in.Price <= e.soloPrice(g.Key.Shape) || e.cheaperTogether(g, in, n, in.Price)
}

// spare reports whether a pool keeps an instance so that no job has to wait for a boot. One in use does not count.
func (e *Engine) spare(in *fleet.Member) bool {
	spec := e.poolSpec(in)
	return spec != nil && spec.Kind == drover.PoolSpare && len(in.Load) == 0 && (in.Owner == "" || in.Isolated())
}

// cheaperTogether reports whether n of the group's jobs cost no more together on an instance with this price than on an
// instance each.
func (e *Engine) cheaperTogether(g *group, in *fleet.Member, n int, price drover.Money) bool {
	anew, known := e.costNewInstance(g)
	left, last := e.remainingWork(in), e.longestRun(g, n)
	return !known || price.For(runtimes.Beyond(&last, &left)) <= anew*drover.Money(n)
}

// costOn returns the expected cost of the group's next job on an instance.
func (e *Engine) costOn(g *group, in *fleet.Member) drover.Money {
	left := e.remainingWork(in)
	return in.Price.For(runtimes.Beyond(&e.runTime(g).alone, &left))
}

// costNewInstance returns the expected cost of the group's next job on a new instance; not known if none can be rented.
func (e *Engine) costNewInstance(g *group) (cost drover.Money, known bool) {
	price := e.soloPrice(g.Key.Shape)
	return price.For(e.forecast.BootTimes().Usual + e.runTime(g).Alone.Mean()), price > 0
}

// costElsewhere returns the expected cost of the group's next job if it is not placed now: on a new instance or, if it
// has a reservation, what is still to be paid for that instance beyond what is already due.
func (e *Engine) costElsewhere(g *group) (cost drover.Money, known bool) {
	price := e.soloPrice(g.Key.Shape)
	if in := e.youngestReserved(g); in != nil && g.unreserved() == 0 {
		rest, paid := max(0, e.forecast.BootTimes().Wait-e.s.Now.Sub(in.LastAsked())), time.Duration(0)
		if in.Begun {
			paid = e.limits(in.Cloud).Billing.PaidUntil(in.Asked, e.s.Now).Sub(e.s.Now)
		}
		return price.For(max(0, e.runTime(g).Alone.Mean()+rest-paid)), price > 0
	}
	return e.costNewInstance(g)
}

// youngestReserved returns the youngest coming instance with a reservation of the group, of the last youngestReach
// ones.
func (e *Engine) youngestReserved(g *group) *fleet.Member {
	bound := e.fleet.LastIndex().Reserved
	for _, in := range slices.Backward(bound[max(0, len(bound)-youngestReach):]) {
		if in.Reserved(g.Key) > 0 {
			return in
		}
	}
	return nil
}

const youngestReach = 64

// remainingReach is how many attempts, and reservations, of an instance remainingWork examines.
const remainingReach = 16

// always is longer than any job is expected to run.
const always = 100 * 365 * 24 * time.Hour

// remaining is an instance's remaining work while it has this many attempts and this room beside reservations.
type remaining struct {
	load int
	room drover.Resources
	left runtimes.Points
}

// remainingWork returns how much longer an instance is expected to be busy, or is paid for anyway. During a placement it
// is computed again only for instances that are given something.
func (e *Engine) remainingWork(in *fleet.Member) runtimes.Points {
	known, ok := e.backfill.remaining[in]
	if !ok || known.load != len(in.Load) || known.room != in.Room {
		known = remaining{len(in.Load), in.Room, e.computeRemaining(in)}
		if e.backfill.remaining != nil {
			e.backfill.remaining[in] = known
		}
	}
	return known.left
}

func (e *Engine) computeRemaining(in *fleet.Member) (left runtimes.Points) {
	if spec := e.poolSpec(in); spec != nil && spec.Kind != drover.PoolSpare && !in.Lent && !e.leaving(in) { // its pool keeps it
		return runtimes.At(always)
	}
	if in.Created != 0 && in.Ready != 0 {
		left = runtimes.At(e.paidUntil(in, e.s.Now).Sub(e.s.Now))
	}
	for _, a := range in.Load[:min(len(in.Load), remainingReach)] {
		if a.State == drover.AttemptCollecting {
			continue
		}
		one := e.runTimeOf(e.job(a.ID.Job.Number)).Alone.Left(e.s.Now.Sub(a.Started))
		left = runtimes.Longest(&left, &one)
	}
	for _, b := range in.Reservations[:min(len(in.Reservations), remainingReach)] {
		one := e.longestRun(e.group(b.Group), b.Count)
		left = runtimes.Longest(&left, &one)
	}
	return left
}

// atAnyCost reports whether the group's next job takes whatever fits.
func (e *Engine) atAnyCost(g *group, in *fleet.Member) bool {
	return g.Unschedulable || e.s.Closing || g.OnDemand > 0 && in.Market == drover.OnDemand
}

// justReady reports whether an instance has just become ready, or was just enlarged for waiting work, and has run
// nothing since.
func (e *Engine) justReady(in *fleet.Member) bool {
	return (!in.Used || in.Lent) && (in.IdleSince == e.s.Now || in.Ready == e.s.Now)
}

// soloPrice returns the hourly price of the offering that is cheapest for one job of the shape, counting its boot,
// volume and half a billing period; 0 if none fits.
func (e *Engine) soloPrice(s drover.Shape) (least drover.Money) {
	e.dropStaleCosts()
	if least, known := e.costs.solo[s]; known {
		return least
	}
	all, boots, cost := e.market.Offerings(), e.forecast.BootTimes(), drover.Money(0)
	for i := range all {
		// The price is a lower bound of the price with a volume, and excludes most offerings cheaply.
		o, hour := &all[i], time.Hour+boots.Of(&all[i])
		if least != 0 && o.Price.For(hour) >= cost || !s.Accepts(*o) || e.market.BlockOf(*o) != nil {
			continue
		}
		price := e.withVolume(*o, s.Need.Disk).Price
		if c := price.For(hour); least == 0 || c < cost {
			least, cost = price, c
		}
	}
	if len(e.costs.solo) >= costsMax {
		clear(e.costs.solo)
	}
	e.costs.solo[s] = least
	return least
}

// costCache holds costs that follow from offerings and boot times, for one revision of both.
type costCache struct {
	revision int
	solo     map[drover.Shape]drover.Money  // hourly price of the cheapest offering for one job
	minimum  map[minimumCostKey]minimumCost // the least that a group's jobs would cost in each kind of window
}

// costsMax is how many entries each of its maps holds.
const costsMax = 10_000

// dropStaleCosts empties the cache if offers or boot times have changed.
func (e *Engine) dropStaleCosts() {
	if now := e.market.Revision() + e.forecast.BootRevision(); now != e.costs.revision {
		clear(e.costs.solo)
		clear(e.costs.minimum)
		e.costs.revision = now
	}
}
