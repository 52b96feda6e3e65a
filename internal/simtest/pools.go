package simtest

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// Pools in the modelled world: what people do with them, and the promises about them. Checks compare each write with
// the disk.

// repool changes a pool for a person: its number by a wish; its zones, its template or its existence by the
// configuration.
func (w *World) repool() {
	all := slices.Clone(w.settings.Pools)
	s := &all[w.roll(len(all))]
	if s.Kind == drover.PoolGroup {
		w.autoscale(s)
		return
	}
	switch w.roll(6) {
	case 0:
		if s.Zones = []string{"a"}; w.roll(2) == 0 {
			s.Zones = nil
		}
	case 1:
		s.Template += "'"
	case 2:
		if len(all) == len(w.recipe.Settings.Pools) {
			all = all[:len(all)-1]
		} else {
			all = slices.Clone(w.recipe.Settings.Pools)
		}
	default:
		w.wish(engine.ResizeAsked{Pool: s.Name, Count: w.roll(6) - 1})
		return
	}
	w.settings.Pools = all
	w.tell(engine.Configured{Settings: w.settings})
}

// poolSpec returns a pool's configuration as the controller was given it; nil if there is none.
func (c *controller) poolSpec(name string) *pool.Spec {
	at := slices.IndexFunc(c.settings.Pools, func(s pool.Spec) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &c.settings.Pools[at]
}

// stateOf returns an instance's state in the engine, which learns of its silence before that is written.
func (c *controller) stateOf(name string) drover.InstanceState {
	in, _ := c.loop.Engine.Find(name)
	return in.State
}

// members are the instances that count in a pool.
type members struct {
	places    map[pool.Place]int // how many are in each place
	stay      map[pool.Place]int // and will not be replaced
	all, held int                // held: or in use
}

// counted counts a pool's instances.
func (w *World) counted(s *pool.Spec) members {
	m := members{places: map[pool.Place]int{}, stay: map[pool.Place]int{}}
	for _, in := range w.Disk.instances {
		if in.Pool != s.Name || !w.counts(in, s) || in.State == drover.InstanceStopped && !in.Waking {
			continue
		}
		busy := in.State != drover.InstanceIdle || w.controller.stateOf(in.Name) != drover.InstanceIdle || len(in.Reservations) > 0 || w.Disk.used(in.ID)
		if in.Lent && in.Idle != drover.IdleHold && busy { // jobs started it and are using it
			continue
		}
		m.places[placeOf(in)]++
		taken := s.Kind == drover.PoolSpare && in.Owner != "" && in.Owner != drover.Everyones // by one user, so that it is not spare
		outdated := in.Template != "" && in.Template != s.Template || s.MaxAge > 0 && cmp.Or(in.Created, in.Asked).Add(s.MaxAge) <= w.controller.now()
		if in.Idle == drover.IdleHold || !outdated {
			m.stay[placeOf(in)]++
		}
		if m.all++; in.Idle == drover.IdleHold || in.State == drover.InstanceRunning || len(in.Reservations) > 0 || w.Disk.used(in.ID) || taken {
			m.held++
		}
	}
	return m
}

// emptier reports whether a place has fewer instances than another: of those that stay or, while replacements fail, of
// all.
func (w *World) emptier(m members, s *pool.Spec, a, b pool.Place) bool {
	fewer := m.places[a] < m.places[b]
	failing := slices.ContainsFunc(w.controller.loop.Engine.State().PoolStates, func(p engine.PoolState) bool { return p.Name == s.Name && p.Failed > 0 })
	return (m.stay[a] < m.stay[b] || m.stay[a] == m.stay[b] && fewer) && (fewer || !failing)
}

func placeOf(in engine.Instance) pool.Place { return pool.Place{Cloud: in.Cloud, Zone: in.Zone} }

// counts reports whether an instance counts toward its pool.
func (w *World) counts(in engine.Instance, s *pool.Spec) bool {
	goes := in.State == drover.InstanceStopping || in.Broken || in.Reclaimed != nil || in.Unhealthy != nil || in.Idle == drover.IdleDrain ||
		w.controller.settings.Lifecycle.UseOnce && s.Jobs && in.Used && in.Idle != drover.IdleHold
	held := in.Idle == drover.IdleHold
	return !goes && (held || s.Allows(placeOf(in)) && !w.leaving(in.Cloud))
}

// poolCount returns the wished number of a pool's instances.
func (w *World) poolCount(s *pool.Spec) int {
	if row, set := w.Disk.pools[s.Name]; set {
		return row.Count - len(row.Failed)
	}
	return s.Count
}

// mayJoinPool checks an instance that is about to be created for a pool: the pool has too few, and no other place has
// fewer, unless something is blocked.
func (w *World) mayJoinPool(in engine.Instance) {
	s := w.controller.poolSpec(in.Pool)
	if s == nil {
		w.fail("instance %s is to be created for pool %s, which is not configured", in.Name, in.Pool)
		return
	}
	m := w.counted(s)
	most := w.poolCount(s) + max(1, s.MaxSurge)
	most += max(0, s.Stopped-w.stoppedOf(s))
	if s.Kind == drover.PoolSpare {
		most += m.held
	}
	if m.all >= most {
		w.fail("instance %s is to be created for pool %s, which has %d and may have %d", in.Name, in.Pool, m.all, most)
	}
	if !s.Allows(placeOf(in)) {
		w.fail("instance %s is to be created in %v, which is none of pool %s", in.Name, placeOf(in), in.Pool)
	}
	if len(w.Disk.blocks) == 0 && !w.constrained() {
		w.mixes(in, s)
	}
	if s.Spread == drover.SpreadBalanced && len(w.Disk.blocks) == 0 && !w.constrained() {
		for _, o := range w.poolPlaces(s) {
			if w.emptier(m, s, o, placeOf(in)) {
				w.fail("instance %s of pool %s is to be created in %v, with %v, of which %v stay", in.Name, in.Pool, placeOf(in), m.places, m.stay)
			}
		}
	}
}

// mixes checks that an instance is on demand if it is created for a pool with too few on-demand instances.
func (w *World) mixes(in engine.Instance, s *pool.Spec) {
	steady := 0
	for _, o := range w.Disk.instances {
		if o.Pool == s.Name && o.Market == drover.OnDemand && w.counts(o, s) {
			steady++
		}
	}
	if most := s.Mix.OnDemand.Of(w.poolCount(s)); in.Market == drover.Spot && steady < most {
		w.fail("instance %s of pool %s is to be created on spot, with %d on demand of %d", in.Name, in.Pool, steady, most)
	}
}

// constrained reports whether something other than blocks may keep instances from a zone.
func (w *World) constrained() bool {
	exhausted := slices.ContainsFunc(w.controller.loop.Engine.State().PoolStates, func(p engine.PoolState) bool { return len(p.Exhausted) > 0 })
	return exhausted || slices.ContainsFunc(w.controller.settings.Clouds, func(c engine.CloudSettings) bool {
		there := 0
		for _, in := range w.Disk.instances {
			if in.Cloud == c.Name {
				there++
			}
		}
		return c.Leaving || len(c.Limits) > 0 || len(c.Reserved) > 0 || !w.controller.knows(c.Name) || c.MaxInstances > 0 && there >= c.MaxInstances
	})
}

// knows reports whether the controller has a cloud's offerings, and had them when it decided what is now written.
func (c *controller) knows(cloud string) bool {
	return c.offered[cloud] < c.decides && slices.ContainsFunc(c.loop.Engine.State().Clouds, func(o engine.Cloud) bool { return o.Name == cloud && o.Known })
}

// poolPlaces returns where a pool may have instances.
func (w *World) poolPlaces(s *pool.Spec) (all []pool.Place) {
	for _, cloud := range s.Clouds {
		for _, zone := range zones {
			if p := (pool.Place{Cloud: cloud, Zone: zone}); s.Allows(p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// mayLeavePool checks an instance of a pool that is about to go. Only its pool, a person or a fault may remove it, and
// a surplus instance must be in the fullest zone.
func (w *World) mayLeavePool(was, in engine.Instance) {
	why, s := drover.Reason{}, w.controller.poolSpec(in.Pool)
	switch {
	case in.State == drover.InstanceStopping && was.State != drover.InstanceStopping && was.Idle != drover.IdleDrain:
		why = in.Reason.Reason()
	case in.Idle == drover.IdleDrain && was.Idle != drover.IdleDrain && in.IdleReason != nil:
		why = in.IdleReason.Reason()
	}
	if why.Code == drover.ReasonIdle || why.Code == drover.ReasonGivesWay {
		w.fail("instance %s of pool %s is to go: %s", in.Name, in.Pool, why.Text)
	}
	if s != nil && s.Kind == drover.PoolGroup {
		w.mayLeaveGroup(in, why, s)
		return
	}
	if w.mayLeaveStopped(was, in, s); was.State == drover.InstanceStopped || in.Lent {
		return
	}
	if why.Code != drover.ReasonPool || s == nil || s.Spread != drover.SpreadBalanced || !s.Allows(placeOf(in)) || in.Template != s.Template || in.Ready == 0 {
		return
	}
	places := w.counted(s).places
	for _, o := range w.Disk.instances {
		stopped := o.State == drover.InstanceStopped && !o.Waking
		if o.Pool == in.Pool && o.Idle != drover.IdleHold && !stopped && w.counts(o, s) && s.Kind != drover.PoolSpare && places[placeOf(o)] > places[placeOf(in)] {
			w.fail("instance %s of pool %s is to go from %v, with %v", in.Name, in.Pool, placeOf(in), places)
			return
		}
	}
}

// poolsAsWished checks that pools have reached their numbers.
func (w *World) poolsAsWished() {
	w.unhealthyGone()
	for _, p := range w.controller.loop.Engine.Pools() {
		switch held := w.controller.poolSpec(p.Name); {
		case held == nil, w.churns(held):
		case p.Kind == drover.PoolGroup:
			w.groupAsAsked(p)
		case p.Reason != nil && (p.Reason.Code == drover.ReasonLimit || p.Reason.Code == drover.ReasonReplace):
		case p.Reason == nil && held.Rebalance && p.Instances > p.Wanted && w.boots(held) > 0: // a ready instance's replacement boots first
		case p.Reason != nil:
			w.fail("pool %s is not as it should be: %s", p.Name, p.Reason.Text)
		case p.Kind != drover.PoolSpare && p.Instances-w.stopLater(held) != p.Wanted && !w.anyHeld(p.Name):
			w.fail("pool %s has %d instances, and %d are wanted", p.Name, p.Instances, p.Wanted)
		}
	}
}

// churns reports whether jobs keep a pool from reaching its number, because each instance goes after one job.
func (w *World) churns(s *pool.Spec) bool {
	return s.Jobs && w.controller.settings.Lifecycle.UseOnce && slices.ContainsFunc(w.controller.loop.Engine.Instances(), func(in engine.Instance) bool {
		return in.Pool == s.Name && in.Used
	})
}

func (w *World) anyHeld(name string) bool {
	for _, in := range w.Disk.instances {
		if in.Pool == name && in.Idle == drover.IdleHold {
			return true
		}
	}
	return false
}
