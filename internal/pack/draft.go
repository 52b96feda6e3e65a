package pack

import "slices"

// draft is a way to serve the jobs.
type draft struct {
	bins []bin
	left []int // unplaced jobs, by item
	led  ledger
	cost int64
}

func (m *model) newDraft() *draft {
	d := &draft{led: m.newLedger()}
	for _, it := range m.items {
		d.left = append(d.left, it.count)
	}
	return d
}

// sum returns what the bins' instances cost.
func (m *model) sum(bins []bin) (cost int64) {
	for _, b := range bins {
		cost += m.kinds[b.kind].costs[b.class] * int64(b.n)
	}
	return cost
}

// better reports whether a serves more of the first demand that they serve differently, or the same for less, or with
// fewer instances.
func (m *model) better(a, b *draft) bool {
	if slices.Equal(a.left, b.left) {
		return a.cost < b.cost || a.cost == b.cost && a.led[0] > b.led[0]
	}
	unmetA, unmetB := m.unserved(a.left), m.unserved(b.left)
	return slices.Compare(unmetA, unmetB) < 0
}

// unserved returns how many jobs of each demand have no place, if earlier demands are served first.
func (m *model) unserved(left []int) []int {
	left = slices.Clone(left)
	unmet := make([]int, len(m.of))
	for d := len(m.of) - 1; d >= 0; d-- {
		unmet[d] = min(left[m.of[d]], m.p.Demands[d].Count)
		left[m.of[d]] -= unmet[d]
	}
	return unmet
}

// free returns what is left on one instance of the bin.
func (m *model) free(b bin) vec {
	v := m.kinds[b.kind].has
	for _, l := range b.loads {
		v = v.minus(m.items[l.item].need, l.count)
	}
	return v
}
