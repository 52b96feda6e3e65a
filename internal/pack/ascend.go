package pack

import "slices"

// ascent is the search for the splits by which jobs are worth most. It is multiplicative: every crowd is sent where it is worth least, and
// on each kind the dimensions that were wanted most, on an average that forgets, make up a larger part of the cost. The step grows while that
// helps and shrinks, back at the best splits, when it does not (as in the volume algorithm of Barahona and Anbil, 2000).
type ascent struct {
	pr   *prices
	n    int       // dimensions
	cost []float64 // by kind
	w    []float64 // the parts of the cost that the dimensions make up, by kind and dimension
	best []float64 // the parts for which the sum was the greatest
	load []float64 // what was wanted of each dimension on the average
	now  []float64 // and in this round
}

// newAscent begins with equal parts, or where the last ascent ended.
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

func (a *ascent) ascend(e effort, steps *int) {
	size := 0
	for _, g := range a.pr.crowds {
		size += len(g.kinds)
	}
	const stales, flowStep = 10, 0.1
	most, step, stale := -1.0, 1.0, 0
	for range e.rounds {
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
	for range e.flows {
		a.move(a.round(true), flowStep, 0)
	}
	*steps -= (e.rounds + e.flows) * size
}

// round sends every crowd where it is worth least and returns the sum of the values.
func (a *ascent) round(count bool) (sum float64) {
	n := a.n
	clear(a.now)
	for c := range a.pr.crowds {
		g := &a.pr.crowds[c]
		at, least := 0, 0.0
		for y, x := range g.kinds {
			w, s := a.w[x*n:x*n+n], g.shares[y*n:y*n+n]
			v := 0.0
			for j := range w {
				v += float64(w[j] * s[j])
			}
			if v = float64(v * a.cost[x]); y == 0 || v < least {
				at, least = y, v
			}
		}
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

// move makes dearer, on each kind, what was wanted most there. keep is the part of the average that is not forgotten.
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

// store writes down the splits in whole nano-dollars, what the crowds take, and in last where to begin the next time.
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
	}
	pr.load = make([]float64, n*len(pr.kinds))
	for _, g := range pr.crowds {
		for y, x := range g.kinds {
			for j := range n {
				pr.load[x*n+j] += float64(g.shares[y*n+j]*g.flow[y]) / max(1, pr.flows)
			}
		}
	}
}
