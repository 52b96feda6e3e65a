package simtest

import (
	"slices"

	"drover"
	"drover/internal/engine"
)

// maySolve checks that a problem has the maximum share of one spot offering, and every instance.
func (c *controller) maySolve(p drover.Problem) {
	if p.SpotShare != c.settings.SpotShare {
		c.w.fail("a plan is asked for with a share of %d for a spot offering, and %d is wanted", p.SpotShare, c.settings.SpotShare)
	}
	if p.SpotShare == 0 || !c.alone {
		return
	}
	left := map[engine.OfferingKey]drover.MilliCPU{}
	for _, in := range c.w.Disk.instances {
		if late := in.Pool != "" && in.State == drover.InstanceCreating; in.State != drover.InstanceStopping && !late { // a pool may have requested it after the plan was
			left[engine.OfferingKey{Type: in.Type.Name, Zone: in.Cloud + in.Zone, Market: in.Market}] += in.Resources.CPU
		}
	}
	for _, r := range p.Rented {
		left[engine.OfferingKey{Type: r.Type, Zone: r.Cloud + r.Zone, Market: r.Market}] -= r.CPU
	}
	for of, cpus := range left {
		if cpus > 0 { // a negative sum is from instances that stopped after the plan was requested
			c.w.fail("a plan is asked for, and of %v %v vCPUs are there that it knows nothing of", of, cpus)
		}
	}
}

// spreads checks that a plan respects the share of one spot offering while an on-demand offering could hold the same
// load.
func (w *World) spreads(p drover.Problem, plan drover.Plan) {
	if p.SpotShare == 0 {
		return
	}
	total, rooms := 0, p.Room-len(plan.Purchases)
	for _, r := range p.Rented {
		total += int(r.CPU)
	}
	for _, b := range plan.Purchases {
		total += int(p.Offerings[b.Candidates[0]].Type.Resources.CPU)
	}
	for x, o := range p.Offerings {
		own, n := 0, 0
		for _, r := range p.Rented {
			if r.Cloud == o.Cloud && r.Zone == o.Zone && r.Type == o.Type.Name && r.Market == o.Market {
				own, n = int(r.CPU), min(int(r.CPU), 1) // the resources of an adopted instance may be unknown
			}
		}
		elsewhere := rooms > 0
		for _, b := range plan.Purchases {
			if b.Candidates[0] == x {
				own, n = own+int(o.Type.Resources.CPU), n+1
				elsewhere = elsewhere && onDemand(p, plan, b)
			}
		}
		if o.Market == drover.Spot && n > 1 && own*drover.WholeShare > total*p.SpotShare && elsewhere {
			w.fail("a plan has %d of %d thousandths of vCPUs be of %s, and what it is rented for might go elsewhere", own, total, o.Name())
		}
	}
}

// onDemand reports whether everything that an instance is rented for could run on demand instead.
func onDemand(p drover.Problem, plan drover.Plan, b drover.Purchase) bool {
	return !slices.ContainsFunc(b.Loads, func(l drover.Load) bool {
		return !slices.ContainsFunc(p.Offerings, func(o drover.Offering) bool {
			at := slices.IndexFunc(p.Clouds, func(c drover.CloudRoom) bool { return c.Cloud == o.Cloud })
			room := p.Clouds[at].Room
			for _, b := range plan.Purchases {
				if p.Offerings[b.Candidates[0]].Cloud == o.Cloud {
					room--
				}
			}
			d := p.Demands[l.Demand]
			dear := o.WithVolume(d.Shape.Need.Disk - p.UsualDisk(o.Cloud)) // the price that a plan compares
			return o.Market == drover.OnDemand && room > 0 && withinLimitsOf(p, plan, o) && d.Shape.Accepts(o) && d.Affords(dear)
		})
	})
}

// withinLimitsOf reports whether a plan leaves room for one more instance of an offering within its problem's limits.
func withinLimitsOf(p drover.Problem, plan drover.Plan, o drover.Offering) bool {
	for _, l := range p.Limits {
		n, cpu := 1, o.Type.Resources.CPU
		for _, b := range plan.Purchases {
			if first := p.Offerings[b.Candidates[0]]; l.Covers(first) {
				n, cpu = n+1, cpu+first.Type.Resources.CPU
			}
		}
		if l.Covers(o) && (l.Instances != nil && n > *l.Instances || l.CPU != nil && cpu > *l.CPU) {
			return false
		}
	}
	return true
}
