package engine

import (
	"cmp"
	"iter"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// place starts waiting work on ready instances, in order of service, and reserves room on coming instances for the
// rest.
func (e *Engine) place() {
	r := e.fleet.Index()
	e.countComing(r)
	e.sortGroups()
	if e.nothingStarts() {
		e.forgetFits()
		r.News = r.News[:0]
		return
	}
	e.mix()
	e.pending.GangReleased = false
	defer e.returnGangRooms()
	e.backfill.begin(e.fleet.Len())
	defer e.backfill.end()
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
		for e.placeNext(g) {
		}
		e.reserveRest(g, r, i < last, false)
	}
}

// reserveRest reserves room on coming instances for what could not start. If groups follow this one (before), it also
// holds ready instances for the remainder, or for one element of it (one).
func (e *Engine) reserveRest(g *group, r *fleet.Index, before, one bool) {
	left := 0
	if g.Key.Gang > 0 {
		e.reserveForGang(g, r, before)
		left = min(g.unreserved(), g.Next())
	} else {
		e.holdForComing(g)
		e.reserveComing(g, r)
		if left = g.unreserved(); one {
			left = min(left, 1)
		}
	}
	if left > 0 && g.Unschedulable && before { // without later groups there is nobody to hold room against
		if g.Key.Gang == 0 { // reserveForGang has done that
			e.backfill.wait(g, left)
		}
		if e.sharing() || e.groups[e.lastWaiting()].Key.Priority < g.Key.Priority {
			e.holdUnusable(g, left)
		}
	}
}

// reserveComing reserves room on coming instances for what could not start. An unschedulable group displaces lower
// priorities there.
func (e *Engine) reserveComing(g *group, r *fleet.Index) {
	e.dropSurplus(g, r)
	if g.netDemand() > 0 {
		e.reserveOnComing(g, r)
	}
	if g.Unschedulable && g.netDemand() > 0 {
		e.takeOver(g, r)
	}
	g.Unmet = min(g.Unmet, g.netDemand())
}

// lastWaiting returns the position of the last group with queued elements, -1 if there is none.
func (e *Engine) lastWaiting() int {
	for i, g := range slices.Backward(e.groups) {
		if g.Queued > 0 {
			return i
		}
	}
	return -1
}

// placeNext starts what the group starts next, an element or a whole gang, if it fits: on the cost-effective instance
// with the cheapest vCPUs, then on the fullest, so that the others can empty.
func (e *Engine) placeNext(g *group) bool {
	n := g.Next()
	if n == 0 {
		return false
	}
	slots, refuses := e.findSlots(g, n)
	if refuses != nil {
		g.setReason(e.whyUnpaid(g, refuses))
	}
	if len(slots) < n || refuses != nil {
		if g.Key.Gang > 0 {
			e.partial = partialGang{n, slots, refuses != nil || !e.affordsGang(g, slots)}
		}
		return false
	}
	j, elements := e.take(g)
	for i, index := range elements {
		e.begin(j, index, slots[i])
		e.backfill.rooms.started(slots[i])
		if slots[i].Market == drover.OnDemand && g.OnDemand > 0 {
			g.OnDemand--
		}
	}
	return true
}

// order ranks the instances for a group's work: the lowest rank is preferred, then the better instance.
type order struct {
	rank func(e *Engine, g *group, in *fleet.Member) int64
	most int // how many instances are compared with the first that suits; 0: all
}

// remembered returns the same order, which computes each instance's rank once.
func (by order) remembered() order {
	known := map[*fleet.Member]int64{}
	return order{most: by.most, rank: func(e *Engine, g *group, in *fleet.Member) int64 {
		rank, ok := known[in]
		if !ok {
			rank = by.rank(e, g, in)
			known[in] = rank
		}
		return rank
	}}
}

// comparedMax is how many instances the first order compares with the first that suits. If more would suit, work goes to
// the oldest, so that a decision takes no longer. The other orders, for tight budgets, must not miss one.
const comparedMax = 64

// orders are the preferences that findSlots tries until it finds slots that the budgets allow: lowest cost; lowest cost
// of keeping the instance; and room for most jobs, since a gang costs less the fewer instances it keeps.
var orders = [...]order{
	{most: comparedMax, rank: func(e *Engine, g *group, in *fleet.Member) int64 { return int64(e.costOn(g, in)) }},
	{rank: func(e *Engine, g *group, in *fleet.Member) int64 {
		return int64(e.addsOn(g, in, &budget.Account{To: budget.Never}))
	}},
	{rank: func(_ *Engine, g *group, in *fleet.Member) int64 {
		return -int64(in.Free.Times(g.Key.Shape.Need, in.AtOnce(g.Next())))
	}},
}

// unordered finds any instance.
var unordered = order{most: 1, rank: func(*Engine, *group, *fleet.Member) int64 { return 0 }}

// addsOn returns what one more of the group's jobs on the instance adds to an account.
func (e *Engine) addsOn(g *group, in *fleet.Member, to *budget.Account) drover.Money {
	return e.ledger.Adds(to, e.onInstance(in, 0, wanted{g, 1}))
}

// bestInstance returns the first instance, by an order, that fits the group's next element and is cost-effective; nil
// if there is none.
func (e *Engine) bestInstance(g *group, by order) (best *fleet.Member) {
	least, compared, worth := int64(0), 0, e.costEffective(g)
	for f := range e.allFits(g) {
		in, holder := f.in, e.reservedFor(f.in)
		if holder != nil && f.deniedBy == holder && f.asOf == in.Changes() || in.Full() || !in.Holds(&g.demand) || e.forDemand(g, in) || slices.Contains(in.Lost, g.Jobs[0].Number) {
			continue
		}
		if best != nil {
			if compared++; by.most > 0 && compared > by.most {
				break
			}
		}
		rank := by.rank(e, g, in)
		if best != nil && (rank > least || rank == least && !in.Better(best)) || !worth(in) {
			continue
		}
		if e.fitsBeside(in, g, holder) {
			best, least = in, rank
		} else if in.Accepts(&holder.demand) { // otherwise it depends on more than what runs there
			f.deniedBy, f.asOf = holder, in.Changes()
		}
	}
	return best
}

// fit is an instance with room for a group's next job.
type fit struct {
	in       *fleet.Member
	deniedBy *group // the group whose hold on the instance excluded this group
	asOf     int    // the member's Changes when it did
}

func (f fit) compare(in *fleet.Member) int { return fleet.ByID(f.in, in) }

// catchUp updates the list of instances that fit one of the group's jobs, as far as it has been examined.
func (e *Engine) catchUp(g *group, r *fleet.Index) {
	if g.Queued == 0 && g.Coming == 0 {
		g.fits, g.examined = nil, 0
		return
	}
	for _, in := range r.News {
		if in.ID > g.examined {
			continue
		}
		at, had := slices.BinarySearchFunc(g.fits, in, fit.compare)
		switch fits := in.IsReady() && in.MayHold(&g.demand); {
		case fits && !had:
			g.fits = slices.Insert(g.fits, at, fit{in: in})
		case had && !fits:
			g.fits = slices.Delete(g.fits, at, at+1)
		}
	}
}

// allFits iterates over the instances that may fit one of the group's jobs, by ID. Each is examined when it is reached,
// so that a job that finds its place early does not pay for a large fleet.
func (e *Engine) allFits(g *group) iter.Seq[*fit] {
	return func(yield func(*fit) bool) {
		for i := 0; i < len(g.fits) || e.examine(g); i++ {
			if !yield(&g.fits[i]) {
				return
			}
		}
	}
}

// examine extends the list of instances that fit one of the group's jobs by the next one; false if there is none.
func (e *Engine) examine(g *group) bool {
	all := e.fleet.LastIndex().Roomy
	if g.Key.Shape.Need.Memory == 0 {
		all = e.fleet.All()
	}
	at, _ := slices.BinarySearchFunc(all, g.examined+1, func(in *fleet.Member, id int64) int { return cmp.Compare(in.ID, id) })
	for _, in := range all[at:] {
		g.examined = in.ID
		if in.IsReady() && in.MayHold(&g.demand) {
			g.fits = append(g.fits, fit{in: in})
			return true
		}
	}
	return false
}

// forgetFits makes every group examine all instances again.
func (e *Engine) forgetFits() {
	for _, g := range e.groups {
		g.fits, g.examined = nil, 0
	}
}
