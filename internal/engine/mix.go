package engine

import "drover"

// A mix has part of the jobs that prefer spot run on demand, so that a wave of interruptions leaves some of them. Each group keeps it by
// itself: what waits last goes where the group has too little, by placing as by planning. What cannot be had is not waited for.

// mix counts for each group how many of its elements are still to run on demand, and for how many of those an instance is on its way.
func (e *Engine) mix() {
	part := e.s.Settings.Mix.OnDemand
	if part == (drover.Part{}) {
		return
	}
	running := map[*group]int{}
	for _, g := range e.groups {
		g.OnDemand, g.OnDemandBound = 0, 0
	}
	for _, in := range e.instances {
		for _, a := range in.load {
			j := e.job(a.ID.Job.Number)
			g := e.byKey[e.keyWith(j, j.memory(a.ID.Job.Index))]
			if g == nil {
				continue
			}
			if running[g]++; in.Market == drover.OnDemand {
				g.OnDemand--
			}
		}
		for _, b := range in.Bound {
			if g := e.byKey[b.Group]; in.Market == drover.OnDemand && g != nil {
				g.OnDemandBound += b.Count
			}
		}
	}
	for _, g := range e.groups {
		g.OnDemand = max(0, g.OnDemand+part.Of(g.queued+running[g]))
		if g.Stuck || g.Key.Gang > 0 || g.Key.Shape.Spot != drover.SpotPrefer {
			g.OnDemand = 0
		}
	}
}

// forDemand reports whether an instance is not for the group's next element, since all that still waits is to run on demand.
func (g *group) forDemand(in *instance) bool {
	return in.Market == drover.Spot && g.OnDemand > 0 && g.queued <= g.OnDemand
}

// shortOfDemand is for how many more elements instances on demand are wanted.
func (g *group) shortOfDemand() int { return max(0, min(g.OnDemand-g.OnDemandBound, g.wants())) }

// mayBind is how many more of the group's elements an instance may be rented for, or be bound to.
func (g *group) mayBind(in *instance) int {
	if in.Market == drover.Spot {
		return g.wants() - g.shortOfDemand()
	}
	return g.wants()
}

// mixed has part of the demands be met on demand alone, and returns the group of each demand that there is then.
func (e *Engine) mixed(p *drover.Problem, demands []*group) []GroupKey {
	e.mix()
	keys := make([]GroupKey, len(demands), 2*len(demands))
	for i, g := range demands {
		keys[i] = g.Key
		n := min(g.shortOfDemand(), p.Demands[i].Count)
		if n == 0 {
			continue
		}
		own := p.Demands[i]
		own.Shape.Spot, own.Count = drover.SpotNever, n
		p.Demands[i].Count -= n
		p.Demands, keys = append(p.Demands, own), append(keys, g.Key)
	}
	return keys
}
