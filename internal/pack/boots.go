package pack

import (
	"time"

	"drover"
)

// bootsDiffer reports whether boot times differ.
func (m *model) bootsDiffer() bool { return len(m.p.Boots) > 0 }

// boot returns how long an instance of the offering is paid for before it works.
func (m *model) boot(o *drover.Offering) time.Duration {
	return drover.BootOf(m.p.Boot, m.p.Boots, o.Cloud, o.Type.Name)
}

// cost returns the cost of an instance of the offering whose longest job is of the class.
func (m *model) cost(o *drover.Offering, class int) int64 {
	return m.costFor(o, m.boot(o)+m.classes[class])
}

// costFor returns the cost of an instance of the offering that is needed for this long.
func (m *model) costFor(o *drover.Offering, span time.Duration) int64 {
	return max(1, int64(max(0, o.Price).For(span)+max(0, m.p.Fixed)))
}

// rank returns the value by which offerings are compared for jobs of the class: their cost or, if all boot alike, just
// their price, which is quicker.
func (m *model) rank(o *drover.Offering, class int) int64 {
	if !m.bootsDiffer() || len(m.classes) == 0 {
		return int64(o.Price)
	}
	return m.cost(o, class)
}

// leastBoot returns the shortest boot time.
func (m *model) leastBoot() time.Duration {
	least := max(0, m.p.Boot)
	for _, b := range m.p.Boots {
		least = min(least, max(0, b.Time))
	}
	return least
}
