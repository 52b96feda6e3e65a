// Package pack answers a Problem: which instances to rent for jobs that have no place, so that the work costs least. It is pure: the answer
// depends on the Problem alone. One plain plan is always made; beyond that its work is bounded by the steps that the Problem allows, never by a
// clock.
//
// Jobs that are alike are counted, not listed (item); offerings of which another is as good in every way are left out (kind). What an
// instance of a kind costs is split among its vCPUs, memory and so on by prices at which all jobs together are worth most (prices, ascend).
// At these prices no instance holds jobs that are worth more than it costs, so their worth is a bound for every plan, and what is good is known:
// instances filled with jobs that are worth what they cost. So the kind is chosen, then filled: first each kind with the jobs that the prices
// send there (piles), as long as that fills it well, each pattern bettered by swaps (localSearch); then what is dearest finds a place, until all is
// served (build). The result is never dearer than that of the plain ways (plain), which serve one demand after the other and are what is done when
// limits leave demands unserved: there the order counts.
package pack

import (
	"math"
	"slices"

	"drover"
)

// Solve answers the problem.
func Solve(p drover.Problem) drover.Plan { return evened(p) }

// answer is an answer by the prices of the offerings alone.
func answer(p drover.Problem) drover.Plan {
	if p.SpotShare > 0 {
		return spread(p)
	}
	return solve(p, 1)
}

// solve answers a problem without shares. Offerings are left out of which as many others as the rivals are better in every way.
func solve(p drover.Problem, rivals int) drover.Plan {
	steps := p.Steps
	m := newModel(p, rivals)
	best := m.plainly(perJob, new(math.MaxInt)) // whatever the steps: a plan that is cut off serves all that this one does
	var pr *prices
	if m.total() > 1 && len(m.kinds) > 0 && p.JobsEach != 1 { // else there is nothing to put together
		pr = m.first(&steps)
		best = m.cheapestOf(best, pr, &steps)
	}
	plan := m.answer(best)
	plan.Bound = drover.Money(m.bound(pr, best.left))
	return plan
}

// total is how many jobs there are.
func (m *model) total() (n int) {
	for _, it := range m.items {
		n += it.count
	}
	return n
}

// cheapestOf is the draft, or a better one. When one is near the bound, no other is looked for.
func (m *model) cheapestOf(best *draft, pr *prices, steps *int) *draft {
	if d := m.plainly(cheapest, steps); m.better(d, best) {
		best = d
	}
	strategies := []strategy{many}
	if len(m.items) <= fewItems {
		strategies = []strategy{sharp, even, fine}
	}
	for _, how := range strategies {
		if best.cost <= part(m.bound(pr, best.left), 1010) {
			break
		}
		if d := m.priced(how, pr, steps); m.better(d, best) {
			best = d
		}
	}
	return best
}

// first is the prices of all jobs for the longest time.
func (m *model) first(steps *int) *prices {
	d := m.newDraft()
	items := make([]int, len(m.items))
	for i := range items {
		items[i] = i
	}
	return m.price(0, items, d.left, d.led, m.evenly(), opening, steps)
}

// evenly is where the search for prices begins when nothing is known.
func (m *model) evenly() []float64 {
	w := make([]float64, len(m.kinds)*dims)
	for x := range w {
		w[x] = 1
	}
	return w
}

// The strategies that do well: the last one for jobs of many shapes, and any of the others may be the best one for those of few.
var (
	sharp = strategy{soft: 0.5, windows: []int{1, 4, 16}, tries: 4, damp: 2, thresholds: []int64{985, 970, 950, 920}, first: opening, again: effort{60, 100}}
	even  = strategy{soft: 0.5, windows: []int{1, 8}, tries: 4, damp: 2, thresholds: []int64{985, 970, 950, 920}, first: opening, again: effort{60, 100}, even: true}
	fine  = strategy{soft: 0.5, windows: []int{1, 4, 16}, tries: 4, damp: 4, thresholds: []int64{990, 980, 970, 960, 950, 940, 920}, first: opening, again: effort{60, 100}}
	many  = strategy{soft: 0.3, windows: []int{1, 8}, tries: 4, damp: 2, thresholds: []int64{985, 970, 950, 920}, first: opening, again: effort{60, 100}, even: true}
)

// opening is the effort for the first prices of all jobs.
var opening = effort{300, 200}

// fewItems is how many items are few.
const fewItems = 200

// priced is a draft made by prices.
func (m *model) priced(how strategy, pr *prices, steps *int) *draft {
	d := m.newDraft()
	m.serve(d, how, pr, steps)
	m.serveRest(d, steps)
	d.cost = m.sum(d.bins)
	return d
}

// serveRest serves plainly what the prices passed over, such as jobs that are worth nothing.
func (m *model) serveRest(d *draft, steps *int) {
	var items []int
	for i := range d.left {
		if d.left[i] > 0 {
			items = append(items, i)
		}
	}
	if len(items) > 0 {
		m.fillUp(d, 0, items, perJob, steps)
	}
}

// serve rents for all that is left in the draft. The prices, if there are any, are those of all of it.
func (m *model) serve(d *draft, how strategy, pr *prices, steps *int) {
	first := len(d.bins)
	for class := range m.classes {
		p := &packer{m: m, class: class, left: d.left, led: d.led, how: how, steps: steps, taken: make([]int, len(m.items)), last: m.evenly()}
		for i, it := range m.items {
			if it.class == class && d.left[i] > 0 {
				p.items = append(p.items, i)
			}
		}
		if len(p.items) == 0 {
			continue
		}
		if first < len(d.bins) {
			m.fillUp(d, first, p.items, rentNothing, steps)
		}
		if pr == nil || len(m.classes) > 1 {
			pr = p.price(how.first)
		}
		p.run(pr)
		d.bins = append(d.bins, p.bins...)
	}
}

// fillUp puts jobs on instances that are rented already, where they cost nothing, and on what is then chosen.
func (m *model) fillUp(d *draft, first int, items []int, choose chooser, steps *int) {
	var open openBins
	for _, b := range d.bins[first:] {
		for range b.n {
			one := b
			one.n, one.loads = 1, slices.Clone(b.loads)
			open.add(plainBin{one, m.free(b)})
		}
	}
	for _, i := range items {
		m.servePlainly(d, &open, i, d.left[i], choose, steps)
	}
	d.bins = d.bins[:first]
	for _, o := range open.bins {
		d.bins = append(d.bins, o.bin)
	}
}

func rentNothing(*model, *draft, int, int) (kind, n int) { return -1, 0 }
