package simulate

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// Pools in a simulation: how much of their number was ready, and whether instances were made, and went, where the balance of their zones wants it. What is
// counted follows from the rows that the engine writes and from the modelled clouds, not from what the engine says of its pools.

// Pool is what became of a pool.
type Pool struct {
	Name        string  `json:"name"`
	Wanted      int     `json:"wanted"`       // in the end
	Hours       float64 `json:"wanted_hours"` // instance-hours wanted, in the time in which a zone of the pool had capacity
	Ready       float64 `json:"ready"`        // the part of them that was ready; what was ready beyond the number does not count
	Instances   int     `json:"instances"`
	Interrupted int     `json:"interrupted"`     // by their cloud
	Replaced    Waits   `json:"replace_seconds"` // from the notice of an interruption, or the end, until as many were ready again
	Beyond      float64 `json:"beyond_hours"`    // instance-hours that were paid while more than wanted were up and none was being replaced
	Refused     int     `json:"refused"`         // creates, for want of capacity
	Unbalanced  int     `json:"unbalanced"`      // creates elsewhere than in the zone with the fewest, and removals elsewhere than from the fullest
}

// keeper measures a pool.
type keeper struct {
	w       *world
	spec    *pool.Spec
	rows    map[int64]engine.Instance
	in      map[pool.Place]int // how many of rows count
	ready   int                // instances, whatever the engine makes of them
	up      int                // that are paid
	since   drover.Time        // up to when wanted, served and beyond are added up
	wanted  float64            // seconds
	served  float64
	beyond  float64
	missing []drover.Time   // since when each that is missing is, the first first
	took    []time.Duration // until each was replaced
	out     Pool
}

// keepers are those of the pools that there are; none unless a time is simulated in which they are kept.
func (w *world) keepers() {
	if w.in.For == 0 {
		return
	}
	w.pools = map[string]*keeper{}
	for i := range w.in.Settings.Pools {
		s := &w.in.Settings.Pools[i]
		w.pools[s.Name] = &keeper{w: w, spec: s, rows: map[int64]engine.Instance{}, in: map[pool.Place]int{}, since: w.now, out: Pool{Name: s.Name, Wanted: s.Count}}
	}
	for _, o := range w.in.Offerings {
		if p := (pool.Place{Cloud: o.Cloud, Zone: o.Zone}); w.in.Models.Exhausted > 0 && w.spells[p] == nil {
			w.spells[p] = w.in.Models.spells(o)
			w.turn(p)
		}
	}
}

// follow has pools measured by what they are to be from now on.
func (w *world) follow(specs []pool.Spec) {
	for i := range specs {
		if k := w.pools[specs[i].Name]; k != nil {
			k.pass()
			k.spec, k.out.Wanted = &specs[i], specs[i].Count
			k.missing = k.missing[:min(len(k.missing), max(0, k.spec.Count-k.ready))] // the others are not replaced
		}
	}
}

// spells are the times in which a zone has capacity, and has none.
type spells struct {
	dice  *rand.Rand
	full  bool        // it has none
	since drover.Time // it is so
	means [2]time.Duration
}

// exhaustedFor is how long a zone is without capacity on average.
const exhaustedFor = 30 * time.Minute

// spells of a zone follow from the seed and the zone.
func (m Models) spells(o drover.Offering) *spells {
	o.Type.Name = ""
	open := time.Duration(float64(exhaustedFor) * (1 - m.Exhausted) / m.Exhausted)
	return &spells{dice: m.dice(spellStream, key(o)), full: true, means: [2]time.Duration{open, exhaustedFor}}
}

// turn ends a zone's present spell and begins the next.
func (w *world) turn(p pool.Place) {
	for _, k := range w.pools {
		k.pass()
	}
	s := w.spells[p]
	s.full, s.since = !s.full, w.now
	mean := s.means[0]
	if s.full {
		mean = s.means[1]
	}
	w.after(max(time.Second, time.Duration(float64(mean)*s.dice.ExpFloat64())), func() { w.turn(p) })
}

// full reports whether a zone has no capacity.
func (w *world) full(p pool.Place) bool { s := w.spells[p]; return s != nil && s.full }

// open reports whether a zone has had capacity for so long that nobody can leave it alone any more for having had none.
func (k *keeper) open(p pool.Place) bool {
	s := k.w.spells[p]
	return s == nil || !s.full && k.w.now.Sub(s.since) > k.spec.Cooldown+2*time.Minute
}

// shunned reports whether a zone is left alone because its cloud has just taken back much of what was there, but for one create that tries it.
func (k *keeper) shunned(p pool.Place) bool {
	return slices.ContainsFunc(k.w.loop.Engine.State().Blocks, func(b engine.Block) bool {
		return (!b.Over || b.Probe != 0) && b.ForInterruptions() && b.Cloud == p.Cloud && b.Zone == p.Zone
	})
}

// places are the zones in which the pool may have instances.
func (k *keeper) places() (all []pool.Place) {
	for _, o := range k.w.in.Offerings {
		if p := (pool.Place{Cloud: o.Cloud, Zone: o.Zone}); k.spec.Allows(p) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// pass adds up what was wanted, and ready, since the last time.
func (k *keeper) pass() {
	took := k.w.now.Sub(k.since).Seconds()
	k.since = k.w.now
	if took > 0 && slices.ContainsFunc(k.places(), func(p pool.Place) bool { return !k.w.full(p) }) {
		k.wanted += took * float64(k.spec.Count)
		k.served += took * float64(min(k.ready, k.spec.Count))
	}
	if len(k.missing) == 0 {
		k.beyond += took * float64(max(0, k.up-k.spec.Count))
	}
}

// keeperOf is that of an instance's pool; nil if it has none.
func (w *world) keeperOf(v *vm) *keeper { return w.pools[v.pool] }

// rented, serves, lost and returned follow an instance of a pool through its life.
func (k *keeper) rented() {
	k.pass()
	k.up++
	k.out.Instances++
}

func (k *keeper) serves(v *vm) {
	k.pass()
	k.ready++
	v.serves = true
	if len(k.missing) > 0 {
		k.took = append(k.took, k.w.now.Sub(k.missing[0]))
		k.missing = k.missing[1:]
	}
}

// lost begins the time that the replacement of an instance takes.
func (k *keeper) lost(v *vm) {
	if v.serves && !v.missed {
		v.missed = true
		k.missing = append(k.missing, k.w.now)
	}
}

func (k *keeper) returned(v *vm) {
	k.pass()
	if !v.off {
		k.up--
	}
	if v.serves {
		k.ready--
	}
	if v.notice != nil {
		k.out.Interrupted++
	}
}

// wrote follows the rows of a pool's instances, and looks whether each came, and goes, where it should.
func (w *world) wrote(in engine.Instance) {
	k := w.pools[in.Pool]
	if k == nil {
		return
	}
	was, known := k.rows[in.ID]
	k.rows[in.ID] = in
	here := pool.Place{Cloud: in.Cloud, Zone: in.Zone}
	switch before := known && counts(was); {
	case !before && counts(in):
		if !known && k.spec.Spread == drover.SpreadBalanced && slices.ContainsFunc(k.places(), func(p pool.Place) bool { return k.in[p] < k.in[here] && k.open(p) && !k.shunned(p) }) {
			k.out.Unbalanced++
		}
		k.in[here]++
	case before && !counts(in):
		surplus := in.Reason != nil && in.Reason.Cause == drover.ReasonPool || in.Told != nil && in.Told.Cause == drover.ReasonPool
		if surplus && k.spec.Spread == drover.SpreadBalanced && slices.ContainsFunc(k.places(), func(p pool.Place) bool { return k.in[p] > k.in[here] }) {
			k.out.Unbalanced++
		}
		k.in[here]--
	}
}

// counts reports whether an instance counts toward its pool.
func counts(in engine.Instance) bool {
	return in.State != drover.InstanceStopping && in.State != drover.InstanceStopped && in.State != drover.InstanceGone && !in.Broken && in.Reclaimed == nil && in.Unhealthy == nil && in.Idle != drover.IdleDrain
}

// left forgets the row of an instance that is gone.
func (w *world) left(id int64) {
	for _, k := range w.pools {
		if in, ok := k.rows[id]; ok {
			if counts(in) {
				k.in[pool.Place{Cloud: in.Cloud, Zone: in.Zone}]--
			}
			delete(k.rows, id)
		}
	}
}

// kept is what became of the pools, by name.
func (w *world) kept() (all []Pool) {
	for _, k := range w.pools {
		k.pass()
		if k.out.Replaced, k.out.Hours, k.out.Beyond = Summarize(k.took), k.wanted/3600, k.beyond/3600; k.wanted > 0 {
			k.out.Ready = k.served / k.wanted
		}
		all = append(all, k.out)
	}
	slices.SortFunc(all, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// ends is when a simulation of pools ends; 0: with its jobs.
func (w *world) ends() drover.Time {
	if w.in.For == 0 {
		return 0
	}
	return w.m.begin.Add(w.in.For)
}

// endAll ends the bills of all instances that there are.
func (w *world) endAll() {
	for _, k := range w.pools {
		k.pass()
	}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		w.m.returned(w.vms[id].hire, false)
	}
}

// refuses says that no candidate is to be had, since their zones have no capacity.
func (w *world) refuses(candidates []drover.Offering) (taken drover.Offering, err *drover.Error) {
	for _, o := range candidates {
		if !w.full(pool.Place{Cloud: o.Cloud, Zone: o.Zone}) {
			return o, nil
		}
	}
	return drover.Offering{}, &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeZone, Market: candidates[0].Market, Message: "the zone has no capacity left"}
}
