package pack

import (
	"slices"

	"drover"
)

// The larger a volume is, the more it costs, and its size depends on the instance's jobs. The rest of the solver needs
// fixed prices of offerings. So a problem is also solved with prices that include the volumes that such jobs need on
// average, and the plan that actually costs less is returned.

// withVolumes solves a problem in which the cost of volumes matters.
func withVolumes(p drover.Problem) drover.Plan {
	plan := answer(p)
	guessed, matters := withDisks(p)
	if !matters {
		return plan
	}
	other := answer(guessed)
	plan.Cost, other.Cost = paid(p, plan), paid(p, other)
	if jobsUnmet(other) < jobsUnmet(plan) || jobsUnmet(other) == jobsUnmet(plan) && other.Cost < plan.Cost {
		if other.Bound = 0; len(other.Unmet) == 0 {
			other.Bound = plan.Bound // excludes volumes
		}
		return other
	}
	return plan
}

// withDisks returns the problem with prices that include the volumes the jobs need, and whether that changes any by
// more than 1 %.
func withDisks(p drover.Problem) (guessed drover.Problem, matters bool) {
	guessed = p
	priced := func(o drover.Offering) bool { return o.DiskPrice > 0 && o.Type.Resources.Disk == 0 && !o.Reserved }
	asks := func(d drover.Demand) bool { return d.Count > 0 && d.Shape.Need.Disk > 0 }
	if !slices.ContainsFunc(p.Demands, asks) || !slices.ContainsFunc(p.Offerings, priced) {
		return p, false
	}
	guessed.Offerings = slices.Clone(p.Offerings)
	m := newModel(p, 1<<30)
	for i := range guessed.Offerings {
		o := &guessed.Offerings[i]
		was := o.Price
		if priced(*o) {
			*o = o.WithVolume(m.usualLoad(o) - p.UsualDisk(o.Cloud))
		}
		matters = matters || o.Price-was > was/100
	}
	return guessed, matters
}

// usualLoad returns the disk of an instance of the offering if all jobs that fit it are spread evenly over as few as
// hold them.
func (m *model) usualLoad(o *drover.Offering) drover.Bytes {
	has, sum, instances := m.capacity(o), vec{}, int64(1)
	for _, it := range m.items {
		if it.count > 0 && m.rules[it.rule].allows(o) && has.fits(it.need) {
			sum = sum.minus(it.need, -it.count)
		}
	}
	for d := range has {
		if has[d] > 0 {
			instances = max(instances, (sum[d]+has[d]-1)/has[d])
		}
	}
	return drover.Bytes(sum[disk] / instances)
}

// paid returns a plan's actual cost, including volumes.
func paid(p drover.Problem, plan drover.Plan) (sum drover.Money) {
	m := &model{p: p}
	m.sortTimes()
	for _, b := range plan.Purchases {
		o, class, asked := p.Offerings[b.Candidates[0]], len(m.classes), drover.Bytes(0)
		for _, l := range b.Loads {
			d := p.Demands[l.Demand]
			class, asked = min(class, m.class(d)), asked+d.Shape.Need.Disk*drover.Bytes(l.Count)
		}
		if o.Type.Resources.Disk == 0 && !o.Reserved {
			o = o.WithVolume(asked - p.UsualDisk(o.Cloud))
		}
		sum += drover.Money(m.cost(&o, class))
	}
	return sum
}

func jobsUnmet(plan drover.Plan) (n int) {
	for _, u := range plan.Unmet {
		n += u.Count
	}
	return n
}
