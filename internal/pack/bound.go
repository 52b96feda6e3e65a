package pack

import "drover"

// bound is what no plan for the same jobs can cost less than: the values of the jobs at some prices, or what the dearest of them costs alone.
// The prices are those for the longest time; a job that is shorter is worth as much less, so that the jobs of an instance together are worth
// no more than the longest one's time costs, however they are mixed.
func (m *model) bound(pr *prices, left []int) int64 {
	sum, alone := int64(0), int64(0)
	for i, it := range m.items {
		served := it.count - left[i]
		if served == 0 {
			continue
		}
		v := int64(0)
		if pr != nil {
			v = int64(drover.Money(pr.values[i]).Part(int64(m.classes[it.class]), int64(m.classes[0])))
		}
		sum += v * int64(served)
		alone = max(alone, m.alone(&it))
	}
	return max(sum, alone)
}

// alone is what the cheapest instance costs that holds one job of the item; kinds are sorted by price.
func (m *model) alone(it *item) int64 {
	for k := range m.kinds {
		if m.accepts(&m.kinds[k], it) {
			return m.kinds[k].costs[it.class]
		}
	}
	return 0
}
