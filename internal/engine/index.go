package engine

import (
	"cmp"
	"slices"

	"drover"
)

// fleetIndex are the instances that something may be done with, by what that is, each in an order of its own. They follow an instance when it changes,
// so that a decision looks at those that it concerns and not at all that there are.
type fleetIndex struct {
	ready    []*instance // on which work may be begun, with vCPUs free: those with most of them first, of these the oldest
	coming   []*instance // on their way, to which work may be bound; this and the others by ID
	bound    []*instance // to which some is
	creating []*instance // that their cloud was asked for, or will be
	idle     []*instance
	ending   []*instance
	taken    []*instance // that their clouds take back, or whose room is kept for what runs on those
	takers   int         // how many take work, now or once they can

	news  []*instance    // those of ready that have changed since groups last looked
	stale []*instance    // that have changed since it was refreshed
	in    map[string]int // by cloud: how many there are
}

// enrolled is where in the index an instance is.
type enrolled struct {
	stale                                               bool
	anew                                                bool // what it has, or who may have it, has changed
	ready, coming, bound, creating, idle, ending, taken bool
	takes                                               bool
	free                                                drover.MilliCPU // its place among those that are ready
	seen                                                int             // how often it was looked at because it has changed
}

// enlist has an instance looked at when the index is refreshed next, since it has changed.
func (e *Engine) enlist(in *instance) {
	in.on.anew = true
	e.relist(in)
}

// relist is enlist of one of which only that has changed whether room is kept on it, which no group has to hear of.
func (e *Engine) relist(in *instance) {
	if !in.on.stale {
		in.on.stale = true
		e.fleetIndex.stale = append(e.fleetIndex.stale, in)
	}
}

// changed has all that follows from an instance follow what has changed of it.
func (e *Engine) changed(in *instance) {
	e.enlist(in)
	e.ledger.Changed(in.ID)
	if in.pooled() {
		e.pools.revision++
	}
}

// refreshIndex brings the index up to what there is now. It is not to be called while one of them is gone through.
func (e *Engine) refreshIndex() *fleetIndex {
	r := &e.fleetIndex
	for _, in := range r.stale {
		in.on.stale = false
		r.enrol(in)
	}
	r.stale = r.stale[:0]
	return r
}

// count counts the instances of a cloud.
func (r *fleetIndex) count(cloud string, more int) {
	if r.in == nil {
		r.in = map[string]int{}
	}
	r.in[cloud] += more
}

func (r *fleetIndex) enrol(in *instance) {
	there, on := in.State != drover.InstanceGone, &in.on
	ready := there && in.open() && in.free.CPU > 0
	if (ready || on.ready) && (on.anew || ready != on.ready || on.free != in.free.CPU) {
		r.news = append(r.news, in)
		on.seen++
	}
	on.anew = false
	if on.ready && (!ready || on.free != in.free.CPU) {
		at, _ := slices.BinarySearchFunc(r.ready, in, byFree)
		r.ready, on.ready = slices.Delete(r.ready, at, at+1), false
	}
	if ready && !on.ready {
		on.ready, on.free = true, in.free.CPU
		at, _ := slices.BinarySearchFunc(r.ready, in, byFree)
		r.ready = slices.Insert(r.ready, at, in)
	}
	enter(&r.coming, &on.coming, in, there && in.coming())
	enter(&r.bound, &on.bound, in, there && len(in.Bound) > 0)
	enter(&r.creating, &on.creating, in, there && (in.State == drover.InstanceCreating || len(in.Candidates) > 0))
	enter(&r.idle, &on.idle, in, in.State == drover.InstanceIdle)
	enter(&r.ending, &on.ending, in, in.State == drover.InstanceStopping)
	enter(&r.taken, &on.taken, in, there && (in.Reclaimed != nil || in.Standby > 0))
	if takes := there && in.serving(); takes != on.takes {
		on.takes = takes
		r.takers += map[bool]int{false: -1, true: 1}[takes]
	}
}

// byFree is the order of those that are ready, by what was free of them when they were enrolled.
func byFree(a, b *instance) int {
	return cmp.Or(cmp.Compare(b.on.free, a.on.free), cmp.Compare(a.ID, b.ID))
}

func byID(a, b *instance) int { return cmp.Compare(a.ID, b.ID) }

// enter puts an instance on a roll or takes it off.
func enter(roll *[]*instance, is *bool, in *instance, should bool) {
	if *is == should {
		return
	}
	*is = should
	at, _ := slices.BinarySearchFunc(*roll, in, byID)
	if should {
		*roll = slices.Insert(*roll, at, in)
	} else {
		*roll = slices.Delete(*roll, at, at+1)
	}
}

// fit is an instance that has room for a group's next job.
type fit struct {
	in      *instance
	keptFor *group // by which it was kept from this group
	seen    int    // when it was as it was then
}

func (f fit) compare(in *instance) int { return byID(f.in, in) }

// catchUp brings up to now which instances have room for one of the group's jobs.
func (e *Engine) catchUp(g *group, r *fleetIndex) {
	switch {
	case g.Queued == 0 && g.Coming == 0:
		g.fits, g.knows = nil, false
	case !g.knows:
		g.knows = true
		for _, in := range r.ready {
			if in.holds(g) {
				g.fits = append(g.fits, fit{in: in})
			}
		}
		slices.SortFunc(g.fits, func(a, b fit) int { return byID(a.in, b.in) })
	default:
		for _, in := range r.news {
			at, had := slices.BinarySearchFunc(g.fits, in, fit.compare)
			switch fits := in.on.ready && in.holds(g); {
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
