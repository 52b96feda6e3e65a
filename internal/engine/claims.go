package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/fleet"
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
	by      map[*fleet.Member]*group
	spare   map[*fleet.Member]spare // beside their claimants
	waiters []waiter                // by order of service
	left    int                     // how many more may be kept
}

// waiter is a group that claims.
type waiter struct {
	g    *group
	left int // elements for which it has claimed nothing
	next int // the place in the order up to which it has looked
}

// begin begins a placing in which nothing is claimed.
func (c *claims) begin(fleet int) {
	clear(c.by)
	clear(c.spare)
	c.waiters = c.waiters[:0]
	c.left = max(keptLeast, fleet/keptPart)
}

// wait has a group claim for so many elements, after those that wait already.
func (c *claims) wait(g *group, left int) { c.waiters = append(c.waiters, waiter{g: g, left: left}) }

// take gives an instance to a group.
func (c *claims) take(in *fleet.Member, g *group) { c.by[in] = g }

// reservedFor is the group for which an instance is kept, nil if it is for none. Those with more room are claimed before.
func (e *Engine) reservedFor(in *fleet.Member) *group {
	c := &e.claims
	if g := c.by[in]; g != nil {
		return g
	}
	if len(c.waiters) == 0 || c.left == 0 {
		return nil
	}
	order := e.fleet.LastIndex().Ready // as it is now: placing changes it
	order = order[:min(len(order), keptReach)]
	rank, _ := slices.BinarySearchFunc(order, in, fleet.ByFree)
	for i := range c.waiters {
		for w := &c.waiters[i]; c.left > 0 && w.left > 0 && w.next < min(rank+1, len(order)); {
			o := order[w.next]
			w.next++
			if c.by[o] != nil || !o.Accepts(&w.g.demand) {
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

// spare is what an instance has beside all that runs there of others than its claimant, and how many of the claimant's jobs it can hold.
type spare struct {
	left drover.Resources
	most int
}

const many = 1 << 20

// leaves reports whether a job of g on the instance takes nothing from the claimant: beside it and all that runs there of others, as many of the
// claimant's jobs would fit as the instance can hold. So others share what the claimant cannot use, and no stream of small ones keeps it waiting.
func (e *Engine) leaves(in *fleet.Member, g *group, by *group) bool {
	if by == nil {
		return true
	}
	s, known := e.claims.spare[in]
	if !known {
		s = e.spareFor(in, by)
		e.claims.spare[in] = s
	}
	return s.left.Minus(g.Key.Shape.Need, 1).Times(by.Key.Shape.Need, many) == s.most
}

func (e *Engine) spareFor(in *fleet.Member, by *group) spare {
	s := spare{in.Resources, in.Resources.Times(by.Key.Shape.Need, many)}
	for _, a := range in.Load {
		if j := e.job(a.ID.Job.Number); j.Shape != by.Key.Shape || j.Priority != by.Key.Priority || j.User != by.Key.User {
			s.left = s.left.Minus(e.need(a), 1)
		}
	}
	return s
}
