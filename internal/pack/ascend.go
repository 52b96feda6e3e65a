package pack

import (
	"math"
	"slices"
)

// ascent searches for the splits that maximize the jobs' worth. It is multiplicative: every job class goes where it is
// worth least, and on each kind the dimensions in highest demand, by a decaying average, get a larger part of the cost.
// The step grows while that helps and shrinks, back at the best splits, when it does not (as in the volume algorithm of
// Barahona and Anbil, 2000).
type ascent struct {
	pr   *prices
	n    int       // number of dimensions
	cost []float64 // by kind
	w    []float64 // the dimensions' parts of the cost, by kind and dimension
	best []float64 // the parts with the greatest sum so far
	load []float64 // average demand for each dimension
	now  []float64 // the same in this round
	v    []float64 // the current job class's worth on each of its kinds
	size int       // counts kinds examined
}

// newAscent starts with equal parts, or where the last ascent ended.
func (m *model) newAscent(pr *prices, last []float64) *ascent {
	n, size := len(pr.dims), len(pr.dims)*len(pr.kinds)
	a := &ascent{pr: pr, n: n, cost: make([]float64, len(pr.kinds)), w: make([]float64, size), best: make([]float64, size), load: make([]float64, size), now: make([]float64, size)}
	for x, k := range pr.kinds {
		a.cost[x] = float64(m.kinds[k].costs[pr.class])
		sum := 0.0
		for j, d := range pr.dims {
			if m.kinds[k].has[d] > 0 {
				a.w[x*n+j] = max(1e-6, last[k*dims+d])
				sum += a.w[x*n+j]
			}
		}
		for j := range n {
			a.w[x*n+j] /= max(sum, 1e-6)
		}
	}
	copy(a.best, a.w)
	return a
}

// splitForOne makes the splits that maximize the worth of the only job class: the dimension of which it takes most has
// the whole cost.
func (a *ascent) splitForOne() {
	g, n := &a.pr.jobClasses[0], a.n
	for y, x := range g.kinds {
		best := a.best[x*n : x*n+n]
		clear(best)
		shares := g.shares[y*n : y*n+n]
		best[slices.Index(shares, slices.Max(shares))] = 1
	}
	a.size += len(g.kinds)
}

func (a *ascent) ascend(e effort, steps *int) {
	const stales, flowStep = 10, 0.1
	most, step, stale := -1.0, 1.0, 0
	for round := range e.rounds {
		if round%every == 0 {
			a.survey()
		}
		sum := a.round(false)
		if sum > most {
			most, stale, step = sum, 0, min(4, float64(step*1.15))
			copy(a.best, a.w)
		} else if stale++; stale > stales {
			stale, step = 0, float64(step*0.7)
			copy(a.w, a.best)
		}
		a.move(sum, step, 0.8)
	}
	copy(a.w, a.best)
	a.survey()
	for range e.flows {
		a.move(a.round(true), flowStep, 0)
	}
	*steps -= a.size
}

// every is the number of rounds between surveys of all kinds. In between, a class is valued only on the kinds where it
// was worth at most near times as much as on the best: prices seldom move further in so few rounds.
const every, near = 20, 4

// survey finds for each job class the kinds to which it may go in the next rounds.
func (a *ascent) survey() {
	for c := range a.pr.jobClasses {
		g := &a.pr.jobClasses[c]
		a.v = a.v[:0]
		least := math.MaxFloat64
		for y := range g.kinds {
			v := a.worth(g, y)
			least = min(least, v)
			a.v = append(a.v, v)
		}
		g.near = g.near[:0]
		for y, v := range a.v {
			if v <= float64(least*near) {
				g.near = append(g.near, y)
			}
		}
		a.size += len(g.kinds)
	}
}

// worth returns a job class's worth on its y-th kind.
func (a *ascent) worth(g *jobClass, y int) (v float64) {
	n, x := a.n, g.kinds[y]
	w, s := a.w[x*n:x*n+n], g.shares[y*n:y*n+n]
	for j := range w {
		v += float64(w[j] * s[j])
	}
	return float64(v * a.cost[x])
}

// round sends every job class where it is worth least and returns the sum of the values.
func (a *ascent) round(count bool) (sum float64) {
	n := a.n
	clear(a.now)
	for c := range a.pr.jobClasses {
		g := &a.pr.jobClasses[c]
		at, least := 0, math.MaxFloat64
		for _, y := range g.near {
			if v := a.worth(g, y); v < least {
				at, least = y, v
			}
		}
		a.size += len(g.near)
		if count {
			g.flow[at]++
		}
		sum += least
		for j := range n {
			a.now[g.kinds[at]*n+j] += g.shares[at*n+j]
		}
	}
	return sum
}

// move raises, on each kind, the prices of the dimensions in highest demand. keep is the weight of the old average.
func (a *ascent) move(sum, step, keep float64) {
	n := a.n
	for x := range a.cost {
		w, load, now := a.w[x*n:x*n+n], a.load[x*n:x*n+n], a.now[x*n:x*n+n]
		mean, norm := 0.0, 0.0
		for j := range w {
			load[j] = float64(load[j]*keep) + float64(now[j]*(1-keep))
			mean += float64(w[j] * load[j])
		}
		scale := float64(a.cost[x]*step) / max(sum, 1)
		for j := range w {
			w[j] = float64(w[j] * min(2, max(0.5, 1+float64((load[j]-mean)*scale))))
			norm += w[j]
		}
		for j := range w {
			w[j] /= max(norm, 1e-12)
		}
	}
}

// store records the splits in whole nano-dollars, what the job classes take, and in last where to start next time.
func (a *ascent) store(m *model, pr *prices, last []float64) {
	n := a.n
	for x, k := range pr.kinds {
		cost, sum, split := m.kinds[k].costs[pr.class], int64(0), make([]int64, dims)
		for j, d := range pr.dims {
			last[k*dims+d] = a.best[x*n+j]
			split[d] = int64(float64(a.best[x*n+j] * float64(cost)))
			sum += split[d]
		}
		if sum > cost {
			split[slices.Index(split, slices.Max(split))] -= sum - cost
		}
		pr.split = append(pr.split, split)
		pr.units = append(pr.units, unitsOf(m.kinds[k].has, split))
	}
	pr.load = make([]float64, n*len(pr.kinds))
	for _, g := range pr.jobClasses {
		for y, x := range g.kinds {
			for j := range n {
				pr.load[x*n+j] += float64(g.shares[y*n+j]*g.flow[y]) / max(1, pr.flows)
			}
		}
	}
}
