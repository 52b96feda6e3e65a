package pool

import (
	"cmp"
	"slices"

	"drover"
)

// Place is a zone of a cloud.
type Place struct {
	Cloud string `json:"cloud"`
	Zone  string `json:"zone"`
}

// String returns CLOUD/ZONE.
func (p Place) String() string { return p.Cloud + "/" + p.Zone }

func (p Place) compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Cloud, o.Cloud), cmp.Compare(p.Zone, o.Zone))
}

// Zone is a place in which the pool may have instances.
type Zone struct {
	Place
	Open  bool         // another instance may be rented there now
	Spot  bool         // only on spot
	Until drover.Time  // exhausted, and avoided until then
	Price drover.Money // of the cheapest offering that may be rented there
}

// View is an instance of the pool.
type View struct {
	Place
	ID                   int64
	Template             string       // empty: unknown
	Asked                drover.Time  // when it was requested
	Price                drover.Money // while it runs
	OnDemand             bool
	Ready                bool
	Busy                 int         // jobs running or reserved on it
	Held                 bool        // by an operator
	Going                bool        // draining, broken, interrupted or ending: it does not count
	Stopped              bool        // kept stopped; it does not count
	Lent                 bool        // started for jobs, which use it or will
	Taken                bool        // in a spare pool: only one user's jobs may use it
	Useless              bool        // no jobs may use it any more, though they are what it is for
	Stoppable, Startable bool        // now
	Retry                drover.Time // when it may become startable
	Keep                 drover.Time // a spare pool keeps a surplus instance until then
}

// Input is everything that determines a pool's next steps.
type Input struct {
	Spec  Spec
	Now   drover.Time
	Count int    // the current size, instead of Spec.Count
	InUse int    // instances of the fleet that run jobs
	Zones []Zone // those in which something may be rented
	Views []View // by ID
	Stuck bool   // instances of the current template do not become ready
}

// Demand asks for an instance in a Place; the empty Place: wherever it is cheapest.
type Demand struct {
	Place
	OnDemand bool // nothing else will do
}

// Why is why an instance is released.
type Why int

// The reasons.
const (
	Surplus   Why = iota // there are more than wanted
	Outdated             // created from an older template
	Aged                 // reached max_age
	Unusable             // no jobs may use it any more
	Misplaced            // its cloud or zone no longer belongs to the pool
	Unbalance            // its zone has too many, another too few
	Unkept               // more are stopped than should be
)

// Release is an instance to be released.
type Release struct {
	ID  int64
	Why Why
}

// Plan is what a pool needs next.
type Plan struct {
	Wanted   int // instances in total
	Denied   int // that max does not allow
	Counted  int // existing and demanded, without released ones
	Short    int // wanted instances that no zone can provide now
	Demands  []Demand
	Releases []Release
	Starts   []int64 // IDs of stopped instances
	Stops    []int64 // to be started again later

	ShortStopped int         // instances to be kept stopped that no zone can provide now
	ShortSurge   int         // instances that no zone can provide now, to replace outdated ones while all are ready
	Settled      bool        // nothing to do before an instance changes, or Next
	Next         drover.Time // when time alone causes something to do; 0: never
}

// Allows reports whether the pool may have instances in a place.
func (s *Spec) Allows(p Place) bool {
	return slices.Contains(s.Clouds, p.Cloud) && (len(s.Zones) == 0 || slices.Contains(s.Zones, p.Zone) || slices.Contains(s.Zones, p.String()))
}

// Asks reports whether anything is to be done now.
func (p *Plan) Asks() bool {
	return len(p.Demands)+len(p.Releases)+len(p.Starts)+len(p.Stops) > 0
}

// round is the state while computing one plan.
type round struct {
	Input
	plan    Plan
	counted []member
	stopped []member      // kept stopped
	strays  []member      // in places that no longer belong to the pool
	in      map[Place]int // how many count, per place
	old     map[Place]int // how many of those are to be replaced
	steady  int           // on-demand ones among those that count
	ready   int           // ready ones among all
}

type member struct {
	View
	old Why // Outdated, Aged or Unusable; otherwise Surplus
}

// Reconcile returns what a pool needs next. Equal inputs give equal plans. It is called again after a plan is carried
// out, until it asks for nothing.
func Reconcile(in Input) Plan {
	r := &round{Input: in, in: map[Place]int{}, old: map[Place]int{}}
	r.sort()
	r.dismiss()
	r.plan.Wanted = r.wanted()
	r.retire()
	old := r.outdated()
	r.stop()
	r.shrink()
	r.replace()
	r.evacuate()
	r.start()
	r.fill()
	balanced := r.rebalance()
	r.plan.Counted = len(r.counted) + len(r.plan.Demands)
	r.plan.Settled = balanced && r.plan.Counted == r.plan.Wanted && old == 0 && len(r.strays) == 0 && r.missing() == 0 && !r.plan.Asks()
	return r.plan
}

// sort separates the instances that count from the others.
func (r *round) sort() {
	for _, v := range r.Views {
		m := member{View: v, old: r.age(v)}
		switch {
		case v.Going:
			continue
		case v.Stopped:
			r.stopped = append(r.stopped, m)
			continue
		case !v.Held && !r.Spec.Allows(v.Place):
			r.strays = append(r.strays, m)
		case v.UsedByJobs():
			if m.old != Surplus {
				r.plan.Releases = append(r.plan.Releases, Release{m.ID, m.old})
			}
			continue
		default:
			r.counted = append(r.counted, m)
			r.in[v.Place]++
			r.old[v.Place] += count(m.old != Surplus)
			r.steady += count(v.OnDemand)
		}
		r.ready += count(v.Ready)
	}
}

// age returns why an instance is to be replaced: its template, its age, or that no jobs may use it.
func (r *round) age(v View) Why {
	switch ages := v.Asked.Add(r.Spec.MaxAge); {
	case v.Held:
	case v.Template != "" && v.Template != r.Spec.Template:
		return Outdated
	case v.Useless:
		return Unusable
	case r.Spec.MaxAge == 0:
	case ages <= r.Now:
		return Aged
	default:
		r.next(ages)
	}
	return Surplus
}

func (r *round) next(at drover.Time) {
	if at > r.Now && (r.plan.Next == 0 || at < r.plan.Next) {
		r.plan.Next = at
	}
}

// wanted returns how many instances there should be in total.
func (r *round) wanted() int {
	n := r.Count
	if r.Spec.Kind == drover.PoolSpare {
		n = max(n, r.Spec.Share(r.InUse))
		for _, m := range r.counted {
			n += count(m.Busy > 0 || m.Held || m.Taken)
		}
	}
	if r.Spec.Max > 0 && r.Spec.Kind != drover.PoolGroup { // never demanded beyond it
		r.plan.Denied = max(0, n-r.Spec.Max)
		n = min(n, r.Spec.Max)
	}
	return n
}

// shortOfDemand reports whether fewer are on demand than the mix wants.
func (r *round) shortOfDemand() bool { return r.steady < r.Spec.Mix.OnDemand.Of(r.plan.Wanted) }

// spared reports whether the mix needs this on-demand instance.
func (r *round) spared(m *member) bool {
	return m.OnDemand && r.steady <= r.Spec.Mix.OnDemand.Of(r.plan.Wanted)
}

// outdated returns how many are to be replaced.
func (r *round) outdated() (n int) {
	for _, m := range r.counted {
		n += count(m.old != Surplus)
	}
	return n
}

// surge returns how many there may temporarily be beyond Wanted while outdated ones are replaced.
func (r *round) surge() int {
	if r.Stuck {
		return 0
	}
	return min(r.mostSurge(), r.outdated())
}

// mostSurge returns MaxSurge. Replacing needs either surge or unavailability: if both are zero, it is one.
func (r *round) mostSurge() int {
	most := r.portion(r.Spec.MaxSurge, r.Spec.SurgePart)
	if r.mostUnavailable() == 0 {
		return max(1, most)
	}
	return most
}

func (r *round) mostUnavailable() int {
	return r.portion(r.Spec.MaxUnavailable, r.Spec.UnavailablePart)
}

// portion returns a number of instances or, if part is not 0, at least one and this part of the wanted instances.
func (r *round) portion(number, part int) int {
	if part == 0 {
		return number
	}
	return max(1, r.plan.Wanted*part/wholeRatio)
}

// spareable reports whether a ready instance may go and leave enough.
func (r *round) spareable() bool { return r.ready-1 >= r.plan.Wanted-r.mostUnavailable() }

// shrink releases instances beyond the wanted number. While replacements fail, unready ones go first, wherever they
// are.
func (r *round) shrink() {
	for len(r.counted) > r.plan.Wanted+r.surge()+r.missing() {
		at := -1
		if r.Stuck {
			at = r.pick(func(m *member) bool { return !m.Ready && r.removable(m) })
		}
		if at < 0 {
			at = r.pick(r.removable)
		}
		waits := at >= 0 && r.Spec.Rebalance && r.counted[at].Ready && r.ready <= r.plan.Wanted && len(r.counted) <= r.plan.Wanted+r.mostSurge()
		if at < 0 || waits {
			return
		}
		r.release(at, Surplus)
	}
}

// dismiss releases a spare pool's instances that their user no longer needs: to other users, they are not spare.
func (r *round) dismiss() {
	taken := func(m *member) bool { return m.Taken && m.Ready && !m.Held && r.idle(m) }
	for at := r.pick(taken); at >= 0; at = r.pick(taken) {
		r.release(at, Surplus)
	}
}

// removable reports whether an instance may be released as surplus. A spare pool keeps those in use.
func (r *round) removable(m *member) bool {
	switch {
	case m.Held:
		return false
	case r.Spec.Kind == drover.PoolGroup:
		return m.old != Surplus
	case r.Spec.Kind != drover.PoolSpare || r.Spec.Max > 0 && len(r.counted) > r.Spec.Max:
		return true
	}
	return r.idle(m)
}

// idle reports whether an instance runs nothing, and need not be kept any more.
func (r *round) idle(m *member) bool {
	r.next(m.Keep)
	return m.Busy == 0 && m.Keep <= r.Now
}

// pick returns the next instance to release: from the fullest place, outdated ones first, then the least useful. -1:
// there is none.
func (r *round) pick(some func(*member) bool) int {
	best := -1
	for i := range r.counted {
		if some(&r.counted[i]) && (best < 0 || r.before(&r.counted[i], &r.counted[best])) {
			best = i
		}
	}
	return best
}

func (r *round) before(a, b *member) bool {
	spread := 0
	if r.Spec.Spread != drover.SpreadCheapest {
		spread = cmp.Compare(r.in[b.Place], r.in[a.Place])
	}
	return cmp.Or(spread, first(a.old != Surplus, b.old != Surplus), first(!a.Ready, !b.Ready), first(!r.spared(a), !r.spared(b)), cmp.Compare(a.Busy, b.Busy),
		cmp.Compare(b.Price, a.Price), cmp.Compare(b.Asked, a.Asked), cmp.Compare(b.ID, a.ID)) < 0
}

// first orders true before false.
func first(a, b bool) int { return cmp.Compare(count(b), count(a)) }

func count(so bool) int {
	if so {
		return 1
	}
	return 0
}

// release releases a counted instance.
func (r *round) release(at int, why Why) {
	r.plan.Releases = append(r.plan.Releases, Release{r.counted[at].ID, why})
	r.take(at)
}

// take removes an instance from those that count.
func (r *round) take(at int) {
	m := r.counted[at]
	r.counted = slices.Delete(r.counted, at, at+1)
	r.in[m.Place]--
	r.old[m.Place] -= count(m.old != Surplus)
	r.steady -= count(m.OnDemand)
	r.ready -= count(m.Ready)
	r.plan.Wanted = r.wanted() // in a spare pool it decreases with an instance in use
}

// replace releases outdated instances while enough others are ready.
func (r *round) replace() {
	for !r.Stuck {
		at := r.pick(func(m *member) bool { return m.old != Surplus && (!m.Ready || r.spareable()) })
		if at < 0 {
			return
		}
		r.release(at, r.counted[at].old)
	}
}

// evacuate releases instances in places that no longer belong to the pool. They do not count, so replacements are
// demanded immediately.
func (r *round) evacuate() {
	slices.SortStableFunc(r.strays, func(a, b member) int { return cmp.Or(first(!a.Ready, !b.Ready), cmp.Compare(a.Busy, b.Busy)) })
	for _, m := range r.strays {
		if m.Ready && !r.spareable() {
			return
		}
		r.plan.Releases = append(r.plan.Releases, Release{m.ID, Misplaced})
		r.ready -= count(m.Ready)
	}
}

// fill demands missing instances, each in the open place with the fewest.
func (r *round) fill() {
	most := r.plan.Wanted + r.surge() + r.missing()
	for n := len(r.counted); n < most; n++ {
		d, ok := r.nextDemand()
		if !ok {
			r.plan.Short = max(0, r.plan.Wanted-n)
			r.plan.ShortStopped = max(0, min(r.missing(), r.plan.Wanted+r.missing()-n))
			if n >= r.plan.Wanted+r.missing() && r.ready == len(r.counted) {
				r.plan.ShortSurge = most - n
			}
			return
		}
		r.demand(d)
	}
}

// nextDemand returns the next demand, if any place is open.
func (r *round) nextDemand() (d Demand, ok bool) {
	if r.shortOfDemand() {
		if d.Place, ok = r.emptiest(true); ok {
			return Demand{d.Place, true}, true
		}
	}
	d.Place, ok = r.emptiest(false)
	return d, ok
}

func (r *round) demand(d Demand) {
	if r.Spec.Spread == drover.SpreadCheapest {
		d.Place = Place{}
	}
	r.in[d.Place]++
	r.steady += count(d.OnDemand)
	r.plan.Demands = append(r.plan.Demands, d)
}

// emptier compares places by their counted instances. First come those that stay: the others' successors need not be in
// the same places.
func (r *round) emptier(a, b Place) int {
	stay := func(at Place) int {
		if r.Stuck {
			return r.in[at]
		}
		return r.in[at] - r.old[at]
	}
	return cmp.Or(cmp.Compare(stay(a), stay(b)), cmp.Compare(r.in[a], r.in[b]))
}

// emptiest returns the open place with the fewest counted instances; of several, the cheapest.
func (r *round) emptiest(onDemand bool) (best Place, ok bool) {
	price := drover.Money(0)
	for _, z := range r.Zones {
		if r.next(z.Until); !z.Open || onDemand && z.Spot || z.Until > r.Now || !r.Spec.Allows(z.Place) {
			continue
		}
		if !ok || cmp.Or(r.emptier(z.Place, best), cmp.Compare(z.Price, price), z.compare(best)) < 0 {
			best, price, ok = z.Place, z.Price, true
		}
	}
	return best, ok
}

// rebalance moves one instance from the fullest place to the emptiest, once all are ready, and reports whether the pool
// is balanced.
func (r *round) rebalance() bool {
	fixed := !r.Spec.Rebalance || r.Spec.Spread == drover.SpreadCheapest || r.Spec.Kind == drover.PoolSpare // a spare pool changes by itself
	if fixed || r.plan.Asks() || len(r.counted) != r.plan.Wanted {
		return true
	}
	to, open := r.nextDemand()
	from := r.pick(func(m *member) bool { return !m.Held })
	if !open || from < 0 || r.in[r.counted[from].Place]-r.in[to.Place] < 2 {
		return !r.closed()
	}
	switch {
	case r.Stuck || r.ready < r.plan.Wanted || len(r.strays) > 0:
	case r.mostSurge() > 0:
		r.demand(to)
	case r.spareable():
		r.release(from, Unbalance)
		r.demand(to)
	}
	return false
}

// closed reports whether a place that may be needed for balance cannot be used now.
func (r *round) closed() bool {
	return slices.ContainsFunc(r.Zones, func(z Zone) bool { return !z.Open || z.Until > r.Now })
}
