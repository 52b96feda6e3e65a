package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
)

// A spread limits the share of the fleet's vCPUs in one spot offering, since instances of one offering are often
// interrupted together. It applies to planning: existing and coming instances count, and none is destroyed because
// others are gone.

// spread adds the limit and the existing instances to a problem.
func (e *Engine) spread(p *drover.Problem) {
	if p.SpotShare = e.s.Settings.SpotShare; p.SpotShare == 0 {
		return
	}
	for _, k := range e.fleet.Census().Kinds {
		if in := k.One(); in.State != drover.InstanceStopping {
			p.Rented = append(p.Rented, drover.Rented{Cloud: in.Cloud, Zone: in.Zone, Type: in.Type.Name, Market: in.Market, CPU: in.Resources.CPU * drover.MilliCPU(k.Len())})
		}
	}
	slices.SortFunc(p.Rented, compareRented)
	merged := p.Rented[:0]
	for _, r := range p.Rented {
		if last := len(merged) - 1; last >= 0 && compareRented(merged[last], r) == 0 {
			merged[last].CPU += r.CPU
		} else {
			merged = append(merged, r)
		}
	}
	p.Rented = merged
}

func compareRented(a, b drover.Rented) int {
	return cmp.Or(cmp.Compare(a.Cloud, b.Cloud), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Market, b.Market))
}

// whySpread explains that one more instance of an offering would exceed its share.
func (e *Engine) whySpread(o drover.Offering) (why Verdict, has bool) {
	var p drover.Problem
	e.spread(&p)
	if why, has = e.spreads(p, o); has {
		why.Since = e.lastAsked(func(in *fleet.Member) bool { return isOf(in, o) })
	}
	return why, has
}

// spreads is whySpread for the instances in a problem, without a Since.
func (e *Engine) spreads(p drover.Problem, o drover.Offering) (why Verdict, has bool) {
	if p.SpotShare == 0 || o.Market != drover.Spot {
		return why, false
	}
	more := o.Type.Resources.CPU
	own, total := more, more
	for _, r := range p.Rented {
		if total += r.CPU; r.Cloud == o.Cloud && r.Zone == o.Zone && r.Type == o.Type.Name && r.Market == o.Market {
			own += r.CPU
		}
	}
	if own == more || int64(own)*drover.WholeShare <= int64(total)*int64(p.SpotShare) {
		return why, false
	}
	why = e.verdict(drover.ReasonSpread, "one more instance would give this offering %v of %v vCPUs, but spread allows a single spot offering at most %v%%; it will be rented again once other offerings have more vCPUs, or for jobs that no other offering can run",
		own, total, drover.MilliCPU(p.SpotShare*10))
	return why, true
}
