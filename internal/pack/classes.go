package pack

import "encoding/binary"

// jobClass is all jobs that fit the same kinds and need their dimensions in similar proportions. They are priced
// together.
type jobClass struct {
	items  []int
	kinds  []int     // indices into prices.kinds of those that fit
	shares []float64 // what all of its jobs take of one instance of each of these, for each of prices.dims
	flow   []float64 // how often they went to each of these
	near   []int     // indices into kinds where they were worth least at the last survey
}

// classify groups the items' remaining jobs into job classes. Items that no kind can hold are in none.
func (m *model) classify(pr *prices, items, left []int) {
	at := map[string]int{}
	var needs [][dims]float64
	for _, i := range items {
		if left[i] == 0 {
			continue
		}
		kinds, key := m.signature(pr, i)
		if len(kinds) == 0 {
			continue
		}
		c, ok := at[key]
		if !ok {
			c = len(pr.jobClasses)
			at[key] = c
			pr.jobClasses = append(pr.jobClasses, jobClass{kinds: kinds, flow: make([]float64, len(kinds))})
			needs = append(needs, [dims]float64{})
		}
		pr.jobClasses[c].items = append(pr.jobClasses[c].items, i)
		for d, n := range m.items[i].need {
			needs[c][d] += float64(float64(n) * float64(left[i]))
		}
	}
	for c := range pr.jobClasses {
		pr.jobClasses[c].share(m, pr, needs[c])
	}
}

// signature returns the kinds that fit the item, and the key of its job class.
func (m *model) signature(pr *prices, i int) (kinds []int, key string) {
	it := &m.items[i]
	var b []byte
	for x, k := range pr.kinds {
		if m.accepts(&m.kinds[k], it) {
			kinds = append(kinds, x)
			n := uint64(2 * x)
			if m.fills(&m.kinds[k], it) {
				n++
			}
			b = binary.AppendUvarint(b, n)
		}
	}
	for _, d := range pr.dims {
		if d != cpu {
			b = append(b, 0xff, proportion(it.need[d], max(1, it.need[cpu])*1_000_000))
		}
	}
	return kinds, string(b)
}

// proportion returns the logarithm of a/b in steps of about a quarter, from 1 to 200; 0 if a is 0.
func proportion(a, b int64) byte {
	n := byte(100)
	for ; b < a && n < 200; n++ {
		b += b/4 + 1
	}
	for ; a > 0 && a < b && n > 1; n-- {
		a += a/4 + 1
	}
	if a == 0 {
		return 0
	}
	return n
}

func (g *jobClass) share(m *model, pr *prices, need [dims]float64) {
	first := &m.items[g.items[0]] // the others fill the same kinds
	for _, x := range g.kinds {
		k := &m.kinds[pr.kinds[x]]
		for _, d := range pr.dims {
			s := 0.0
			if m.fills(k, first) { // see prices
				s = float64(need[jobs]*float64(m.kinds[first.filled].costs[pr.class])) / float64(k.costs[pr.class])
			} else if k.has[d] > 0 {
				s = need[d] / float64(k.has[d])
			}
			g.shares = append(g.shares, s)
		}
	}
}
