package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// place starts what waits on what is ready, in order of service, and binds the rest to what is on its way.
func (e *Engine) place() {
	r := e.fleet.Index()
	e.expect(r)
	e.sortGroups()
	if e.halted() {
		e.forgetFits()
		return
	}
	e.mix()
	e.gaveUp = false
	defer e.unkeep()
	e.claims.begin(e.fleet.Len())
	last := e.lastWaiting()
	for _, g := range e.groups {
		e.catchUp(g, r)
	}
	r.News = r.News[:0]
	if e.sharing() {
		e.placeByShares(e.groups, r)
		return
	}
	for i, g := range e.groups {
		for e.placeOne(g) {
		}
		e.placeRest(g, r, i < last, false)
	}
}

// placeRest seats what found no room of a group on what is on its way, and has room kept for the rest, if anybody is behind it: for all of it, or
// only for one.
func (e *Engine) placeRest(g *group, r *fleet.Index, before, one bool) {
	if g.Key.Gang > 0 {
		e.gather(g, r, before)
		return
	}
	e.standBy(g)
	e.seatComing(g, r)
	left := g.unbound()
	if one {
		left = min(left, 1)
	}
	if left > 0 && g.Unschedulable && before { // with nobody behind it there is nobody to keep room from
		e.claims.wait(g, left)
	}
}

// seatComing binds what found no room of a group to what is on its way, and if it is stuck takes over the room of lower ones there.
func (e *Engine) seatComing(g *group, r *fleet.Index) {
	e.unbindSurplus(g, r)
	if g.wants() > 0 {
		e.bindWaiting(g, r)
	}
	if g.Unschedulable && g.wants() > 0 {
		e.takeOver(g, r)
	}
	g.Unmet = min(g.Unmet, g.wants())
}

// lastWaiting is the place of the last group of which something waits, -1 if there is none.
func (e *Engine) lastWaiting() int {
	for i, g := range slices.Backward(e.groups) {
		if g.Queued > 0 {
			return i
		}
	}
	return -1
}

// placeOne starts the group's next element, if there is room for it, on the instance that is worth it whose vCPUs cost least, and of those on the
// fullest, so that the others can empty.
func (e *Engine) placeOne(g *group) bool {
	if g.Queued == 0 {
		return false
	}
	if g.Key.Gang > 0 {
		return e.placeGang(g)
	}
	seats, refuses := e.placesFor(g, 1)
	if refuses != nil {
		g.wait(e.whyUnpaid(g, refuses))
	}
	if len(seats) == 0 || refuses != nil {
		return false
	}
	in := seats[0]
	e.begin(g, in)
	if e.limited() && in.Market == drover.OnDemand && g.OnDemand > 0 {
		g.OnDemand--
	}
	return true
}

// order reports whether a group's work is placed on one instance rather than on another.
type order func(e *Engine, g *group, in, than *fleet.Member) bool

// orders are those by which places are looked for, one after the other as long as what is found cannot be paid: the fullest first; what costs least to keep
// for a job more; and, since a gang costs less the fewer instances have to be kept for it, the roomiest.
var orders = [...]order{
	func(e *Engine, g *group, in, than *fleet.Member) bool {
		a, b := e.costOn(g, in), e.costOn(g, than)
		return a < b || a == b && in.Better(than)
	},
	func(e *Engine, g *group, in, than *fleet.Member) bool {
		a, b := e.keeping(g, in), e.keeping(g, than)
		return a < b || a == b && in.Better(than)
	},
	func(_ *Engine, _ *group, in, than *fleet.Member) bool {
		return cmp.Or(cmp.Compare(than.Free.CPU, in.Free.CPU), cmp.Compare(than.Free.Memory, in.Free.Memory)) < 0
	},
}

// keeping is what it costs to keep an instance for one of the group's jobs more.
func (e *Engine) keeping(g *group, in *fleet.Member) drover.Money {
	return e.ledger.Adds(&budget.Account{To: budget.Never}, e.onInstance(in, 0, wanted{g, 1}))
}

// choose is, of what has room for the group's next element and is worth it, the first by an order; nil if there is nothing.
func (e *Engine) choose(g *group, before order) (best *fleet.Member) {
	for i := range g.fits {
		f := &g.fits[i]
		in, by := f.in, e.reservedFor(f.in)
		if by != nil && f.keptFor == by && f.seen == in.Changes() {
			continue
		}
		if in.Full() || best != nil && !before(e, g, in, best) || !in.Holds(&g.demand) || g.forDemand(in) || slices.Contains(in.Lost, g.Jobs[0].Number) || !e.costEffective(g, in) {
			continue
		}
		if e.leaves(in, g, by) {
			best = in
		} else {
			f.keptFor, f.seen = by, in.Changes()
		}
	}
	return best
}

// fit is an instance that has room for a group's next job.
type fit struct {
	in      *fleet.Member
	keptFor *group // by which it was kept from this group
	seen    int    // when it was as it was then
}

func (f fit) compare(in *fleet.Member) int { return fleet.ByID(f.in, in) }

// catchUp brings up to now which instances have room for one of the group's jobs.
func (e *Engine) catchUp(g *group, r *fleet.Index) {
	switch {
	case g.Queued == 0 && g.Coming == 0:
		g.fits, g.knows = nil, false
	case !g.knows:
		g.knows = true
		for _, in := range r.Ready {
			if in.Holds(&g.demand) {
				g.fits = append(g.fits, fit{in: in})
			}
		}
		slices.SortFunc(g.fits, func(a, b fit) int { return fleet.ByID(a.in, b.in) })
	default:
		for _, in := range r.News {
			at, had := slices.BinarySearchFunc(g.fits, in, fit.compare)
			switch fits := in.IsReady() && in.Holds(&g.demand); {
			case fits && !had:
				g.fits = slices.Insert(g.fits, at, fit{in: in})
			case had && !fits:
				g.fits = slices.Delete(g.fits, at, at+1)
			}
		}
	}
}

// forgetFits has all groups look at every instance again.
func (e *Engine) forgetFits() {
	for _, g := range e.groups {
		g.fits, g.knows = nil, false
	}
}
