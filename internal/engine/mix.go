package engine

import (
	"drover"
	"drover/internal/engine/fleet"
)

// A mix has part of the jobs that prefer spot run on demand, so that a wave of interruptions leaves some of them. Each group keeps it by
// itself: what waits last goes where the group has too little, by placing as by planning. What cannot be had is not waited for.

// runs is how many attempts there are of a group, and how many of them run on demand.
type runs struct{ all, onDemand int }

// countMix counts an attempt that an instance takes, or with -1 loses.
func (e *Engine) countMix(in *fleet.Member, a *Attempt, n int) {
	if e.s.Settings.Mix.OnDemand == (drover.Part{}) {
		return
	}
	j := e.job(a.ID.Job.Number)
	key := e.queue.KeyOf(j).With(j.MemoryOf(a.ID.Job.Index))
	r := e.runs[key]
	if r.all += n; in.Market == drover.OnDemand {
		r.onDemand += n
	}
	if e.runs[key] = r; r.all == 0 {
		delete(e.runs, key)
	}
}

// countMixOf counts what runs of a job, whose key changes.
func (e *Engine) countMixOf(j *Job, n int) {
	for _, a := range e.attemptsOf(j) {
		e.countMix(e.fleet.Member(a.Instance), a, n)
	}
}

// mix counts for each group how many of its elements are still to run on demand, and for how many of those an instance is on its way.
func (e *Engine) mix() {
	part := e.s.Settings.Mix.OnDemand
	if part == (drover.Part{}) {
		return
	}
	for _, g := range e.groups {
		g.OnDemandBound = 0
	}
	for _, in := range e.fleet.Index().Bound {
		for _, b := range in.Bound {
			if g := e.byKey[b.Group]; in.Market == drover.OnDemand && g != nil {
				g.OnDemandBound += b.Count
			}
		}
	}
	for _, g := range e.groups {
		r := e.runs[g.Key]
		g.OnDemand = max(0, part.Of(g.Queued+r.all)-r.onDemand)
		if g.Unschedulable || g.Key.Gang > 0 || g.Key.Shape.Spot != drover.SpotPrefer {
			g.OnDemand = 0
		}
	}
}

// forDemand reports whether an instance is not for the group's next element, since all that still waits is to run on demand.
func (g *group) forDemand(in *fleet.Member) bool {
	return in.Market == drover.Spot && g.OnDemand > 0 && g.Queued <= g.OnDemand
}

// shortOfDemand is for how many more elements instances on demand are wanted.
func (g *group) shortOfDemand() int { return max(0, min(g.OnDemand-g.OnDemandBound, g.wants())) }

// mayBind is how many more of the group's elements an instance may be rented for, or be bound to.
func (g *group) mayBind(in *fleet.Member) int {
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
