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

// Pools in a simulation: how many of their instances were ready, and whether instances were added and removed as the
// balance of the zones requires. The counts come from the rows that the engine writes and from the modelled clouds, not
// from the engine's own status of its pools.

// Pool is the result of a pool.
type Pool struct {
	Name        string  `json:"name"`
	Wanted      int     `json:"wanted"`       // at the end
	Hours       float64 `json:"wanted_hours"` // instance-hours wanted while a zone of the pool had capacity
	Ready       float64 `json:"ready"`        // the share of them that was ready; surplus instances do not count
	Instances   int     `json:"instances"`
	Interrupted int     `json:"interrupted"`     // by their cloud
	Replaced    Waits   `json:"replace_seconds"` // from an interruption's notice, or the instance's end, until as many were ready again
	Beyond      float64 `json:"beyond_hours"`    // paid instance-hours of surplus instances while none was being replaced
	Refused     int     `json:"refused"`         // create requests refused for lack of capacity
	Unbalanced  int     `json:"unbalanced"`      // instances not created in the emptiest zone, or not removed from the fullest
}

// keeper measures a pool.
type keeper struct {
	w       *world
	spec    *pool.Spec
	rows    map[int64]engine.Instance
	in      map[pool.Place]int // how many of rows count towards the pool
	ready   int                // ready instances, independent of the engine's view
	up      int                // instances being paid
	since   drover.Time        // the time up to which wanted, served and beyond are summed
	wanted  float64            // seconds
	served  float64
	beyond  float64
	missing []drover.Time   // since when each missing instance is missing, oldest first
	took    []time.Duration // how long each replacement took
	out     Pool
}

// keepers returns a keeper for each pool; none unless the simulation maintains pools.
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

// follow measures pools against new specifications from now on.
func (w *world) follow(specs []pool.Spec) {
	for i := range specs {
		if k := w.pools[specs[i].Name]; k != nil {
			k.pass()
			k.spec, k.out.Wanted = &specs[i], specs[i].Count
			k.missing = k.missing[:min(len(k.missing), max(0, k.spec.Count-k.ready))] // the others are not replaced
		}
	}
}

// spells are the alternating periods in which a zone has, and has no, capacity.
type spells struct {
	dice  *rand.Rand
	full  bool        // the zone has no capacity
	since drover.Time // when this period began
	means [2]time.Duration
}

// exhaustedFor is the mean time for which a zone has no capacity.
const exhaustedFor = 30 * time.Minute

// The spells of a zone follow from the seed and the zone.
func (m Models) spells(o drover.Offering) *spells {
	o.Type.Name = ""
	open := time.Duration(float64(exhaustedFor) * (1 - m.Exhausted) / m.Exhausted)
	return &spells{dice: m.dice(spellStream, key(o)), full: true, means: [2]time.Duration{open, exhaustedFor}}
}

// turn ends a zone's current spell and begins the next.
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

// open reports whether a zone has had capacity for so long that no cooldown of an earlier shortage can apply.
func (k *keeper) open(p pool.Place) bool {
	s := k.w.spells[p]
	return s == nil || !s.full && k.w.now.Sub(s.since) > k.spec.Cooldown+2*time.Minute
}

// shunned reports whether a zone is blocked, except for one test request, because its cloud has just reclaimed many
// instances there.
func (k *keeper) shunned(p pool.Place) bool {
	return slices.ContainsFunc(k.w.loop.Engine.State().Blocks, func(b engine.Block) bool {
		return (!b.Over || b.Probe != 0) && b.ForInterruptions() && b.Cloud == p.Cloud && b.Zone == p.Zone
	})
}

// places returns the zones in which the pool may have instances.
func (k *keeper) places() (all []pool.Place) {
	for _, o := range k.w.in.Offerings {
		if p := (pool.Place{Cloud: o.Cloud, Zone: o.Zone}); k.spec.Allows(p) && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// pass adds up how many instances were wanted and ready since the last call.
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

// keeperOf returns the keeper of an instance's pool; nil if it has none.
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

// lost starts to measure how long the replacement of an instance takes.
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

// wrote follows the rows of a pool's instances, and checks whether each was added or removed in the right zone.
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
		surplus := in.Reason != nil && in.Reason.Cause == drover.ReasonPool || in.IdleReason != nil && in.IdleReason.Cause == drover.ReasonPool
		if surplus && k.spec.Spread == drover.SpreadBalanced && slices.ContainsFunc(k.places(), func(p pool.Place) bool { return k.in[p] > k.in[here] }) {
			k.out.Unbalanced++
		}
		k.in[here]--
	}
}

// counts reports whether an instance counts towards its pool.
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

// kept returns the results of the pools, by name.
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

// ends returns when a simulation of pools ends; 0: with its jobs.
func (w *world) ends() drover.Time {
	if w.in.For == 0 {
		return 0
	}
	return w.m.begin.Add(w.in.For)
}

// endAll ends the bills of all existing instances.
func (w *world) endAll() {
	for _, k := range w.pools {
		k.pass()
	}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		w.m.returned(w.vms[id].hire, false)
	}
}

// refuses returns an error if no candidate's zone has capacity.
func (w *world) refuses(candidates []drover.Offering) (taken drover.Offering, err *drover.Error) {
	for _, o := range candidates {
		if !w.full(pool.Place{Cloud: o.Cloud, Zone: o.Zone}) {
			return o, nil
		}
	}
	return drover.Offering{}, &drover.Error{Kind: drover.KindCapacity, Scope: drover.ScopeZone, Market: candidates[0].Market, Message: "the zone has no capacity left"}
}
