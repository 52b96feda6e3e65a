package pack

import (
	"time"

	"drover"
)

// apart reports whether not all instances boot alike.
func (m *model) apart() bool { return len(m.p.Boots) > 0 }

// boot is how long an instance of the offering is paid for before it works.
func (m *model) boot(o *drover.Offering) time.Duration {
	return drover.BootOf(m.p.Boot, m.p.Boots, o.Cloud, o.Type.Name)
}

// cost is what an instance of the offering costs that has a job of the class, and none that takes longer.
func (m *model) cost(o *drover.Offering, class int) int64 {
	return m.costFor(o, m.boot(o)+m.classes[class])
}

// costFor is what an instance of the offering costs that is needed for so long.
func (m *model) costFor(o *drover.Offering, span time.Duration) int64 {
	return max(1, int64(max(0, o.Price).For(span)+max(0, m.p.Fixed)))
}

// rank is by what offerings are compared for jobs of the class: what they cost, or only their price where all boot alike, which is quicker.
func (m *model) rank(o *drover.Offering, class int) int64 {
	if !m.apart() || len(m.classes) == 0 {
		return int64(o.Price)
	}
	return m.cost(o, class)
}

// leastBoot is how long what boots soonest boots.
func (m *model) leastBoot() time.Duration {
	least := max(0, m.p.Boot)
	for _, b := range m.p.Boots {
		least = min(least, max(0, b.Time))
	}
	return least
}
