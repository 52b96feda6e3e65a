package pack

import "drover"

// bound returns a lower bound for the cost of any plan for the same jobs: the jobs' values at some prices, or the cost
// of the most expensive job alone. The prices are those for the longest time; a shorter job is worth proportionally
// less, by the shortest boot time, so that an instance's jobs together are worth no more than its cost for the longest
// one, however they are mixed.
func (m *model) bound(pr *prices, left []int) int64 {
	sum, alone, boot := int64(0), int64(0), m.leastBoot()
	for i, it := range m.items {
		served := it.count - left[i]
		if served == 0 {
			continue
		}
		v := int64(0)
		if pr != nil {
			v = int64(drover.Money(pr.values[i]).Part(int64(boot+m.classes[it.class]), int64(boot+m.classes[0])))
		}
		sum += v * int64(served)
		alone = max(alone, m.alone(&it))
	}
	return max(sum, alone)
}

// alone returns the cost of the cheapest instance that holds one job of the item; 0 if none does.
func (m *model) alone(it *item) int64 {
	k := m.cheapest(it, func(*kind) bool { return true })
	if k < 0 {
		return 0
	}
	return m.kinds[k].costs[it.class]
}

// cheapest returns the cheapest kind that holds a job of the item and that may allows; -1 if there is none. Kinds are
// sorted by cost for the longest time and, if all boot alike, thereby for every other.
func (m *model) cheapest(it *item, may func(*kind) bool) (best int) {
	best = -1
	for k := range m.kinds {
		kd := &m.kinds[k]
		if best >= 0 && kd.costs[it.class] >= m.kinds[best].costs[it.class] || !m.accepts(kd, it) || !may(kd) {
			continue
		}
		best = k
		if !m.bootsDiffer() || it.class == 0 {
			break
		}
	}
	return best
}
