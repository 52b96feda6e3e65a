package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// A budget may refuse many waiting groups, decision after decision, and each would look at every instance. What a job
// adds to a budget of the fleet depends on the instance's price and on until when it is committed anyway; what it adds to
// another budget, on its price and vCPUs. So the instances are sorted into kinds once per placement, and most groups are
// refused by kind.

// rooms are the ready instances of one placement, by ID.
type rooms struct {
	all   []room
	kinds []*fleet.Member // one instance of each kind
}

type room struct {
	in    *fleet.Member
	kind  int
	until drover.Time // until when it is committed; 0: not computed yet
}

// roomKind is what instances of one kind have in common. The census's kinds are far more, since owners and zones matter
// there.
type roomKind struct {
	pooled bool
	vague  bool // its offering is not known yet
	price  drover.Money
	cpu    drover.MilliCPU
}

func (e *Engine) newRooms() *rooms {
	r, kinds := &rooms{}, map[roomKind]int{}
	for _, in := range e.fleet.All() {
		if !in.IsReady() {
			continue
		}
		of := roomKind{in.Pooled(), len(in.Candidates) > 0, in.Price, in.Resources.CPU}
		kind, known := kinds[of]
		if !known {
			kind = len(r.kinds)
			kinds[of] = kind
			r.kinds = append(r.kinds, in)
		}
		r.all = append(r.all, room{in: in, kind: kind})
	}
	return r
}

// mayAfford reports whether an account may allow the group's next job on a ready instance. If it says no, it allows it
// on none.
func (e *Engine) mayAfford(g *group, a *budget.Account) bool {
	if e.backfill.rooms == nil {
		e.backfill.rooms = e.newRooms()
	}
	r, all := e.backfill.rooms, true
	from := make([]drover.Time, len(r.kinds))
	for i, like := range r.kinds {
		from[i] = e.affordableFrom(g, a, like)
		all = all && from[i] == budget.Never
	}
	if all {
		return false
	}
	for i := range r.all {
		room := &r.all[i]
		from := from[room.kind]
		if room.until == 0 && from > 0 && from < budget.Never {
			room.until = e.ledger.Claim(room.in.ID).CommittedUntil(e.s.Now)
		}
		if (from == 0 || room.until > from) && room.in.Holds(&g.demand) && !room.in.Full() {
			return true
		}
	}
	return false
}

// affordableFrom returns until when an instance of a kind must be committed anyway, at least, for an account to allow one
// of the group's jobs there: 0 if that does not matter, or is not known; Never if the account allows none.
func (e *Engine) affordableFrom(g *group, a *budget.Account, like *fleet.Member) drover.Time {
	if len(like.Candidates) > 0 {
		return 0
	}
	if !a.OfFleet() {
		if adds := e.addsOn(g, like, a); adds > 0 && e.ledger.Exceeds(a, adds) {
			return budget.Never
		}
		return 0
	}
	end, rest := min(a.To, e.s.Now.Add(g.horizon())), max(0, a.Limit-e.ledger.Least(a))
	if like.Price.For(end.Sub(a.From)) <= rest {
		return 0
	}
	return end.Add(-rest.Buys(like.Price) - time.Second) // a second, since sums are rounded
}

// started notes that an instance is committed for longer than when the placement began.
func (r *rooms) started(in *fleet.Member) {
	if r == nil {
		return
	}
	if at, ok := slices.BinarySearchFunc(r.all, in, func(r room, in *fleet.Member) int { return cmp.Compare(r.in.ID, in.ID) }); ok {
		r.all[at].until = 0
	}
}
