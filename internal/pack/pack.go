// Package pack solves a Problem: which instances to rent for jobs without a place, at the least cost. It is pure: the
// answer depends on the Problem alone. One greedy plan is always made; beyond that, work is bounded by the steps that
// the Problem allows, never by a clock.
//
// Identical jobs are counted, not listed (item); offerings dominated by another are left out (kind). The cost of an
// instance of a kind is split among its vCPUs, memory and so on by the prices at which all jobs together are worth most
// (prices, ascend). At these prices no instance holds jobs worth more than it costs. So the jobs' total worth is a
// lower bound for every plan, and a good plan fills each instance with jobs that are worth its cost. Therefore kinds
// are chosen first and then filled: each kind with the jobs that the prices send there (piles), as long as they fill it
// well, each pattern improved by swaps (localSearch); then the most valuable remaining jobs, until all are served
// (build). The result never costs more than the greedy plans (greedy), which serve one demand after the other. If
// limits leave demands unserved, the greedy plans decide: there the order counts.
package pack

import (
	"math"
	"slices"

	"drover"
)

// Solve solves the problem.
func Solve(p drover.Problem) drover.Plan { return solveUncertain(p) }

// answer solves a problem by the offerings' prices alone.
func answer(p drover.Problem) drover.Plan {
	if p.SpotShare > 0 {
		return spread(p, maxTurns)
	}
	return solve(p, 1)
}

// solve solves a problem without shares. An offering is left out if at least rivals others dominate it.
func solve(p drover.Problem, rivals int) drover.Plan {
	steps := p.Steps
	m := newModel(p, rivals)
	best := m.greedy(perJob, new(math.MaxInt)) // regardless of the steps: a plan that is cut off serves at least what this one does
	var pr *prices
	if m.total() > 1 && len(m.kinds) > 0 && p.JobsEach != 1 { // otherwise there is nothing to combine
		pr = m.first(&steps)
		best = m.cheapestOf(best, pr, &steps)
	}
	if m.splitsGang(best) { // smaller instances are cheaper, but there is no room for so many
		if d := m.greedy(fewest, new(math.MaxInt)); m.better(d, best) {
			best = d
		}
	}
	plan := m.answer(best)
	plan.Bound = drover.Money(m.bound(pr, best.left))
	return plan
}

// total returns the number of jobs.
func (m *model) total() (n int) {
	for _, it := range m.items {
		n += it.count
	}
	return n
}

// cheapestOf returns the draft or a better one. It stops looking once a draft is near the bound, or when a further one
// would probably run out of steps.
func (m *model) cheapestOf(best *draft, pr *prices, steps *int) *draft {
	if slices.ContainsFunc(m.items, func(it item) bool { return it.count > 1 }) { // otherwise it is what perJob makes
		if d := m.greedy(cheapest, steps); m.better(d, best) {
			best = d
		}
	}
	strategies := []strategy{sharp, even, fine}
	if len(m.items) > fewItems {
		strategies = []strategy{many, loose}
		if 4*len(m.items) < m.total() { // there are jobs to learn from
			strategies = []strategy{many, loose, learned, learned, learned}
		}
	}
	for took := 0; len(strategies) > 0 && *steps > took && best.cost > part(m.bound(pr, best.left), 1010); strategies = strategies[1:] {
		before := *steps
		d := m.priced(strategies[0], pr, steps)
		took = before - *steps
		m.learn(d, pr)
		if m.better(d, best) {
			best = d
		}
	}
	return best
}

// learn adjusts the items' weights to a draft: jobs on instances that cost more than their jobs are worth were hard to
// place. They count as worth more in the next draft that uses weights, which therefore serves them earlier.
func (m *model) learn(d *draft, pr *prices) {
	cost, count := make([]float64, len(m.items)), make([]float64, len(m.items))
	for _, b := range d.bins {
		worth := 1.0
		for _, l := range b.loads {
			worth += float64(float64(pr.values[l.item]*int64(l.count)) * m.weights[l.item])
		}
		for _, l := range b.loads {
			n := float64(b.n * l.count)
			cost[l.item] += float64(n*float64(m.kinds[b.kind].costs[b.class])) / worth
			count[l.item] += n
		}
	}
	for i := range m.weights {
		w := float64(m.weights[i] * math.Sqrt(cost[i]/max(1, count[i])))
		m.weights[i] = min(maxWeight, max(1/maxWeight, w))
	}
}

// splitsGang reports whether the draft has places for only a part of a gang.
func (m *model) splitsGang(d *draft) bool {
	for x, n := range m.unserved(d.left) {
		if together := m.p.Demands[x].Together; together > 0 && n%together > 0 {
			return true
		}
	}
	return false
}

// first returns the prices of all jobs for the longest time.
func (m *model) first(steps *int) *prices {
	d := m.newDraft()
	items := make([]int, len(m.items))
	for i := range items {
		items[i] = i
	}
	return m.price(0, items, d.left, d.led, m.evenly(), opening, steps)
}

// evenly returns the starting point of the price search when nothing is known.
func (m *model) evenly() []float64 {
	return slices.Repeat([]float64{1}, len(m.kinds)*dims)
}

// The strategies that do well: for jobs of many shapes, loose if few share an instance and many otherwise; for few
// shapes, any of the others may be the best. If shapes are many, but repeated, learned improves on earlier drafts.
var (
	sharp   = strategy{soft: 0.5, windows: []int{1, 4, 16}, final: []int{1, 4, 16}, damp: 2, thresholds: []int64{985, 970, 950, 920}}
	even    = strategy{soft: 0.5, windows: []int{1, 8}, final: []int{1, 8}, damp: 2, thresholds: []int64{985, 970, 950, 920}, even: true}
	fine    = strategy{soft: 0.5, windows: []int{1, 4, 16}, final: []int{1, 4, 16}, damp: 4, thresholds: []int64{990, 980, 970, 960, 950, 940, 920}}
	loose   = strategy{final: []int{1}, damp: 1}
	learned = strategy{final: []int{1, 4}, damp: 1, weighted: true}
	many    = strategy{soft: 0.3, windows: []int{1, 8}, final: []int{1}, damp: 2, thresholds: []int64{985, 970, 950, 920}, even: true}
)

// opening is the effort for the first prices of all jobs, again for those of the remaining ones.
var opening, again = effort{300, 200}, effort{60, 100}

// maxWeight is the greatest weight of an item; 1/maxWeight is the least.
const maxWeight = 1.3

// fewItems is the most items that count as few.
const fewItems = 200

// priced makes a draft by prices.
func (m *model) priced(how strategy, pr *prices, steps *int) *draft {
	d := m.newDraft()
	m.serve(d, how, pr, steps)
	m.serveRest(d, new(math.MaxInt)) // whatever the steps: a draft that is cut off keeps what it has
	d.cost = m.sum(d.bins)
	return d
}

// serveRest serves greedily what the prices skipped, such as jobs worth nothing.
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

// serve rents for everything left in the draft. The prices, if given, are for all of it.
func (m *model) serve(d *draft, how strategy, pr *prices, steps *int) {
	first := len(d.bins)
	for class := range m.classes {
		p := &packer{m: m, class: class, left: d.left, led: d.led, how: how, steps: steps, taken: make([]int, len(m.items)), last: m.evenly()}
		for i, it := range m.items {
			if it.class == class && d.left[i] > 0 {
				p.items = append(p.items, i)
			}
		}
		if len(p.items) == 0 || *steps <= 0 {
			continue
		}
		if first < len(d.bins) {
			m.fillUp(d, first, p.items, rentNothing, steps)
		}
		if pr == nil || len(m.classes) > 1 {
			pr = p.price(opening)
		}
		p.run(pr)
		d.bins = append(d.bins, p.bins...)
	}
}

// fillUp puts jobs on instances already rented, where they cost nothing, and on those that choose adds.
func (m *model) fillUp(d *draft, first int, items []int, choose chooser, steps *int) {
	var open openBins
	for _, b := range d.bins[first:] {
		for range b.n {
			one := b
			one.n, one.loads = 1, slices.Clone(b.loads)
			open.add(openBin{one, m.free(b)})
		}
	}
	for _, i := range items {
		m.serveGreedily(d, &open, i, d.left[i], choose, steps)
	}
	d.bins = d.bins[:first]
	for _, o := range open.bins {
		d.bins = append(d.bins, o.bin)
	}
}

func rentNothing(*model, *draft, int, int) (kind, n int) { return -1, 0 }
