package simtest

import (
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// Instances that pools keep stopped: what clouds do with them, and the promises about them.

// resting reports whether an instance is recorded as stopped.
func resting(in engine.Instance) bool {
	return in.StopAccepted && !in.Waking
}

// halt stops the instance, on which nothing may be running.
func (v *vm) halt() {
	for _, r := range v.runs {
		if r.exit == nil {
			v.w.fail("instance %s is stopped while attempt %v runs on it", v.name, r.id)
		}
	}
	v.alive, v.off = false, true
	v.w.stopAll(v)
	v.w.cut(v)
	v.change()
}

// start makes it boot again, mostly at another address, as an instance that nobody has heard yet.
func (v *vm) start() {
	w := v.w
	v.alive, v.off, v.proved = true, false, 0
	v.heard, v.quiet, v.unheard = 0, 0, w.now
	v.boots, v.located = w.now.Add(w.within(20*time.Second)), w.now.Add(w.within(10*time.Second))
	if w.roll(3) == 0 {
		v.change()
	} else {
		v.move()
	}
	w.orphan(v)
}

// switchInstance stops or starts an instance at once, or fails. A call that times out may have taken effect.
func (c *controller) switchInstance(effect int64, f engine.Switch) {
	w, cl := c.w, c.w.cloud(f.Cloud)
	v, ev := cl.provided(f.ProviderID), engine.Switched{Effect: effect, Instance: f.Instance}
	does := v != nil && v.off == f.On && v.gone == 0
	fails := w.happens(SwitchFails)
	switch {
	case cl.rages(Outage):
		ev.Err = drover.Errorf(drover.KindTransient, "no answer")
	case v == nil || v.ended() || v.stopped:
		ev.Err = drover.Errorf(drover.KindNotFound, "no such instance")
	case f.On && does && cl.denied(v.offering) != nil:
		ev.Err = cl.denied(v.offering)
	case fails && f.On && w.roll(3) == 0:
		ev.Err = drover.Errorf(drover.KindInvalid, "it starts no more")
	case fails:
		ev.Err = drover.Errorf(drover.KindTransient, "timed out")
		does = does && w.roll(2) == 0
	}
	if in := w.Disk.instances[f.Instance]; f.On && resting(in) {
		w.fail("instance %s is started, and is still paid as a stopped one", in.Name)
	}
	if does && (ev.Err == nil || ev.Err.Kind == drover.KindTransient && fails) {
		if f.On {
			v.start()
		} else {
			v.halt()
		}
	}
	if ev.Err == nil && !f.On && v.seen.by == c {
		v.seen.address, v.createTold = "", "" // the controller forgets it too
	}
	c.reply(2*time.Second, ev)
}

// mayRest checks an instance that is billed as stopped from now on: it is stopped, unless its cloud interrupted it. Its
// recorded running price is what it cost before, or a price its controller was given since.
func (w *World) mayRest(was, in engine.Instance) {
	ran := was.Price
	if was.StopAccepted {
		ran = was.RunPrice
	}
	if in.StopAccepted && in.RunPrice != ran && !w.controller.toldPrice(in, in.RunPrice) {
		w.fail("instance %s is stopped, and is to cost %v once it runs again instead of %v", in.Name, in.RunPrice, ran)
	}
	// Its start may have taken effect although it failed, or have been forgotten with newer records, while the list is older.
	unsure := was.Waking || w.Disk.stale != nil
	if v := w.vmOf(in); resting(in) && !resting(was) && !unsure && v != nil && v.alive && v.there() {
		w.fail("instance %s is held to be stopped, and runs", in.Name)
	}
}

// restPrice is a stopped instance's hourly price by the controller's settings: that of its volume.
func (c *controller) restPrice(in engine.Instance) drover.Money {
	for _, cl := range c.settings.Clouds {
		if cl.Name == in.Cloud && cl.GrowDisk && in.Type.Resources.Disk == 0 {
			return drover.Money(max(in.Resources.Disk, in.Grow).WholeGiB()) * gibPrice
		}
	}
	return 0
}

// mayRestAt checks the new price of a stopped instance. A controller without prices leaves the old one or records none;
// a later event of the same commit may have given it prices.
func (c *controller) mayRestAt(was, in engine.Instance) {
	if in.Price != c.restPrice(in) && (in.Price != 0 || was.StopAccepted) {
		c.w.fail("instance %s is stopped and is to cost %v, and its volume costs %v", in.Name, in.Price, c.restPrice(in))
	}
}

// glanceStopped checks a stopped instance's present price and its running price, if its cloud lists a price for its
// type. An instance that its cloud has stopped costs the stopped price.
func (c *controller) glanceStopped(in engine.Instance, listed drover.Money) {
	r := c.reservation(in)
	switch {
	case in.State == drover.InstanceStopped && in.Switched != 0 && !in.Waking && !in.StopAccepted:
		c.w.fail("instance %s was stopped, and is paid as one that runs", in.Name)
	case !resting(in) || listed < 0:
	case in.Price != c.restPrice(in):
		c.w.fail("instance %s is stopped and costs %v, and its volume costs %v", in.Name, in.Price, c.restPrice(in))
	case in.RunPrice != listed+c.volumePrice(in) && (r == nil || in.RunPrice != r.Price):
		c.w.fail("instance %s is stopped and would cost %v if it ran, and its cloud asks %v and %v for its volume", in.Name, in.RunPrice, listed, c.volumePrice(in))
	}
}

// jobless reports whether an instance of a pool for jobs may run none any more, for the way that users share it.
func (w *World) jobless(in engine.Instance, s *pool.Spec) bool {
	switch w.controller.settings.Lifecycle.Sharing {
	case drover.ShareEveryone:
		return s.Jobs && in.Owner != drover.Everyones
	case drover.ShareUser:
		return s.Jobs && (in.Owner == drover.Everyones || in.Owner == "" && in.Used)
	}
	return false
}

// mayLeaveStopped checks a stopped instance that is about to go: its pool no longer wants it, a person or the fleet's
// end removes it, or its cloud cannot start it.
func (w *World) mayLeaveStopped(was, in engine.Instance, s *pool.Spec) {
	v := w.vmOf(in)
	if in.State != drover.InstanceStopping || was.State != drover.InstanceStopped || was.Waking || v == nil || !v.off {
		return
	}
	switch why := in.Reason.Reason(); why.Code {
	case drover.ReasonVanished, drover.ReasonInterrupted, drover.ReasonSilent, drover.ReasonIdle, drover.ReasonBootTimeout:
		w.fail("instance %s is kept stopped, and is to go: %s", in.Name, why.Text)
	case drover.ReasonPool:
		if s != nil && s.Allows(placeOf(in)) && in.Template == s.Template && !w.jobless(in, s) && w.stoppedOf(s) <= s.Stopped {
			w.fail("instance %s of pool %s is to go, of which %d are stopped and %d should be", in.Name, s.Name, w.stoppedOf(s), s.Stopped)
		}
	}
}

// stoppedOf returns how many of a pool's instances are recorded as stopped.
func (w *World) stoppedOf(s *pool.Spec) (n int) {
	for _, in := range w.Disk.instances {
		if in.Pool == s.Name && in.State == drover.InstanceStopped && !in.Waking && w.counts(in, s) {
			n++
		}
	}
	return n
}

// startables returns the stopped instances that the controller could have started.
func (c *controller) startables(some func(engine.Instance, *pool.Spec) bool) (all []engine.Instance) {
	for _, in := range c.loop.Engine.Instances() {
		s := c.poolSpec(in.Pool)
		written := c.w.Disk.instances[in.ID] // later events of the commit may have changed the engine's copy
		if s != nil && in.State == drover.InstanceStopped && resting(in) && resting(written) && in.Idle == drover.IdleRun && in.Call == 0 && in.Retry <= c.now() && !in.Broken && in.Unhealthy == nil && in.Reclaimed == nil &&
			s.Allows(placeOf(in)) && in.Template == s.Template && some(in, s) {
			all = append(all, in)
		}
	}
	return all
}

// mayRentAnew checks that no instance is rented when a stopped one could be started instead.
func (w *World) mayRentAnew(in engine.Instance) {
	if len(w.Disk.blocks) > 0 || len(w.controller.loop.Engine.State().Blocks) > 0 || w.Disk.closing || w.controller.drains {
		return
	}
	if s := w.controller.poolSpec(in.Pool); s != nil {
		others := w.controller.startables(func(o engine.Instance, _ *pool.Spec) bool { return o.Pool == in.Pool })
		if len(others) > 0 && s.Kind != drover.PoolSpare && w.counted(s).all < w.poolCount(s) {
			w.fail("instance %s is to be rented for pool %s, and %s could be started", in.Name, in.Pool, others[0].Name)
		}
		return
	}
	if l := w.controller.settings.Lifecycle; l.UseOnce || l.Sharing != "" {
		return
	}
	for _, b := range in.Reservations {
		fits := w.controller.startables(func(o engine.Instance, s *pool.Spec) bool {
			as := drover.Offering{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type, Market: o.Market, Price: o.RunPrice}
			return s.Jobs && b.Group.Shape.Accepts(as)
		})
		if len(fits) > 0 && b.Group.Gang == 0 {
			w.fail("instance %s is to be rented for jobs, and %s could be started for them", in.Name, fits[0].Name)
		}
	}
}

// stoppedAsWished checks what clouds have for the instances that are kept stopped.
func (w *World) stoppedAsWished() {
	for _, p := range w.controller.loop.Engine.Pools() {
		s := w.controller.poolSpec(p.Name)
		if s != nil && p.Reason == nil && (p.Stopped > s.Stopped || p.Stopped+max(w.boots(s), w.stopLater(s)) < s.Stopped) && !w.anyHeld(p.Name) && !w.churns(s) {
			w.fail("pool %s keeps %d stopped, and should %d", p.Name, p.Stopped, s.Stopped)
		}
	}
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			in := w.record(v)
			if in == nil || !v.there() || v.ended() || in.State == drover.InstanceStopping {
				continue
			}
			if asked, _ := w.controller.loop.Engine.Find(in.Name); asked.Call != 0 { // a call to stop or start it, which may have taken effect already
				continue
			}
			if in.Broken { // and held, so it is left as it is
				continue
			}
			if resting(*in) != v.off {
				w.fail("instance %s is %s, and its cloud has it stopped: %v", in.Name, in.State, v.off)
			}
			if resting(*in) && v.kept == 0 {
				w.fail("instance %s is stopped, and no tag says so", in.Name)
			}
		}
	}
}

// boots returns how many of a pool's instances are not ready yet, and may be stopped once they are.
func (w *World) boots(s *pool.Spec) (n int) {
	for _, in := range w.Disk.instances {
		unchecked := s.CheckWithin > 0 && in.Passed == 0
		if in.Pool == s.Name && (in.State == drover.InstanceCreating || in.State == drover.InstanceBooting || unchecked) && w.counts(in, s) {
			n++
		}
	}
	return n
}

// stopLater returns how many of a pool's surplus instances may be stopped once they are ready or have no jobs left, up
// to the number that it should still keep stopped.
func (w *World) stopLater(s *pool.Spec) int {
	m := w.counted(s)
	return max(0, min(m.held+w.boots(s), m.all-w.poolCount(s), s.Stopped-w.stoppedOf(s)))
}

// keepsStopped configures some of the pools to keep stopped instances.
func keepsStopped(pools []pool.Spec, roll func(int) int) {
	for i := range pools {
		if s := &pools[i]; s.Kind != drover.PoolGroup && s.Market == drover.OnDemand {
			s.Stopped = roll(3)
			s.Jobs = s.Jobs || s.Login == drover.LoginSSH && roll(2) == 0
		}
	}
}
