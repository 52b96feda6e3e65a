package pack

import (
	"cmp"
	"math"
	"slices"

	"drover"
)

// maxCandidates is how many offerings an instance may be tried from, so that a shortage costs one call.
const maxCandidates = 5

// fewBins is for how many bins scanning all offerings per bin is faster than sorting them.
const fewBins = 8

// answer turns the draft into a plan: each demand's jobs in the order of the demands.
func (m *model) answer(d *draft) drover.Plan {
	plan := drover.Plan{Problem: m.p.ID, Cost: drover.Money(d.cost)}
	left := m.supplies()
	var byPrice []int
	shared := m.sharesLeft(d.led)
	bins := merged(d.bins)
	few := len(bins) <= fewBins && shared == nil
	if !few {
		byPrice = m.byPrice()
	}
	for _, b := range bins {
		if few {
			byPrice = m.nearest(b)
		}
		var candidates []int
		var runnerUp *int
		for n := range b.n {
			if n == 0 || shared != nil {
				candidates, runnerUp = m.candidates(b, byPrice, shared)
			}
			plan.Purchases = append(plan.Purchases, drover.Purchase{Candidates: candidates, Loads: left.loads(b), RunnerUp: runnerUp})
		}
	}
	for x, n := range m.unserved(d.left) {
		if n > 0 {
			plan.Unmet = append(plan.Unmet, m.why(d, x, n))
		}
	}
	return plan
}

// merged merges neighbours that differ in number only.
func merged(bins []bin) (all []bin) {
	for _, b := range bins {
		if n := len(all) - 1; n >= 0 && all[n].kind == b.kind && all[n].class == b.class && slices.Equal(all[n].loads, b.loads) {
			all[n].n += b.n
		} else {
			all = append(all, b)
		}
	}
	return all
}

// supply is an item's jobs without an instance, those of earlier demands first.
type supply []drover.Load

func (m *model) supplies() supplies {
	g := make(supplies, len(m.items))
	for x, item := range m.of {
		if n := m.p.Demands[x].Count; n > 0 {
			g[item] = append(g[item], drover.Load{Demand: x, Count: n})
		}
	}
	return g
}

// supplies is the supply of each item.
type supplies []supply

// loads takes the jobs of one instance of the bin from the supplies.
func (g supplies) loads(b bin) (loads []drover.Load) {
	for _, l := range b.loads {
		for n := l.count; n > 0; {
			from := &g[l.item][0]
			some := min(n, from.Count)
			loads = append(loads, drover.Load{Demand: from.Demand, Count: some})
			n -= some
			if from.Count -= some; from.Count == 0 {
				g[l.item] = g[l.item][1:]
			}
		}
	}
	slices.SortFunc(loads, func(a, b drover.Load) int { return cmp.Compare(a.Demand, b.Demand) })
	merged := loads[:0]
	for _, l := range loads {
		if last := len(merged) - 1; last >= 0 && merged[last].Demand == l.Demand {
			merged[last].Count += l.Count
		} else {
			merged = append(merged, l)
		}
	}
	return merged
}

// byPrice lists the offerings, cheapest first for the longest time.
func (m *model) byPrice() []int {
	all := make([]ranked, len(m.p.Offerings))
	for i := range all {
		all[i] = ranked{m.rank(&m.p.Offerings[i], 0), i}
	}
	slices.SortFunc(all, dearer)
	order := make([]int, len(all))
	for x, one := range all {
		order[x] = one.at
	}
	return order
}

// nearest lists, cheapest first, as many offerings as candidates can use for the bin.
func (m *model) nearest(b bin) (list []int) {
	chosen := &m.p.Offerings[m.kinds[b.kind].offering]
	need, rules := m.loaded(b)
	other, most := ranked{at: -1}, int64(math.MaxInt64)
	near := make([]ranked, 0, maxCandidates+2)
	for i := range m.p.Offerings {
		o := &m.p.Offerings[i]
		one := ranked{m.rank(o, 0), i}
		if one.rank >= most || !m.holds(o, need, rules) {
			continue // an equally expensive one came before
		}
		if (o.Cloud != chosen.Cloud || o.Type.Name != chosen.Type.Name) && (other.at < 0 || one.rank < other.rank) {
			other = one
		}
		if o.Cloud == chosen.Cloud {
			at, _ := slices.BinarySearchFunc(near, one, dearer)
			near = slices.Insert(near, at, one)
			near = near[:min(len(near), maxCandidates+1)]
		}
		if other.at >= 0 && len(near) > maxCandidates {
			most = max(other.rank, near[maxCandidates].rank)
		}
	}
	if other.at >= 0 && !slices.Contains(near, other) {
		near = append(near, other)
		slices.SortFunc(near, dearer)
	}
	for _, one := range near {
		list = append(list, one.at)
	}
	return list
}

// ranked is an offering's index and rank.
type ranked struct {
	rank int64
	at   int
}

func dearer(a, b ranked) int { return cmp.Or(cmp.Compare(a.rank, b.rank), a.at-b.at) }

// candidates lists the offerings of the same cloud that fit one instance of the bin, the chosen one first, then the
// cheapest; and finds the cheapest of another type in any cloud. An offering that has reached its share may be the
// runner-up, but not a candidate.
func (m *model) candidates(b bin, byPrice []int, shared *sharesLeft) (list []int, runnerUp *int) {
	chosen := m.kinds[b.kind].offering
	list = []int{chosen}
	need, rules := m.loaded(b)
	of := &m.p.Offerings[chosen]
	for _, i := range byPrice {
		o := &m.p.Offerings[i]
		same := o.Cloud == of.Cloud
		other := runnerUp == nil && (!same || o.Type.Name != of.Type.Name)
		if i == chosen || !(same && len(list) < maxCandidates) && !other || !m.holds(o, need, rules) {
			continue
		}
		if same && len(list) < maxCandidates && shared.take(m, i) {
			list = append(list, i)
		}
		if other {
			runnerUp = &i
		}
		if runnerUp != nil && len(list) == maxCandidates {
			break
		}
	}
	return list, runnerUp
}

// loaded returns what one instance of the bin holds in total, and the rules of its jobs.
func (m *model) loaded(b bin) (need vec, rules []int) {
	for _, l := range b.loads {
		need = need.minus(m.items[l.item].need, -l.count)
		if r := m.items[l.item].rule; !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	return need, rules
}

func (m *model) holds(o *drover.Offering, need vec, rules []int) bool {
	return m.capacity(o).fits(need) && !slices.ContainsFunc(rules, func(r int) bool { return !m.rules[r].allows(o) })
}
