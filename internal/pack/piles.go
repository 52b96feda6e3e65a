package pack

import "slices"

// pile is the jobs that the prices send to one kind, or to equally priced ones of its family.
type pile struct {
	stock
	rest int64 // its jobs' total worth
}

// fromPiles fills instances from each pile as long as their jobs are worth threshold thousandths of their cost.
func (p *packer) fromPiles(pr *prices, threshold int64) {
	for x, pl := range p.piles(pr) {
		if pl.order == nil || *p.steps <= 0 {
			continue
		}
		by := pr.aimed(p.m, x, p.how)
		pl.values = make([]int64, len(p.m.items))
		for _, i := range pl.order {
			v := 0.0
			for _, d := range pr.dims {
				v += float64(by.unit[d] * float64(p.m.items[i].need[d]))
			}
			pl.values[i] = int64(v)
			pl.rest += int64(v) * int64(pl.left[i])
		}
		pl.sort()
		p.fromPile(pl, pr.kinds[x], p.family(pr, x), by, threshold)
	}
}

// family lists the kinds with nearly as much for their cost as the one at index x, largest first.
func (p *packer) family(pr *prices, x int) (kinds []int) {
	for k := range p.m.kinds {
		if pr.rival[k] == x && pr.ideal(p.m, k) > 0.985 {
			kinds = append(kinds, k)
		}
	}
	slices.Reverse(kinds)
	return kinds
}

// patience is how many seeds in a row may fail before a pile is abandoned.
const patience = 30

func (p *packer) fromPile(pl *pile, of int, family []int, by measure, threshold int64) {
	for misses := 0; *p.steps > 0 && misses < patience; {
		seed := pl.seed()
		if seed < 0 {
			return
		}
		kinds := make([]int, 0, tries)
		for _, k := range family {
			kd := &p.m.kinds[k]
			if len(kinds) < tries && pl.rest >= part(kd.costs[p.class], threshold) && p.m.accepts(kd, &p.m.items[seed]) && p.m.room(p.led, kd, 1) > 0 {
				kinds = append(kinds, k)
			}
		}
		best := p.best(&pl.stock, seed, kinds, p.how.windows, func(k int) measure { return by.scaled(p.m, k, of) })
		if best.loads == nil || best.value < part(best.cost, threshold) {
			pl.from++
			misses++
			continue
		}
		misses = 0
		pl.rest -= best.value * int64(p.rent(&pl.stock, best))
	}
}

// part returns a number of thousandths of a cost.
func part(cost, thousandths int64) int64 { return cost/1000*thousandths + cost%1000*thousandths/1000 }

// piles divides the remaining jobs among the kinds in the proportions in which their classes went there, equally for
// more and less valuable jobs.
func (p *packer) piles(pr *prices) []*pile {
	list := make([]*pile, len(pr.kinds))
	for x := range list {
		list[x] = &pile{stock: p.stock(pr)}
	}
	for c := range pr.jobClasses {
		g := &pr.jobClasses[c]
		slices.SortStableFunc(g.items, func(a, b int) int { return int(min(1, max(-1, pr.values[b]-pr.values[a]))) })
		owed := make([]float64, len(g.kinds))
		for _, i := range g.items {
			for y := range owed {
				owed[y] += float64(float64(p.left[i])*g.flow[y]) / max(1, pr.flows)
			}
			p.divide(i, g.kinds, owed, list)
		}
	}
	return list
}

// divide gives the item's jobs to the piles that are owed most.
func (p *packer) divide(i int, kinds []int, owed []float64, list []*pile) {
	rest := p.left[i]
	give := func(y, n int) {
		pl := list[kinds[y]]
		if pl.order == nil {
			pl.left = make([]int, len(p.left))
		}
		if pl.left[i] == 0 {
			pl.order = append(pl.order, i)
		}
		pl.left[i] += n
		owed[y] -= float64(n)
		rest -= n
	}
	for y := range kinds {
		if n := min(rest, int(owed[y])); n > 0 {
			give(y, n)
		}
	}
	for rest > 0 {
		top := 0
		for y := range kinds {
			if owed[y] > owed[top] {
				top = y
			}
		}
		give(top, 1)
	}
}
