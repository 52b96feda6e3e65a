package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"drover"
)

// bound returns the minimum possible cost of the jobs' run times in USD: the cost if every instance were full from its
// first second to its last.
//
// For any weight of a GiB relative to a vCPU, an instance has a number of units, and a job uses a number of units. Let
// a job pay, for each of its units, the lowest price per unit of the offerings that can run it. An instance can hold
// each of the jobs that run on it, so none of them pays more than its price per unit. Together they use at most its
// units, so they never pay more than it costs. Therefore all jobs together never pay more than any fleet that runs them
// costs. bound tries several weights and returns the highest result. For each offering, it uses the lowest price during
// the simulation.
func bound(work []chunk, offerings []drover.Offering) (best float64, rates map[drover.Shape]float64) {
	for half := -8; half <= 8; half++ {
		if usd, each := pays(work, offerings, math.Pow(2, float64(half)/2)/4); usd > best || rates == nil {
			best, rates = usd, each
		}
	}
	return best, rates
}

// chunk is the total run time of one shape.
type chunk struct {
	shape   drover.Shape
	seconds float64
}

// pays returns what the work pays with a given weight, and what a job of each shape pays per second.
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

// bands is the number of equal levels into which turns divides the rate that concurrent jobs pay.
const bands = 128

// turns returns the minimum possible cost, in USD, of boots and of idling instead of booting. It assumes a fleet with
// perfect foresight, on which no job waits longer than patience and none is lost.
//
// At any moment, some jobs must be running: those that can no longer wait and would not have ended even if they had
// started immediately. Their rates add up to a level that ready instances must reach. Other jobs may be running too;
// instances above the sum of all these rates are idle. Therefore each band below the highest level boots before the
// first time at which it must be ready. Between two such times, it either boots again or idles for as long as no job
// can have used it.
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
	var idled [bands]time.Duration // since it last had to be ready
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

// quickest returns the shortest boot time of the first instances.
func (m Models) quickest(instances int) time.Duration {
	least := m.Boot
	for n := range instances {
		least = min(least, m.boot(n+1))
	}
	return least
}
