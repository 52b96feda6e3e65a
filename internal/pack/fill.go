package pack

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
)

// load is a number of jobs of an item.
type load struct{ item, count int }

// stock is jobs from which instances are filled.
type stock struct {
	m      *model
	class  int
	dims   []int   // relevant ones
	left   []int   // by item
	values []int64 // of one job, by item
	excess float64 // the most that a job is worth of what it takes
	order  []int   // items, most valuable first
	from   int     // items before it in order are used up
	taken  []int   // by item, in the current pattern
	steps  *int
	needs  fitTree // of the items in order, negative: a need fits into a room if the negative room fits into the negative need
}

// sort orders the items by value, and indexes them.
func (s *stock) sort() {
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.values[b], s.values[a]) })
	if len(s.order) > fewPositions {
		s.needs = newFitTree(len(s.order), 1<<bits.Len(uint(len(s.order))), func(p int) vec { return s.m.items[s.order[p]].need.negative() })
	}
	*s.steps -= len(s.order)
}

// seed returns the most valuable item with jobs left, -1 if there is none.
func (s *stock) seed() int {
	for ; s.from < len(s.order); s.from++ {
		if i := s.order[s.from]; s.left[i] > 0 {
			return i
		}
	}
	return -1
}

// pattern is what one instance might hold.
type pattern struct {
	kind  int
	loads []load
	value int64
	cost  int64
}

// beats reports whether f covers more of its cost than g, or as much of a higher cost.
func (f pattern) beats(g pattern) bool {
	if g.loads == nil {
		return true
	}
	return less(g.value, g.cost, f.value, f.cost) || !less(f.value, f.cost, g.value, g.cost) && f.cost > g.cost
}

// reach is how many fitting items are examined for each choice in a pattern. Filling an instance with jobs of one item
// takes at least chunk choices.
const reach, chunk = 150, 16

// fill fills an instance of the kind, starting with a job of the seed. Each further choice is, among the window most
// valuable items that fit, the one worth most for its part of the free room. The units are prices at which no job is
// worth more than what it takes.
func (s *stock) fill(k, seed, window int, by *measure) pattern {
	kd := &s.m.kinds[k]
	f := pattern{kind: k, cost: kd.costs[s.class]}
	free := kd.has
	for i, n, at := seed, 1, s.from; i >= 0; i, n, at = s.next(kd, free, at, window, by) {
		if s.taken[i] == 0 {
			f.loads = append(f.loads, load{item: i})
		}
		s.taken[i] += n
		f.value += s.values[i] * int64(n)
		free = free.minus(s.m.items[i].need, n)
	}
	for x := range f.loads {
		l := &f.loads[x]
		l.count, s.taken[l.item] = s.taken[l.item], 0
	}
	return f
}

// next returns the item to take, how many of its jobs, and from where in the order to continue; -1 if nothing fits.
func (s *stock) next(kd *kind, free vec, at, window int, by *measure) (item, n, next int) {
	at = s.affordable(at, free, by)
	aim, room := by.rest(kd, free, s.dims), free.negative()
	best, density, first := -1, 0.0, -1
	for p, tries := s.fitting(at, &room), reach; p < len(s.order) && window > 0 && tries > 0; p, tries = s.fitting(p+1, &room), tries-1 {
		i := s.order[p]
		it := &s.m.items[i]
		if s.left[i] <= s.taken[i] || !free.fits(it.need) || !s.m.allowed(kd, it.rule) {
			continue
		}
		window--
		if first < 0 {
			first = p
		}
		if d := s.density(i, &aim); best < 0 || d > density {
			best, density = i, d
		}
	}
	if best < 0 {
		return -1, 0, 0
	}
	fit := free.times(s.m.items[best].need, s.left[best]-s.taken[best])
	return best, max(1, fit/chunk), first
}

// affordable returns the first position in the order, from one on, of an item worth no more than the room.
func (s *stock) affordable(from int, room vec, by *measure) int {
	most := 1.0
	for _, d := range s.dims {
		most += float64(by.unit[d] * float64(room[d]))
	}
	return from + sort.Search(len(s.order)-from, func(x int) bool { return float64(s.values[s.order[from+x]]) <= float64(most*s.excess) })
}

// fewPositions is for how many positions trying each is faster than searching the tree.
const fewPositions = 64

// fitting returns the first position in the order, from one on, whose item may fit into the room, given as a negative;
// the end of the order if there is none.
func (s *stock) fitting(from int, room *vec) int {
	*s.steps--
	if len(s.order) <= fewPositions {
		return from
	}
	return s.search(from, room)
}

// search returns what fitting does, for many positions.
func (s *stock) search(from int, room *vec) int {
	for p := s.needs.next(from, *room, s.steps); p >= 0; p = s.needs.next(p+1, *room, s.steps) {
		if s.left[s.order[p]] > 0 {
			return p
		}
		s.needs.set(p, none)
	}
	return len(s.order)
}

// density returns a job's worth per part that it takes of what is still to be taken.
func (s *stock) density(i int, aim *[dims]float64) float64 {
	part, it := 1e-9, &s.m.items[i]
	for _, d := range s.dims {
		if aim[d] > 0 {
			part += float64(it.need[d]) / aim[d]
		}
	}
	return float64(s.values[i]+1) / part
}

// rest returns what is still to be taken of each dimension, given what is free.
func (u *measure) rest(kd *kind, free vec, ds []int) (aim [dims]float64) {
	const least = 0.001
	for _, d := range ds {
		aim[d] = max(float64(least*u.aim[d]), u.aim[d]-float64(kd.has[d]-free[d]))
	}
	return aim
}

// scaled returns the measure for another kind of the family.
func (u measure) scaled(m *model, k, of int) measure {
	for d := range u.aim {
		if has := m.kinds[of].has[d]; has > 0 {
			u.aim[d] = float64(u.aim[d]*float64(m.kinds[k].has[d])) / float64(has)
		}
	}
	return u
}
