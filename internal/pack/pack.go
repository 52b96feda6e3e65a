// Package pack answers a Problem: which instances to rent for jobs that have no place. It is pure: the answer depends on the Problem
// alone, and its work is bounded by the steps that the Problem allows, never by a clock.
//
// The method is "choose the type, then fill": each demand in turn first fills what is left on the instances already chosen, then
// rents the offering with the lowest price per job, of equals the largest, until it is served or the room is used up.
package pack

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
)

// maxCandidates is how many offerings an instance may be tried from, so that a shortage costs one call.
const maxCandidates = 5

// Solve answers the problem.
func Solve(p drover.Problem) drover.Plan {
	s := solver{p: p, room: map[string]int{}, left: p.Room, steps: p.Steps}
	for _, c := range p.Clouds {
		s.room[c.Cloud] = c.Room
	}
	for d := range p.Demands {
		s.serve(d)
	}
	plan := drover.Plan{Problem: p.ID, Unmet: s.unmet}
	for _, c := range s.chosen {
		plan.Purchases = append(plan.Purchases, drover.Purchase{Candidates: s.candidates(c), Loads: c.loads})
	}
	return plan
}

type solver struct {
	p      drover.Problem
	room   map[string]int // instances that may still be added, by cloud
	left   int            // and in all
	steps  int
	chosen []*choice
	unmet  []drover.Unmet
}

// choice is an instance that is to be rented.
type choice struct {
	offering int
	free     drover.Resources
	loads    []drover.Load
}

func (s *solver) serve(d int) {
	count := s.fill(d, s.p.Demands[d].Count)
	for count > 0 {
		best, n := s.cheapest(d, count)
		if best < 0 {
			s.unmet = append(s.unmet, s.why(d, count))
			return
		}
		s.rent(best, d, n)
		count -= n
	}
}

// fill puts jobs on instances that are already chosen and returns how many are left.
func (s *solver) fill(d, count int) int {
	shape := s.p.Demands[d].Shape
	for _, c := range s.chosen {
		if count == 0 || s.steps <= 0 || s.p.UseOnce {
			break
		}
		s.steps--
		if n := c.free.Times(shape.Need, count); n > 0 && shape.Accepts(s.p.Offerings[c.offering]) {
			c.add(d, shape.Need, n)
			count -= n
		}
	}
	return count
}

func (c *choice) add(d int, need drover.Resources, n int) {
	c.free = c.free.Minus(need, n)
	c.loads = append(c.loads, drover.Load{Demand: d, Count: n})
}

// cheapest finds the offering with the lowest price per job of those that one instance of it would hold, and how many that are.
func (s *solver) cheapest(d, count int) (best, most int) {
	best = -1
	shape := s.p.Demands[d].Shape
	for i, o := range s.p.Offerings {
		if s.steps--; s.steps <= 0 || s.left == 0 {
			return -1, 0
		}
		n := capacity(o).Times(shape.Need, s.together(count))
		if n == 0 || s.room[o.Cloud] == 0 || !shape.Accepts(o) {
			continue
		}
		if best < 0 || better(o.Price, n, s.p.Offerings[best].Price, most) {
			best, most = i, n
		}
	}
	return best, most
}

// together is how many of so many jobs one instance may be given.
func (s *solver) together(count int) int {
	if s.p.UseOnce {
		return min(count, 1)
	}
	return count
}

// better reports whether price p for n jobs is less a job than price q for m, or the same for more of them: fewer and larger instances boot
// sooner, take less of a quota, and have room for other jobs. Prices are far below 10¹² nano-dollars and counts below 2²⁰, so the products fit.
func better(p drover.Money, n int, q drover.Money, m int) bool {
	a, b := int64(p)*int64(m), int64(q)*int64(n)
	return a < b || a == b && n > m
}

// capacity is what an instance of the offering has; a disk that is made to measure holds what the rest can.
func capacity(o drover.Offering) drover.Resources {
	r := o.Type.Resources
	if r.Disk == 0 {
		r.Disk = drover.TiB
	}
	return r
}

func (s *solver) rent(offering, d, n int) {
	o := s.p.Offerings[offering]
	c := &choice{offering: offering, free: capacity(o)}
	c.add(d, s.p.Demands[d].Shape.Need, n)
	s.chosen = append(s.chosen, c)
	s.left--
	s.room[o.Cloud]--
}

// candidates lists the offerings of the same cloud that can hold the choice's loads, the chosen one first, then the cheapest.
func (s *solver) candidates(c *choice) []int {
	chosen := s.p.Offerings[c.offering]
	var able []int
	for i, o := range s.p.Offerings {
		if i != c.offering && o.Cloud == chosen.Cloud && s.holds(o, c.loads) {
			able = append(able, i)
		}
	}
	slices.SortStableFunc(able, func(a, b int) int { return cmp.Compare(s.p.Offerings[a].Price, s.p.Offerings[b].Price) })
	return append([]int{c.offering}, able[:min(len(able), maxCandidates-1)]...)
}

func (s *solver) holds(o drover.Offering, loads []drover.Load) bool {
	free := capacity(o)
	for _, l := range loads {
		shape := s.p.Demands[l.Demand].Shape
		if !shape.Accepts(o) || free.Times(shape.Need, l.Count) < l.Count {
			return false
		}
		free = free.Minus(shape.Need, l.Count)
	}
	return true
}

// why says what kept a demand from being served.
func (s *solver) why(d, count int) drover.Unmet {
	u := drover.Unmet{Demand: d, Count: count, Code: drover.ReasonLimit, Text: "the limit on instances is reached"}
	if s.steps <= 0 {
		u.Code, u.Text = drover.ReasonPlanning, fmt.Sprintf("the plan was cut off after %d steps", s.p.Steps)
		return u
	}
	for _, o := range s.p.Offerings {
		if s.p.Demands[d].Shape.Accepts(o) {
			return u
		}
	}
	u.Code, u.Text = drover.ReasonBlocked, "every offering that can hold it is blocked"
	return u
}
