package pack

import (
	"cmp"
	"slices"
)

// bin is a number of instances of one kind with identical contents.
type bin struct {
	kind  int
	n     int
	class int // of its longest job
	loads []load
}

// strategy is a packer's parameters. The best ones depend on the problem; several are tried.
type strategy struct {
	even       bool    // instances use their dimensions in the proportions that the jobs sent there need
	soft       float64 // the part of the prices given to dimensions nearly as scarce as the scarcest
	windows    []int   // window widths tried for each instance's pattern
	final      []int   // the same when every job gets the place where it costs least
	weighted   bool    // values are multiplied by the items' weights
	damp       int     // rent one in this many of the possible identical instances at a time
	thresholds []int64 // minimum worth of an instance's jobs in thousandths of its cost, round by round
}

// tries is how many kinds of a family are tried for an instance.
const tries = 4

// packer finds instances for the jobs of one class.
type packer struct {
	m     *model
	class int
	items []int
	left  []int // by item
	led   ledger
	last  []float64 // where the price search starts
	how   strategy
	taken []int
	steps *int
	bins  []bin
}

// run rents until nothing is left that can be served. First each valuing kind is filled with the jobs that the prices
// send to it, as long as they fill it well; the remainder is priced again. Finally every job gets the place where it
// costs least.
func (p *packer) run(pr *prices) {
	for _, threshold := range p.how.thresholds {
		for before := int64(1) << 62; pr.rest > 0 && pr.rest < before-before/8 && *p.steps > 0; {
			before = pr.rest
			p.fromPiles(pr, threshold)
			pr = p.price(again)
		}
	}
	for before := pr.rest + 1; pr.rest > 0 && pr.rest < before && *p.steps > 0; {
		before = pr.rest
		p.fromAll(pr)
		pr = p.price(effort{rounds: again.rounds})
	}
}

func (p *packer) price(e effort) *prices {
	return p.m.price(p.class, p.items, p.left, p.led, p.last, e, p.steps)
}

func (p *packer) stock(pr *prices) stock {
	return stock{m: p.m, class: p.class, dims: pr.dims, left: p.left, values: pr.values, excess: 1, taken: p.taken, steps: p.steps}
}

// fromAll rents for the most valuable jobs first, each where it is worth most of its cost, until a quarter of the value
// is served.
func (p *packer) fromAll(pr *prices) {
	s := p.stock(pr)
	if p.how.weighted {
		s.excess, s.values = maxWeight, slices.Clone(pr.values)
		for i := range s.values {
			s.values[i] = int64(float64(float64(s.values[i]) * p.m.weights[i]))
		}
	}
	s.order = slices.DeleteFunc(slices.Clone(p.items), func(i int) bool { return p.left[i] == 0 || pr.values[i] == 0 })
	s.sort()
	for goal := pr.rest / 2; goal >= 0 && *p.steps > 0; {
		seed := s.seed()
		if seed < 0 {
			return
		}
		best := p.best(&s, seed, p.rank(pr, seed), p.how.final, func(k int) measure { return pr.plain(p.m, k) })
		if best.loads == nil {
			s.from++
			continue
		}
		n := p.rent(&s, best)
		goal -= best.value * int64(n)
	}
}

// rank lists the kinds that fit the item by the part of their cost that it may cover, the best ones only.
func (p *packer) rank(pr *prices, i int) []int {
	type scored struct {
		kind  int
		score float64
	}
	it, list := &p.m.items[i], []scored{}
	for k := range p.m.kinds {
		x := pr.rival[k]
		if x < 0 || !p.m.accepts(&p.m.kinds[k], it) || p.m.room(p.led, &p.m.kinds[k], 1) == 0 {
			continue
		}
		own := pr.units[x].worth(&it.need)
		list = append(list, scored{k, float64(float64(pr.values[i])*pr.ideal(p.m, k)) / float64(own+1)})
	}
	*p.steps -= len(p.m.kinds)
	slices.SortStableFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(p.m.kinds[b.kind].price, p.m.kinds[a.kind].price))
	})
	kinds := make([]int, min(len(list), 2*tries))
	for x := range kinds {
		kinds[x] = list[x].kind
	}
	return kinds
}

// best returns the best pattern, over the kinds, that starts with the seed.
func (p *packer) best(s *stock, seed int, kinds, windows []int, by func(kind int) measure) (best pattern) {
	for _, k := range kinds {
		u := by(k)
		for _, w := range windows {
			if f := s.fill(k, seed, w, &u); f.beats(best) {
				best = f
			}
		}
	}
	if best.loads != nil {
		u := by(best.kind)
		s.localSearch(&best, &u)
	}
	return best
}

// rent books as many instances of the pattern as there are jobs and room for, divided by damp.
func (p *packer) rent(s *stock, f pattern) int {
	n := p.m.room(p.led, &p.m.kinds[f.kind], 1<<30)
	for _, l := range f.loads {
		n = min(n, s.left[l.item]/l.count)
	}
	n = max(1, n/p.how.damp)
	for _, l := range f.loads {
		s.left[l.item] -= n * l.count
		if &s.left[0] != &p.left[0] {
			p.left[l.item] -= n * l.count
		}
	}
	p.m.take(p.led, &p.m.kinds[f.kind], n)
	p.bins = append(p.bins, bin{kind: f.kind, n: n, class: p.class, loads: f.loads})
	return n
}
