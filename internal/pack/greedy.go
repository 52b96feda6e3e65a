package pack

// chooser names the kind to rent for count jobs of an item, and how many of them an instance should hold; -1 for none.
type chooser func(m *model, d *draft, item, count int) (kind, n int)

// greedy serves one demand after the other: on the instances chosen so far, then on the kind that choose names, until
// it is served or there is no room. It is the baseline for everything cleverer, serves demands strictly in order, and
// is all that is done with few steps.
func (m *model) greedy(choose chooser, steps *int) *draft {
	d := m.newDraft()
	var open openBins
	for x, demand := range m.p.Demands {
		m.serveGreedily(d, &open, m.of[x], demand.Count, choose, steps)
	}
	for _, o := range open.bins {
		d.bins = append(d.bins, o.bin)
	}
	d.cost = m.sum(d.bins)
	return d
}

// openBins are the bins that are being filled greedily, in the order in which they were rented.
type openBins struct {
	fitTree // of their free room
	bins    []openBin
}

// add appends a bin.
func (o *openBins) add(b openBin) {
	o.bins = append(o.bins, b)
	o.set(len(o.bins)-1, b.free)
}

// openBin is a bin with its free room.
type openBin struct {
	bin
	free vec
}

func (m *model) serveGreedily(d *draft, open *openBins, i, count int, choose chooser, steps *int) {
	it := &m.items[i]
	for x := 0; count > 0 && *steps > 0; x++ {
		if x = open.next(x, it.need, steps); x < 0 {
			break
		}
		if b := &open.bins[x]; m.allowed(&m.kinds[b.kind], it.rule) {
			count -= m.fillBin(d, b, i, count)
			open.set(x, b.free)
		}
	}
	for count > 0 && *steps > 0 {
		*steps -= 1 + len(m.kinds)/8
		k, n := choose(m, d, i, count)
		if k < 0 {
			break
		}
		b := openBin{bin: bin{kind: k, n: 1, class: it.class}, free: m.kinds[k].has}
		m.take(d.led, &m.kinds[k], 1)
		count -= m.fillBin(d, &b, i, n)
		open.add(b)
	}
}

// fillBin puts as many jobs of the item into the bin as fit, and returns the number.
func (m *model) fillBin(d *draft, b *openBin, i, count int) int {
	n := b.free.times(m.items[i].need, count)
	b.free = b.free.minus(m.items[i].need, n)
	b.class = min(b.class, m.items[i].class)
	b.loads = append(b.loads, load{i, n})
	d.left[i] -= n
	return n
}

// perJob chooses the kind with the lowest cost per job, and of equals the one that holds most jobs: fewer and larger
// instances boot sooner, use less quota, and have room for other jobs.
func perJob(m *model, d *draft, i, count int) (best, most int) {
	best = -1
	it := &m.items[i]
	for k := range m.kinds {
		kd := &m.kinds[k]
		if !m.accepts(kd, it) || m.room(d.led, kd, 1) == 0 {
			continue
		}
		n := kd.has.times(it.need, count)
		if best >= 0 {
			a, b := kd.costs[it.class], m.kinds[best].costs[it.class]
			if less(b, int64(most), a, int64(n)) || !less(a, int64(n), b, int64(most)) && n <= most {
				continue
			}
		}
		best, most = k, n
	}
	return best, most
}

// fewest chooses for gangs the kind that holds most jobs, and of equals the cheapest; for others as perJob does.
func fewest(m *model, d *draft, i, count int) (best, most int) {
	it := &m.items[i]
	if !it.gang {
		return perJob(m, d, i, count)
	}
	best = -1
	for k := range m.kinds {
		kd := &m.kinds[k]
		if !m.accepts(kd, it) || m.room(d.led, kd, 1) == 0 {
			continue
		}
		n := kd.has.times(it.need, count)
		if n > most || n == most && kd.costs[it.class] < m.kinds[best].costs[it.class] {
			best, most = k, n
		}
	}
	return best, most
}

// cheapest chooses the cheapest kind that holds one job: first-fit.
func cheapest(m *model, d *draft, i, count int) (best, most int) {
	it := &m.items[i]
	k := m.cheapest(it, func(kd *kind) bool { return m.room(d.led, kd, 1) > 0 })
	if k < 0 {
		return -1, 0
	}
	return k, m.kinds[k].has.times(it.need, count)
}
