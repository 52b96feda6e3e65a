package engine

import (
	"slices"

	"drover"
)

// giveWay ends idle instances that nothing which waits can use, where a limit or a quota keeps waiting work from getting others (BEHAVIOUR
// D18): not more of them than there is such work. It is asked after everything has been placed that can be, so what is idle is of no use
// to whatever waits.
func (e *Engine) giveWay() {
	if e.s.Closing || e.s.Draining || e.s.Solving != nil {
		return
	}
	for _, g := range e.groups {
		if left := g.unbound(); left > 0 && g.stuck {
			e.makeRoom(g, left)
		}
	}
}

// makeRoom ends idle instances in whose place the group could have others, until there are as many on their way out as it has jobs to place.
func (e *Engine) makeRoom(g *group, left int) {
	var idle []*instance
	for _, in := range e.instances {
		switch {
		case in.State == drover.InstanceStopping:
			left--
		case e.spare(in) && e.yields(in, g):
			idle = append(idle, in)
		}
	}
	for _, in := range idle[:min(max(left, 0), len(idle))] {
		e.stop(in, e.reason(drover.ReasonIdle, "idle, and what waits needs another in its place"))
	}
}

// spare reports whether nothing is on an instance and nobody wants it kept.
func (e *Engine) spare(in *instance) bool {
	return in.State == drover.InstanceIdle && in.open() && len(in.load) == 0 && e.s.Now >= in.KeepUntil
}

// yields reports whether the end of an instance would let the group have one that can hold its jobs.
func (e *Engine) yields(in *instance, g *group) bool {
	return slices.ContainsFunc(e.rentable(), func(o drover.Offering) bool {
		if !g.key.Shape.Accepts(o) || g.key.Shape.Accepts(in.offering()) {
			return false
		}
		if b := e.blockOf(o); b != nil {
			return b.Reason.Code == string(drover.KindQuota) && b.Covers(in.offering())
		}
		return e.room() == 0 && (in.Cloud == o.Cloud || e.cloudRoom(o.Cloud) > 0) || e.cloudRoom(o.Cloud) == 0 && in.Cloud == o.Cloud
	})
}
