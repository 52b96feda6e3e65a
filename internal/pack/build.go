package pack

import (
	"cmp"
	"slices"
)

// bin is a number of instances of one kind that hold the same.
type bin struct {
	kind  int
	n     int
	class int // of its longest job
	loads []load
}

// strategy is how a packer goes about its work. Which is best depends on the problem; several are tried.
type strategy struct {
	even       bool    // instances use their dimensions in the proportions in which the jobs that go there need them
	soft       float64 // the part of the prices that goes to the dimensions which are nearly as scarce as the scarcest
	windows    []int   // of the patterns that are tried for each instance
	tries      int     // kinds that are
	damp       int     // of the instances that might hold the same, one in so many is rented at a time
	thresholds []int64 // thousandths of their cost that jobs on instances must be worth, round after round
	first      effort
	again      effort
}

// packer finds instances for the jobs of one class.
type packer struct {
	m     *model
	class int
	items []int
	left  []int // by item
	led   ledger
	last  []float64 // where the search for prices begins
	how   strategy
	taken []int
	steps *int
	bins  []bin
}

// run rents until nothing is left that can be served. First each kind, of those by which jobs are valued, is filled with the jobs that the
// prices send to it, and only as long as they fill it well; what remains is priced again. In the end every job finds its place where it is
// dearest least.
func (p *packer) run(pr *prices) {
	for _, threshold := range p.how.thresholds {
		for before := int64(1) << 62; pr.rest > 0 && pr.rest < before-before/8 && *p.steps > 0; {
			before = pr.rest
			p.fromPiles(pr, threshold)
			pr = p.price(p.how.again)
		}
	}
	for before := pr.rest + 1; pr.rest > 0 && pr.rest < before && *p.steps > 0; {
		before = pr.rest
		p.fromAll(pr)
		pr = p.price(effort{rounds: p.how.again.rounds})
	}
}

func (p *packer) price(e effort) *prices {
	return p.m.price(p.class, p.items, p.left, p.led, p.last, e, p.steps)
}

func (p *packer) stock(pr *prices) stock {
	return stock{m: p.m, class: p.class, dims: pr.dims, left: p.left, values: pr.values, taken: p.taken, steps: p.steps}
}

// fromAll rents for the dearest jobs first, each where it is worth most of what it costs, until an eighth of all is served.
func (p *packer) fromAll(pr *prices) {
	s := p.stock(pr)
	s.order = slices.DeleteFunc(slices.Clone(p.items), func(i int) bool { return p.left[i] == 0 || pr.values[i] == 0 })
	s.sort()
	for goal := pr.rest / 4; goal >= 0 && *p.steps > 0; s.tidy() {
		seed := s.seed()
		if seed < 0 {
			return
		}
		best := p.best(&s, seed, p.rank(pr, seed), func(k int) measure { return pr.plain(p.m, k) })
		if best.loads == nil {
			s.from++
			continue
		}
		n := p.rent(&s, best)
		goal -= best.value * int64(n)
	}
}

// rank lists the kinds that can hold the item, those first of whose cost it may make good most, and only as many as are to be tried.
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
	kinds := make([]int, min(len(list), 2*p.how.tries))
	for x := range kinds {
		kinds[x] = list[x].kind
	}
	return kinds
}

// best is the best pattern of one of the kinds that begins with the seed.
func (p *packer) best(s *stock, seed int, kinds []int, by func(kind int) measure) (best pattern) {
	for _, k := range kinds {
		u := by(k)
		for _, w := range p.how.windows {
			if f := s.fill(k, seed, w, &u); f.beats(best) {
				best = f
			}
		}
	}
	s.localSearch(&best)
	return best
}

// rent books as many instances of the pattern as there are jobs and room for, or a part of them.
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
