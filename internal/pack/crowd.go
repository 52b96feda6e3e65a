package pack

import "encoding/binary"

// crowd is a number of jobs that may go to the same kinds and want their dimensions in much the same proportions, taken for one.
type crowd struct {
	items  []int
	kinds  []int     // places in prices.kinds of those that can hold them
	shares []float64 // what all of them take of one instance of each of these, for each of prices.dims
	flow   []float64 // how often they went to each of these
	near   []int     // the places, in kinds, of those where they were worth least when all were looked at
}

// gather makes crowds of what is left of the items. Items that nothing can hold are in none.
func (m *model) gather(pr *prices, items, left []int) {
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
			c = len(pr.crowds)
			at[key] = c
			pr.crowds = append(pr.crowds, crowd{kinds: kinds, flow: make([]float64, len(kinds))})
			needs = append(needs, [dims]float64{})
		}
		pr.crowds[c].items = append(pr.crowds[c].items, i)
		for d, n := range m.items[i].need {
			needs[c][d] += float64(float64(n) * float64(left[i]))
		}
	}
	for c := range pr.crowds {
		pr.crowds[c].share(m, pr, needs[c])
	}
}

// signature is where the item may go, and a key that only items of much the same proportions share with it.
func (m *model) signature(pr *prices, i int) (kinds []int, key string) {
	it := &m.items[i]
	var b []byte
	for x, k := range pr.kinds {
		if m.accepts(&m.kinds[k], it) {
			kinds = append(kinds, x)
			b = binary.AppendUvarint(b, uint64(x))
		}
	}
	for _, d := range pr.dims {
		if d != cpu {
			b = append(b, 0xff, proportion(it.need[d], max(1, it.need[cpu])*1_000_000))
		}
	}
	return kinds, string(b)
}

// proportion is the logarithm of a/b in steps of about a quarter, within some limits.
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

func (g *crowd) share(m *model, pr *prices, need [dims]float64) {
	for _, x := range g.kinds {
		for _, d := range pr.dims {
			s := 0.0
			if has := m.kinds[pr.kinds[x]].has[d]; has > 0 {
				s = need[d] / float64(has)
			}
			g.shares = append(g.shares, s)
		}
	}
}
