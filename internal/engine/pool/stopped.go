package pool

import (
	"cmp"
	"slices"

	"drover"
)

// UsedByJobs reports whether jobs use an instance that was started for them, so that it does not count yet.
func (v *View) UsedByJobs() bool { return v.Lent && !v.Held }

// missing returns how many more should be kept stopped.
func (r *round) missing() int { return max(0, r.Spec.Stopped-len(r.stopped)) }

// retire releases stopped instances that are surplus, outdated, or in a place that the pool no longer uses.
func (r *round) retire() {
	kept := r.stopped[:0]
	for _, m := range r.stopped {
		misplaced := !r.Spec.Allows(m.Place)
		switch {
		case m.Held || !misplaced && m.old == Outdated && r.Stuck:
			kept = append(kept, m)
		case misplaced:
			r.plan.Releases = append(r.plan.Releases, Release{m.ID, Misplaced})
		case m.old != Surplus:
			r.plan.Releases = append(r.plan.Releases, Release{m.ID, m.old})
		case len(kept) >= r.Spec.Stopped:
			r.plan.Releases = append(r.plan.Releases, Release{m.ID, Unkept})
		default:
			kept = append(kept, m)
		}
	}
	r.stopped = kept
}

// stop stops empty ready instances beyond the wanted number while too few are stopped. Outdated instances are replaced
// first.
func (r *round) stop() {
	for r.missing() > 0 && r.outdated() == 0 && len(r.counted) > r.plan.Wanted && r.ready > r.plan.Wanted {
		at := r.pick(func(m *member) bool { return m.Stoppable && m.Ready && !m.Held && m.Busy == 0 && !m.Taken })
		if at < 0 {
			return
		}
		m := r.counted[at]
		r.plan.Stops = append(r.plan.Stops, m.ID)
		r.take(at)
		r.stopped = append(r.stopped, m)
	}
}

// sooner reports whether a stopped instance is started before another: in the place with the fewest, then, or if the
// pool is not spread, the cheapest first.
func (r *round) sooner(a, b *member) bool {
	spread := 0
	if r.Spec.Spread != drover.SpreadCheapest {
		spread = cmp.Compare(r.in[a.Place], r.in[b.Place])
	}
	return cmp.Or(spread, cmp.Compare(a.Price, b.Price)) < 0
}

// start starts stopped instances to replace missing ones.
func (r *round) start() {
	for len(r.counted) < r.plan.Wanted {
		best := -1
		for i, m := range r.stopped {
			switch {
			case m.Held || m.old != Surplus || slices.Contains(r.plan.Stops, m.ID):
			case !m.Startable:
				r.next(m.Retry)
			case best < 0 || r.sooner(&r.stopped[i], &r.stopped[best]):
				best = i
			}
		}
		if best < 0 {
			return
		}
		m := r.stopped[best]
		m.Ready = false
		r.stopped = slices.Delete(r.stopped, best, best+1)
		r.plan.Starts = append(r.plan.Starts, m.ID)
		r.counted = append(r.counted, m)
		r.in[m.Place]++
		r.steady++
	}
}
