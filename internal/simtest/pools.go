package simtest

import (
	"slices"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// Pools in the modelled world: what people do with them, and what is promised of them. A check looks at what is on the
// disk, write by write.

// repool has somebody change a pool: its number by a wish, or its zones, its template or whether there is one by the
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

// poolSpec is how a pool is configured as far as the controller was told; nil if it is not.
func (c *controller) poolSpec(name string) *pool.Spec {
	at := slices.IndexFunc(c.settings.Pools, func(s pool.Spec) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &c.settings.Pools[at]
}

// stateOf is the state that an instance has in the engine, which knows that one fell silent before that is written.
func (c *controller) stateOf(name string) drover.InstanceState {
	in, _ := c.loop.Engine.Find(name)
	return in.State
}

// counted is how many of a pool's instances count, by place and in all, and how many of them are held or in use.
func (w *World) counted(s *pool.Spec) (places map[pool.Place]int, all, held int) {
	places = map[pool.Place]int{}
	for _, in := range w.Disk.instances {
		if in.Pool != s.Name || !w.counts(in, s) || in.State == drover.InstanceStopped && !in.Waking {
			continue
		}
		busy := in.State != drover.InstanceIdle || w.controller.stateOf(in.Name) != drover.InstanceIdle || len(in.Reservations) > 0 || w.Disk.used(in.ID)
		if in.Lent && in.Idle != drover.IdleHold && busy { // jobs had it started, and have it
			continue
		}
		places[placeOf(in)]++
		if all++; in.Idle == drover.IdleHold || in.State == drover.InstanceRunning || len(in.Reservations) > 0 || w.Disk.used(in.ID) {
			held++
		}
	}
	return places, all, held
}

func placeOf(in engine.Instance) pool.Place { return pool.Place{Cloud: in.Cloud, Zone: in.Zone} }

// counts reports whether an instance counts toward its pool.
func (w *World) counts(in engine.Instance, s *pool.Spec) bool {
	goes := in.State == drover.InstanceStopping || in.Broken || in.Reclaimed != nil || in.Unhealthy != nil || in.Idle == drover.IdleDrain ||
		w.controller.settings.Lifecycle.UseOnce && s.Jobs && in.Used && in.Idle != drover.IdleHold
	held := in.Idle == drover.IdleHold
	return !goes && (held || s.Allows(placeOf(in)) && !w.leaving(in.Cloud))
}

// poolCount is the number that a pool is to have, as was wished.
func (w *World) poolCount(s *pool.Spec) int {
	if row, set := w.Disk.pools[s.Name]; set {
		return row.Count - len(row.Failed)
	}
	return s.Count
}

// mayJoinPool checks an instance that is to be created for a pool: there are too few, and its place is one that has the
// fewest, as far as nothing is blocked.
func (w *World) mayJoinPool(in engine.Instance) {
	s := w.controller.poolSpec(in.Pool)
	if s == nil {
		w.fail("instance %s is to be created for pool %s, which is not configured", in.Name, in.Pool)
		return
	}
	places, all, held := w.counted(s)
	most := w.poolCount(s) + max(1, s.MaxSurge)
	most += max(0, s.Stopped-w.stoppedOf(s))
	if s.Kind == drover.PoolSpare {
		most += held
	}
	if all >= most {
		w.fail("instance %s is to be created for pool %s, which has %d and may have %d", in.Name, in.Pool, all, most)
	}
	if !s.Allows(placeOf(in)) {
		w.fail("instance %s is to be created in %v, which is none of pool %s", in.Name, placeOf(in), in.Pool)
	}
	if len(w.Disk.blocks) == 0 && !w.constrained() {
		w.mixes(in, s)
	}
	if s.Spread == drover.SpreadBalanced && len(w.Disk.blocks) == 0 && !w.constrained() {
		for _, o := range w.poolPlaces(s) {
			if places[o] < places[placeOf(in)] {
				w.fail("instance %s of pool %s is to be created in %v, with %v", in.Name, in.Pool, placeOf(in), places)
			}
		}
	}
}

// mixes checks that an instance is on demand that is to be created for a pool of which too few are.
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

// constrained reports whether something else than blocks may keep instances from a zone.
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

// knows reports whether the controller was told what a cloud offers.
func (c *controller) knows(cloud string) bool {
	return slices.ContainsFunc(c.loop.Engine.State().Clouds, func(o engine.Cloud) bool { return o.Name == cloud && o.Known })
}

// poolPlaces is where a pool may have instances.
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

// mayLeavePool checks an instance of a pool that begins to go. Nothing but its pool, a person or what is wrong with it
// has it go, and of what is too much one in the fullest zone goes first.
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
	places, _, _ := w.counted(s)
	for _, o := range w.Disk.instances {
		stopped := o.State == drover.InstanceStopped && !o.Waking
		if o.Pool == in.Pool && o.Idle != drover.IdleHold && !stopped && w.counts(o, s) && s.Kind != drover.PoolSpare && places[placeOf(o)] > places[placeOf(in)] {
			w.fail("instance %s of pool %s is to go from %v, with %v", in.Name, in.Pool, placeOf(in), places)
			return
		}
	}
}

// poolsAsWished checks that pools have come to their numbers.
func (w *World) poolsAsWished() {
	w.unhealthyGone()
	for _, p := range w.controller.loop.Engine.Pools() {
		switch held := w.controller.poolSpec(p.Name); {
		case held == nil, w.churns(held):
		case p.Kind == drover.PoolGroup:
			w.groupAsAsked(p)
		case p.Reason != nil && (p.Reason.Code == drover.ReasonLimit || p.Reason.Code == drover.ReasonReplace):
		case p.Reason == nil && held.Rebalance && p.Instances > p.Wanted && w.boots(held) > 0: // what takes a ready one's place boots first
		case p.Reason != nil:
			w.fail("pool %s is not as it should be: %s", p.Name, p.Reason.Text)
		case p.Kind != drover.PoolSpare && p.Instances-w.stopLater(held) != p.Wanted && !w.anyHeld(p.Name):
			w.fail("pool %s has %d instances, and %d are wanted", p.Name, p.Instances, p.Wanted)
		}
	}
}

// churns reports whether jobs keep a pool from coming to its numbers: each instance goes once it has run one.
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
