package pack

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// addKinds adds the offerings that are not dominated: no other is as large, as cheap, usable by the same jobs, and
// under the same limits. If rivals is more than one, that many dominate, and their shares are limits of their own.
func (m *model) addKinds(rivals int) {
	all := m.suitable(rivals)
	order := make([]ranked, len(all))
	for x := range order {
		order[x] = ranked{all[x].rank, x}
	}
	slices.SortFunc(order, func(a, b ranked) int {
		if a.rank != b.rank {
			return cmp.Compare(a.rank, b.rank)
		}
		return cmp.Or(compareKinds(&all[a.at], &all[b.at]), cmp.Compare(a.at, b.at))
	})
	for _, o := range order {
		x := o.at
		if m.bootsDiffer() { // otherwise the cheaper of two is so for all classes
			m.setCosts(&all[x])
		}
		if len(m.rules) > maxRules || m.dominators(&all[x], rivals) < rivals {
			m.kinds = append(m.kinds, all[x])
		}
	}
	for i := range m.kinds {
		m.setCosts(&m.kinds[i])
	}
}

// setCosts computes the cost of an instance of the kind.
func (m *model) setCosts(k *kind) {
	o := &m.p.Offerings[k.offering]
	boot := m.boot(o)
	k.costs = k.costs[:0]
	for _, work := range m.classes {
		k.costs = append(k.costs, m.costFor(o, boot+work))
	}
}

// compareKinds orders kinds by cost, and equal ones by size, larger first.
func compareKinds(a, b *kind) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.price, b.price), larger(a.has, b.has))
}

// suitable lists the offerings as kinds that some job may use and of which one more may be added. A demand may be
// empty. Left out are kinds that come after one that holds all jobs that an instance can get, under the same limits; a
// single job goes to the first, whatever the limits. Most of those that addKinds would leave out are missing too.
func (m *model) suitable(rivals int) (all []kind) {
	led, single, class := m.newLedger(), m.total() == 1, m.firstClass()
	rows, whole := map[string][]int{}, m.limitsWholeClouds()
	var enough []kind
	for i := range m.p.Offerings {
		o := &m.p.Offerings[i]
		rank := m.rank(o, class)
		if slices.ContainsFunc(enough, func(e kind) bool {
			return rank > e.rank && (single || whole && m.p.Offerings[e.offering].Cloud == o.Cloud)
		}) {
			continue
		}
		k := kind{offering: i, has: m.capacity(o), price: max(0, o.Price), rank: rank}
		for r := range m.rules[:min(len(m.rules), maxRules)] {
			if m.rules[r].allows(o) {
				k.rules |= 1 << r
			}
		}
		if !slices.ContainsFunc(m.items, func(it item) bool { return it.count > 0 && m.accepts(&k, &it) }) {
			continue
		}
		if k.limits = rows[o.Cloud]; k.limits == nil {
			k.limits = m.rowsOf(o)
			if whole {
				rows[o.Cloud] = k.limits
			}
		}
		before := func(a, b *kind) bool { return compareKinds(a, b) <= 0 && (single || slices.Equal(a.limits, b.limits)) }
		if m.room(led, &k, 1) == 0 || slices.ContainsFunc(enough, func(e kind) bool { return before(&e, &k) }) {
			continue
		}
		if rivals == 1 && !m.bootsDiffer() && len(m.rules) <= maxRules && m.outdone(&k, all) {
			continue
		}
		if m.holdsAll(&k) {
			after := func(other kind) bool { return before(&k, &other) }
			enough, all = append(slices.DeleteFunc(enough, after), k), slices.DeleteFunc(all, after)
		}
		all = append(all, k)
	}
	return all
}

// holdsAll reports whether an instance of the kind holds whatever jobs an instance can get, and kinds that come after
// it cost no less for any of them.
func (m *model) holdsAll(k *kind) bool {
	return (!m.bootsDiffer() || len(m.classes) == 1 || m.total() == 1) && k.has.fits(m.all) &&
		!slices.ContainsFunc(m.items, func(it item) bool { return it.count > 0 && !m.allowed(k, it.rule) })
}

// firstClass returns the class of the only job, or 0.
func (m *model) firstClass() int {
	if m.total() != 1 {
		return 0
	}
	return m.items[slices.IndexFunc(m.items, func(it item) bool { return it.count > 0 })].class
}

// outdone reports whether one of the others, which were offered before, comes before k and dominates it.
func (m *model) outdone(k *kind, others []kind) bool {
	for x := range others {
		o := &others[x]
		if o.rank <= k.rank && m.dominates(o, k) && compareKinds(o, k) <= 0 && slices.Equal(o.limits, k.limits) {
			return true
		}
	}
	return false
}

// dominators counts the added kinds that dominate k, up to most.
func (m *model) dominators(k *kind, most int) (n int) {
	for x := range m.kinds {
		if m.dominates(&m.kinds[x], k) && !m.kinds[x].dearer(k) && (slices.Equal(m.kinds[x].limits, k.limits) || most > 1 && m.limitedLike(&m.kinds[x], k)) {
			if n++; n == most {
				break
			}
		}
	}
	return n
}

// limitedLike reports whether k has no limits, except its share, that other has not.
func (m *model) limitedLike(k, other *kind) bool {
	return !slices.ContainsFunc(k.limits, func(r int) bool {
		l := m.rows[r].limit
		return (l == nil || !l.Share) && !slices.Contains(other.limits, r)
	})
}

// findUsed finds the dimensions that any job needs, in which alone one instance may be better than another, and the
// most that an instance can be of use for.
func (m *model) findUsed() {
	each := m.each()
	m.used[jobs] = each < anyNumber
	var sum, most vec
	for _, it := range m.items {
		for d, n := range it.need {
			m.used[d] = m.used[d] || d != jobs && n > 0
			most[d] = max(most[d], n)
			sum[d] = int64(min(1<<62, float64(sum[d])+float64(float64(n)*float64(it.count)))) // n times count may be too much for an int64
		}
	}
	m.all = sum
	if slices.ContainsFunc(m.rows, func(r row) bool { return r.cpu }) {
		return // so that instances with fewer vCPUs, which count less, are not left out
	}
	for d := range m.all {
		if most[d] < sum[d]/each {
			m.all[d] = most[d] * each
		}
	}
}

// findFilled finds the cheapest kind that a job of each item fills.
func (m *model) findFilled() {
	for d := range m.least {
		m.least[d] = math.MaxInt64
		for _, it := range m.items {
			if it.count > 0 {
				m.least[d] = min(m.least[d], it.need[d])
			}
		}
	}
	for i := range m.items {
		it := &m.items[i]
		it.filled = m.cheapest(it, func(k *kind) bool { return m.fills(k, it) })
	}
}

// fills reports whether a job of the item leaves no room for any other on an instance of the kind.
func (m *model) fills(k *kind, it *item) bool {
	for d, used := range m.used {
		if used && k.has[d]-it.need[d] < m.least[d] {
			return true
		}
	}
	return false
}

// larger orders larger vectors first.
func larger(a, b vec) int {
	for d := range a {
		if a[d] != b[d] {
			return cmp.Compare(b[d], a[d])
		}
	}
	return 0
}

// dearer reports whether k costs more than other for jobs of some class, if that is known already.
func (k *kind) dearer(other *kind) bool {
	for class := range k.costs {
		if k.costs[class] > other.costs[class] {
			return true
		}
	}
	return false
}

// dominates reports whether k, which is not dearer, is as good as other in every way. Room for more jobs than an
// instance can get is of no use.
func (m *model) dominates(k, other *kind) bool {
	if other.rules&^k.rules != 0 {
		return false
	}
	for d, used := range m.used {
		if used && k.has[d] < min(other.has[d], m.all[d]) {
			return false
		}
	}
	return true
}

// less reports whether a/b is less than c/d; all are positive, or a or c is 0.
func less(a, b, c, d int64) bool {
	h1, l1 := bits.Mul64(uint64(a), uint64(d))
	h2, l2 := bits.Mul64(uint64(c), uint64(b))
	return h1 < h2 || h1 == h2 && l1 < l2
}
