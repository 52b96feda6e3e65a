package engine

import (
	"slices"

	"drover"
)

// A group that waits for room and cannot get new instances has some kept for it: as many as its waiting elements fill, those with most room
// first, but for those on which its budgets do not allow it one. Later groups may use there only what the claimant cannot. Whose an instance is follows when
// somebody asks: mostly nobody does.
//
// What is kept stands partly idle until its claimant fits, so of a large fleet only a part is kept at a time, for those that are served first. Each
// gets what it waits for in its turn all the same.

const (
	keptLeast = 16   // so many instances may be kept, however small the fleet is
	keptPart  = 64   // and else one for so many
	keptReach = 1024 // looking for one ends after so many that do not serve
)

// claims are those of one placing.
type claims struct {
	round   int      // which placing it is: what an instance says of another is over
	waiters []waiter // by order of service
	left    int      // how many more may be kept
}

// waiter is a group that claims.
type waiter struct {
	g    *group
	left int // elements for which it has claimed nothing
	next int // the place in the order up to which it has looked
}

// claimed is whose an instance is in a round.
type claimed struct {
	by    *group
	round int
}

// begin begins a placing in which nothing is claimed.
func (c *claims) begin(fleet int) {
	c.round++
	c.waiters = c.waiters[:0]
	c.left = max(keptLeast, fleet/keptPart)
}

// wait has a group claim for so many elements, after those that wait already.
func (c *claims) wait(g *group, left int) { c.waiters = append(c.waiters, waiter{g: g, left: left}) }

// take gives an instance to a group.
func (c *claims) take(in *instance, g *group) { in.claim = claimed{g, c.round} }

// reservedFor is the group for which an instance is kept, nil if it is for none. Those with more room are claimed before.
func (e *Engine) reservedFor(in *instance) *group {
	c := &e.claims
	if in.claim.round == c.round {
		return in.claim.by
	}
	if len(c.waiters) == 0 || c.left == 0 {
		return nil
	}
	order := e.fleetIndex.ready // as it is now: placing changes it
	order = order[:min(len(order), keptReach)]
	rank, _ := slices.BinarySearchFunc(order, in, byFree)
	for i := range c.waiters {
		for w := &c.waiters[i]; c.left > 0 && w.left > 0 && w.next < min(rank+1, len(order)); {
			o := order[w.next]
			w.next++
			if o.claim.round == c.round || !o.accepts(w.g) {
				continue
			}
			w.left -= o.Resources.Times(w.g.Key.Shape.Need, w.left)
			if !e.allowsOn(o, w.g) {
				continue
			}
			c.take(o, w.g)
			if c.left--; o == in {
				return w.g
			}
		}
	}
	return nil
}

// accepts reports whether the group's jobs may run on the instance when it is empty.
func (in *instance) accepts(g *group) bool {
	s, r := &g.Key.Shape, in.stretched()
	if r.Disk == 0 {
		r.Disk = s.Need.Disk // as Shape.Accepts has it
	}
	return in.serves(g) && r.Fits(s.Need) && s.Placement.Allows(in.Cloud, in.Zone, in.Type.Name, in.Price) && s.Spot.Allows(in.Market)
}

// spare is what an instance has beside all that runs there of others than its claimant, and how many of the claimant's jobs it can hold.
type spare struct {
	by   *group
	seen int // when the instance was as it was then
	left drover.Resources
	most int
}

const many = 1 << 20

// leaves reports whether a job of g on the instance takes nothing from the claimant: beside it and all that runs there of others, as many of the
// claimant's jobs would fit as the instance can hold. So others share what the claimant cannot use, and no stream of small ones keeps it waiting.
func (e *Engine) leaves(in *instance, g *group, by *group) bool {
	if by == nil {
		return true
	}
	if in.spare.by != by || in.spare.seen != in.on.seen {
		in.spare = e.spareFor(in, by)
	}
	return in.spare.left.Minus(g.Key.Shape.Need, 1).Times(by.Key.Shape.Need, many) == in.spare.most
}

func (e *Engine) spareFor(in *instance, by *group) spare {
	s := spare{by, in.on.seen, in.Resources, in.Resources.Times(by.Key.Shape.Need, many)}
	for _, a := range in.load {
		if j := e.job(a.ID.Job.Number); j.Shape != by.Key.Shape || j.Priority != by.Key.Priority || j.User != by.Key.User {
			s.left = s.left.Minus(e.need(a), 1)
		}
	}
	return s
}
