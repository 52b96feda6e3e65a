package pack

import (
	"math"
	"math/bits"
	"slices"
)

// prices split the cost of an instance of a kind among the dimensions in which it has room. By such a split each job
// has a worth on each kind that fits it: its share of each dimension, times the dimension's price; or, if it leaves no
// room for another job, the cost of the cheapest kind on which it leaves none. If a job is given the least of these, no
// instance holds jobs worth more than it costs. So the jobs' total worth is a lower bound for every plan, and a plan is
// near it if its instances are filled with jobs that are worth their cost. The splits with the greatest sum are the
// dual solution of a linear program (fractions of instances and of jobs); ascend approximates them.
type prices struct {
	class      int
	dims       []int     // relevant ones
	kinds      []int     // by which jobs are valued: no other kind has more room per cost in every dimension and fits the same jobs
	rival      []int     // for each kind of the model the index in kinds of one that is no worse, -1 if it is unavailable
	split      [][]int64 // for each of kinds, nano-dollars by dimension; their sum is at most the cost
	units      []units   // the same, per unit
	values     []int64   // of one job of each item; 0 if nothing can hold it
	rest       int64     // the total worth of all remaining jobs: the bound
	jobClasses []jobClass
	flows      float64   // how often the job classes were sent somewhere
	load       []float64 // what the job classes take of each dimension of kinds, in instances, on average
}

// effort is how long prices are searched for.
type effort struct {
	rounds int // of the ascent
	flows  int // after it, to see which jobs go where
}

// price finds prices for the items with jobs left. The search starts at w, by kind and dimension.
func (m *model) price(class int, items, left []int, led ledger, w []float64, e effort, steps *int) *prices {
	pr := &prices{class: class, values: make([]int64, len(m.items))}
	for d, used := range m.used {
		if used {
			pr.dims = append(pr.dims, d)
		}
	}
	m.findRivals(pr, led)
	m.classify(pr, items, left)
	a := m.newAscent(pr, w)
	if len(pr.jobClasses) == 1 && len(pr.dims) > 0 && e == opening { // for what is left of many, an ascent's flows make better drafts
		a.splitForOne()
		e = effort{flows: min(1, e.flows)}
	}
	pr.flows = float64(e.flows)
	a.ascend(e, steps)
	a.store(m, pr, w)
	m.value(pr, items, left, steps)
	return pr
}

// findRivals lists the kinds by which jobs are valued.
func (m *model) findRivals(pr *prices, led ledger) {
	pr.rival = make([]int, len(m.kinds))
	order := make([]int, 0, len(m.kinds))
	for k := range m.kinds {
		if pr.rival[k] = -1; m.room(led, &m.kinds[k], 1) > 0 {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return larger(m.kinds[a].has, m.kinds[b].has) })
	for _, k := range order {
		i := slices.IndexFunc(pr.kinds, func(r int) bool { return m.outperforms(&m.kinds[r], &m.kinds[k], pr.class) })
		if i < 0 {
			i = len(pr.kinds)
			pr.kinds = append(pr.kinds, k)
		}
		pr.rival[k] = i
	}
}

// outperforms reports whether a has at least as much room as b in every dimension, also per cost, and accepts whatever
// b accepts.
func (m *model) outperforms(a, b *kind, class int) bool {
	if b.rules&^a.rules != 0 {
		return false
	}
	for d, used := range m.used {
		if used && (a.has[d] < b.has[d] || less(a.has[d], a.costs[class], b.has[d], b.costs[class])) {
			return false
		}
	}
	return true
}

// value computes the jobs' worth.
func (m *model) value(pr *prices, items, left []int, steps *int) {
	for _, i := range items {
		if left[i] == 0 {
			continue
		}
		least, it := int64(math.MaxInt64), &m.items[i]
		for x, k := range pr.kinds {
			switch {
			case !m.accepts(&m.kinds[k], it):
			case m.fills(&m.kinds[k], it):
				least = min(least, m.kinds[it.filled].costs[pr.class])
			default:
				least = min(least, pr.units[x].worth(&it.need))
			}
		}
		*steps -= len(pr.kinds)
		if least < math.MaxInt64 {
			pr.values[i] = least
			pr.rest += least * int64(left[i])
		}
	}
}

// units are a kind's split as the price of a unit of each dimension, rounded down: in nano-dollars shifted left, so
// that valuing a job needs no divisions.
type units struct {
	price [dims]uint64
	shift [dims]int
}

func unitsOf(has vec, split []int64) (u units) {
	for d, s := range split {
		if s > 0 {
			u.shift[d] = bits.LeadingZeros64(uint64(s))
			u.price[d] = uint64(s) << u.shift[d] / uint64(has[d])
		}
	}
	return u
}

// worth returns the worth of a job with this need; it must fit the kind, so that no product exceeds the split.
func (u *units) worth(need *vec) (v int64) {
	for d, n := range need {
		v += int64(uint64(n) * u.price[d] >> u.shift[d])
	}
	return v
}

// measure is how patterns of a kind are made and valued.
type measure struct {
	unit [dims]float64 // price of a unit of each dimension: no job is worth more than what it takes
	aim  [dims]float64 // how much of each dimension to use, 0 where it does not matter
}

// aimed returns the measure for the kind at index x when filled with the jobs that go there.
//
// Dimensions nearly as scarce there as the scarcest get a part of the price, too: if two are almost equally scarce,
// prices at which one is free make instances that waste it until it is the scarce one. If how is even, the dimensions
// are used in the proportions that those jobs need: instances that take the jobs sparing a dimension leave others
// behind that then lack it.
func (pr *prices) aimed(m *model, x int, how strategy) (u measure) {
	const slight = 0.01
	n, most, sum := len(pr.dims), 1e-12, 0.0
	load, k := pr.load[x*n:x*n+n], &m.kinds[pr.kinds[x]]
	for _, l := range load {
		most = max(most, l)
	}
	var scarce [dims]float64
	for j, d := range pr.dims {
		part := load[j] / most
		if u.aim[d] = float64(k.has[d]); how.even {
			u.aim[d] = float64(part * u.aim[d])
		}
		if part < slight || k.has[d] == 0 {
			u.aim[d] = 0
			continue
		}
		scarce[d] = scarcity(part, how.even)
		sum += scarce[d]
	}
	cost := float64(k.costs[pr.class])
	for _, d := range pr.dims {
		if k.has[d] > 0 {
			u.unit[d] = float64((1-how.soft)*float64(pr.split[x][d])) / float64(k.has[d])
		}
		if u.aim[d] > 0 {
			u.unit[d] += float64(float64(how.soft*cost)*scarce[d]) / float64(sum*u.aim[d])
		}
	}
	return u
}

// scarcity returns the weight of a dimension, given its use relative to the scarcest.
func scarcity(part float64, even bool) float64 {
	squarings := 4
	if even {
		squarings = 2
	}
	for range squarings {
		part = float64(part * part)
	}
	return part
}

// plain returns the measure by the prices alone.
func (pr *prices) plain(m *model, k int) (u measure) {
	x := pr.rival[k]
	r := &m.kinds[pr.kinds[x]]
	for _, d := range pr.dims {
		u.aim[d] = float64(m.kinds[k].has[d])
		if r.has[d] > 0 {
			u.unit[d] = float64(pr.split[x][d]) / float64(r.has[d])
		}
	}
	return u
}

// ideal returns the largest part of a kind's cost that jobs can be worth on it, at the prices of its rival.
func (pr *prices) ideal(m *model, k int) float64 {
	x := pr.rival[k]
	if x < 0 {
		return 0
	}
	r, sum := &m.kinds[pr.kinds[x]], 0.0
	for _, d := range pr.dims {
		if r.has[d] > 0 {
			sum += float64(float64(pr.split[x][d])*float64(m.kinds[k].has[d])) / float64(r.has[d])
		}
	}
	return sum / float64(m.kinds[k].costs[pr.class])
}
