package engine

import (
	"slices"

	"drover/internal/engine/fleet"
)

// fit is an instance that has room for a group's next job.
type fit struct {
	in      *fleet.Member
	keptFor *group // by which it was kept from this group
	seen    int    // when it was as it was then
}

func (f fit) compare(in *fleet.Member) int { return fleet.ByID(f.in, in) }

// catchUp brings up to now which instances have room for one of the group's jobs.
func (e *Engine) catchUp(g *group, r *fleet.Index) {
	switch {
	case g.Queued == 0 && g.Coming == 0:
		g.fits, g.knows = nil, false
	case !g.knows:
		g.knows = true
		for _, in := range r.Ready {
			if in.Holds(&g.demand) {
				g.fits = append(g.fits, fit{in: in})
			}
		}
		slices.SortFunc(g.fits, func(a, b fit) int { return fleet.ByID(a.in, b.in) })
	default:
		for _, in := range r.News {
			at, had := slices.BinarySearchFunc(g.fits, in, fit.compare)
			switch fits := in.IsReady() && in.Holds(&g.demand); {
			case fits && !had:
				g.fits = slices.Insert(g.fits, at, fit{in: in})
			case had && !fits:
				g.fits = slices.Delete(g.fits, at, at+1)
			}
		}
	}
}

// forgetFits has all groups look at every instance again.
func (e *Engine) forgetFits() {
	for _, g := range e.groups {
		g.fits, g.knows = nil, false
	}
}
