package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/fleet"
)

// A mix runs part of the jobs that prefer spot on demand, so that some survive a wave of interruptions. Each group
// keeps to it separately: placing and planning put the last waiting jobs where the group has too few. Jobs do not wait
// for what is unavailable.

// runs is a group's number of attempts, and of those on demand.
type runs struct{ all, onDemand int }

// countMix adds n, 1 or -1, attempts to the mix.
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

// countMixOf counts a job's attempts when its key changes.
func (e *Engine) countMixOf(j *Job, n int) {
	for _, a := range e.attemptsOf(j) {
		e.countMix(e.fleet.Member(a.Instance), a, n)
	}
}

// mix computes for each group how many elements still have to run on demand, and how many of those have a reservation.
func (e *Engine) mix() {
	part := e.s.Settings.Mix.OnDemand
	if part == (drover.Part{}) {
		return
	}
	for _, g := range e.groups {
		g.OnDemandReserved = 0
	}
	for _, in := range e.fleet.Index().Reserved {
		for _, b := range in.Reservations {
			if g := e.byKey[b.Group]; in.Market == drover.OnDemand && g != nil {
				g.OnDemandReserved += b.Count
			}
		}
	}
	for _, g := range e.groups {
		g.OnDemand = 0
		if !g.Unschedulable && g.Key.Gang == 0 && g.Key.Shape.Spot == drover.SpotPrefer {
			r := e.runs[g.Key]
			g.OnDemand = max(0, part.Of(g.Queued+r.all)-r.onDemand)
		}
	}
}

// forDemand reports whether a spot instance is not for the group's next element, since all that still wait are to run
// on demand. One that has just booted for elements of the group takes these: nothing could be rented on demand for them.
func (e *Engine) forDemand(g *group, in *fleet.Member) bool {
	return in.Market == drover.Spot && g.OnDemand > 0 && g.Queued <= g.OnDemand && !(e.justReady(in) && len(in.Load) < in.RentedFor(g.Key))
}

// shortOfDemand returns for how many more elements on-demand instances are wanted.
func (g *group) shortOfDemand() int { return max(0, min(g.OnDemand-g.OnDemandReserved, g.netDemand())) }

// mayReserve returns for how many more of the group's elements an instance may be rented or reserved.
func (g *group) mayReserve(in *fleet.Member) int {
	if in.Market == drover.Spot {
		return g.netDemand() - g.shortOfDemand()
	}
	return g.netDemand()
}

// splitMix splits off the parts of demands that must be met on demand, and returns the group of each resulting demand.
func (e *Engine) splitMix(p *drover.Problem, demands []*group) []*group {
	e.mix()
	groups := slices.Clone(demands)
	for i, g := range demands {
		n := min(g.shortOfDemand(), p.Demands[i].Count)
		if n == 0 {
			continue
		}
		own := p.Demands[i]
		own.Shape.Spot, own.Count = drover.SpotNever, n
		p.Demands[i].Count -= n
		p.Demands, groups = append(p.Demands, own), append(groups, g)
	}
	return groups
}
