package pack

import "drover"

// bound is what no plan for the same jobs can cost less than: the values of the jobs at some prices, or what the dearest of them costs alone.
// The prices are those for the longest time; a job that is shorter is worth as much less as where instances boot soonest, so that the jobs of an
// instance together are worth no more than the longest one's time costs, however they are mixed.
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

// alone is what the cheapest instance costs that holds one job of the item; 0 if none does.
func (m *model) alone(it *item) int64 {
	k := m.cheapest(it, func(*kind) bool { return true })
	if k < 0 {
		return 0
	}
	return m.kinds[k].costs[it.class]
}

// cheapest is the kind that costs least of those that hold a job of the item and may be had; -1 if there is none. Kinds are sorted by what they cost
// for the longest time, and where all boot alike for every other.
func (m *model) cheapest(it *item, may func(*kind) bool) (best int) {
	best = -1
	for k := range m.kinds {
		kd := &m.kinds[k]
		if best >= 0 && kd.costs[it.class] >= m.kinds[best].costs[it.class] || !m.accepts(kd, it) || !may(kd) {
			continue
		}
		best = k
		if !m.apart() || it.class == 0 {
			break
		}
	}
	return best
}
