package simtest

import (
	"time"

	"drover"
	"drover/internal/engine"
)

// Health checks in the modelled world: an instance passes if it is reachable and its boot probe would pass.

// failsInARow is how many checks in a row must fail before the controller is told.
const failsInARow = 3

// unfit is how an instance's checks have failed since one last passed.
type unfit struct {
	fails int
	heard drover.Time // when another instance of its cloud was seen to pass
}

func (v *vm) passes() bool { return v.reachable() && !v.bad }

// checkUp checks all instances periodically.
func (w *World) checkUp() {
	if w.controller.alive() {
		checks := w.controller.loop.Engine.Checks()
		for _, in := range checks {
			if v := w.cloud(in.Cloud).provided(in.ProviderID); v != nil && v.passes() {
				w.passed[in.Cloud] = w.now
			}
		}
		for _, in := range checks {
			w.mayStayUnfit(in)
			w.check(in)
		}
	}
	w.after(10*time.Second+w.within(20*time.Second), w.checkUp)
}

// mayStayUnfit checks that an instance no longer counts once its controller knows that its check fails while another's
// passes.
func (w *World) mayStayUnfit(in engine.Check) {
	row, s := w.Disk.instances[in.Instance], w.controller.poolSpec(in.Pool)
	departs := w.controller.drains || w.Disk.closing // then all instances leave, whatever their checks report
	if in.Fails && in.Vouched && s != nil && !departs && row.State.Ready() && row.Passed != 0 && row.Idle != drover.IdleHold && w.counts(row, s) {
		w.fail("instance %s still counts toward pool %s, although its health check fails while that of another passes", in.Name, in.Pool)
	}
}

func (w *World) check(in engine.Check) {
	v := w.cloud(in.Cloud).provided(in.ProviderID)
	switch {
	case v == nil:
	case v.passes():
		if v.unfit = (unfit{}); !in.Passed {
			w.tell(engine.HealthChecked{Instance: in.Instance})
		}
	default:
		v.unfit.fails++
		others := v.unfit.heard != 0
		if w.passed[in.Cloud] == w.now && !others {
			v.unfit.heard = w.now
		}
		if v.unfit.fails >= failsInARow && (!in.Fails || others && !in.Vouched) {
			w.vouched[in.Name] = w.vouched[in.Name] || others
			w.tell(engine.HealthChecked{Instance: in.Instance, Text: "no answer", Others: others})
		}
	}
}

// mayGiveUp checks an instance that is given up for its health. If three or more instances of its pool in its cloud had
// passed, another must have passed since, unless none has for so long that the controller no longer suspects itself.
func (w *World) mayGiveUp(was, in engine.Instance) {
	if in.Unhealthy == nil || was.Unhealthy != nil || in.Unhealthy.Cause != drover.ReasonCheck || w.vouched[in.Name] {
		return
	}
	there := 0
	for _, o := range w.Disk.instances {
		if s := w.controller.poolSpec(in.Pool); s != nil && w.controller.stateOf(o.Name).Ready() && s.CheckWithin > 0 && o.Pool == in.Pool && o.Cloud == in.Cloud && o.Passed != 0 && o.State.Ready() && (o.ID == in.ID || w.counts(o, s)) {
			there++
		}
	}
	most := w.settings.Lifecycle.PartitionTimeout
	if late := most > 0 && w.now.Sub(w.passed[in.Cloud]) >= most; there >= 3 && !late {
		w.fail("instance %s is given up for its health, with %d others, and none has passed since", in.Name, there-1)
	}
}

// unhealthyGone checks that no instance counts toward a pool when its check has failed for long while another of its
// cloud passes.
func (w *World) unhealthyGone() {
	passing := map[string]bool{}
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			in := w.record(v)
			passing[cl.name] = passing[cl.name] || w.inCheckedPool(in) && v.passes() && in.State.Ready()
		}
	}
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			in := w.record(v)
			if w.inCheckedPool(in) && passing[cl.name] && v.unfit.fails > 2*failsInARow && in.Passed != 0 && in.Idle != drover.IdleHold && w.counts(*in, w.controller.poolSpec(in.Pool)) {
				w.fail("instance %s counts toward pool %s, and its health check has failed %d times", in.Name, in.Pool, v.unfit.fails)
			}
		}
	}
}

// inCheckedPool reports whether the instance's pool has health checks.
func (w *World) inCheckedPool(in *engine.Instance) bool {
	if in == nil {
		return false
	}
	s := w.controller.poolSpec(in.Pool)
	return s != nil && s.CheckWithin > 0
}
