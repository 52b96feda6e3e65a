package simulate

import (
	"cmp"
	"math"
	"slices"

	"drover"
)

// bound is the least that the jobs' run times could cost in USD, were every instance full from its first second to its last.
//
// For any weight of a GiB against a vCPU, an instance has so many units, and a job takes so many. Let a job pay, for each of its units, the
// lowest price per unit of the offerings that can hold it. Jobs that run side by side on an instance could each be held by it, so none of them
// pays more than its price per unit, and together they have no more units than it has: they never pay more than it costs. So what all jobs pay
// is never more than any fleet costs on which they run. The best of several weights is taken. Of each offering the lowest price counts that it
// ever had.
func bound(work []chunk, offerings []drover.Offering) float64 {
	best := 0.0
	for half := -8; half <= 8; half++ {
		best = max(best, pays(work, offerings, math.Pow(2, float64(half)/2)/4))
	}
	return best
}

// chunk is all the work of one shape.
type chunk struct {
	shape   drover.Shape
	seconds float64
}

// pays is what the work pays at a weight.
func pays(work []chunk, offerings []drover.Offering, weight float64) (usd float64) {
	units := func(r drover.Resources) float64 { return vcpus(r) + weight*float64(r.Memory)/float64(drover.GiB) }
	each := func(o drover.Offering) float64 { return o.Price.USD() / units(o.Type.Resources) }
	order := slices.Clone(offerings)
	slices.SortFunc(order, func(a, b drover.Offering) int { return cmp.Compare(each(a), each(b)) })
	for _, c := range work {
		at := slices.IndexFunc(order, c.shape.Accepts)
		if at >= 0 {
			usd += each(order[at]) * units(c.shape.Need) * c.seconds / 3600
		}
	}
	return usd
}
