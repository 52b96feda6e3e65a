package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"drover"
)

// bound is the least that the jobs' run times could cost in USD, were every instance full from its first second to its last.
//
// For any weight of a GiB against a vCPU, an instance has so many units, and a job takes so many. Let a job pay, for each of its units, the
// lowest price per unit of the offerings that can hold it. Jobs that run side by side on an instance could each be held by it, so none of them
// pays more than its price per unit, and together they have no more units than it has: they never pay more than it costs. So what all jobs pay
// is never more than any fleet costs on which they run. The best of several weights is taken. Of each offering the lowest price counts that it
// ever had.
func bound(work []chunk, offerings []drover.Offering) (best float64, rates map[drover.Shape]float64) {
	for half := -8; half <= 8; half++ {
		if usd, each := pays(work, offerings, math.Pow(2, float64(half)/2)/4); usd > best || rates == nil {
			best, rates = usd, each
		}
	}
	return best, rates
}

// chunk is all the work of one shape.
type chunk struct {
	shape   drover.Shape
	seconds float64
}

// pays is what the work pays at a weight, and a job of each shape in a second.
func pays(work []chunk, offerings []drover.Offering, weight float64) (usd float64, rates map[drover.Shape]float64) {
	rates = map[drover.Shape]float64{}
	units := func(r drover.Resources) float64 { return vcpus(r) + weight*float64(r.Memory)/float64(drover.GiB) }
	each := func(o drover.Offering) float64 { return o.Price.USD() / units(o.Type.Resources) }
	order := slices.Clone(offerings)
	slices.SortFunc(order, func(a, b drover.Offering) int { return cmp.Compare(each(a), each(b)) })
	for _, c := range work {
		at := slices.IndexFunc(order, c.shape.Accepts)
		if at >= 0 {
			rates[c.shape] = each(order[at]) * units(c.shape.Need) / 3600
			usd += rates[c.shape] * c.seconds
		}
	}
	return usd, rates
}

// bands is how many levels are told apart of what jobs pay at once.
const bands = 128

// turns is the least that boots, and idling instead of booting, could cost in USD on a fleet that knows everything beforehand, on which no job waits longer than patience
// and none is lost.
//
// Some jobs run at a moment in any case: those whose patience is over and whose time is not, had they begun at once. What these pay together is a level that ready
// instances must reach. Others may run then; above what all of these pay, instances idle. So, of each band below the highest level: between two times at which it must be
// ready it has booted again, or it has idled for as long as nothing may have run there. The first time it has booted.
func (in Input) turns(rates map[drover.Shape]float64, patience, boot time.Duration) (usd float64) {
	type change struct {
		at        time.Duration
		must, may float64
	}
	var all []change
	for _, j := range in.Trace.Jobs {
		rate := rates[in.shape(j)] * float64(j.Count)
		all = append(all, change{j.Submit, 0, rate}, change{j.Submit + j.Runtime + patience, 0, -rate})
		if j.Runtime > patience {
			all = append(all, change{j.Submit + patience, rate, 0}, change{j.Submit + j.Runtime, -rate, 0})
		}
	}
	slices.SortFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.must, b.must), cmp.Compare(a.may, b.may))
	})
	most, must, may := 0.0, 0.0, 0.0
	for _, c := range all {
		must += c.must
		most = max(most, must)
	}
	width, ready := most/bands, 0
	var idled [bands]time.Duration // since it had to be ready
	for k := range idled {
		idled[k] = boot
	}
	must = 0
	for i, c := range all {
		must, may = must+c.must, may+c.may
		next := c.at
		if i+1 < len(all) {
			next = all[i+1].at
		}
		for ; ready < bands && must >= float64(ready+1)*width; ready++ {
			usd += width * min(idled[ready], boot).Seconds()
			idled[ready] = 0
		}
		for ; ready > 0 && must < float64(ready)*width; ready-- {
		}
		if next > c.at {
			for k := max(ready, int(math.Ceil(may/max(width, 1e-12)))); k < bands; k++ {
				idled[k] += next - c.at
			}
		}
	}
	return usd
}

// quickest is the shortest boot of so many instances.
func (m Models) quickest(instances int) time.Duration {
	least := m.Boot
	for n := range instances {
		least = min(least, m.boot(n+1))
	}
	return least
}
