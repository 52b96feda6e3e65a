package engine

import (
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// An instance that is too old, or has run its job with use_once, takes no more work and is destroyed when it has none.

// retire drops the reservations of an instance that takes no more work, so that they are planned for elsewhere.
func (e *Engine) retire(in *fleet.Member) {
	if in.State != drover.InstanceStopping {
		e.dropAllReservations(in)
		if !in.Broken {
			in.Reason = in.Remark()
		}
	}
	e.pending.Place, e.pending.Plan = true, true
	e.writeRevised(in)
	e.touch(in)
}

// agesAt returns when an instance reaches max_age, counted from its creation; 0 for never.
func (e *Engine) agesAt(in *fleet.Member) drover.Time {
	if most := e.maxAge(in); most > 0 && in.Ready != 0 {
		return in.Created.Add(most)
	}
	return 0
}

// checkAge retires an instance that has reached max_age.
func (e *Engine) checkAge(in *fleet.Member) {
	if !in.Aged && in.State != drover.InstanceStopping && e.due(e.agesAt(in)) {
		in.Aged = true
		e.retire(in)
	}
}

// whyRetired returns why a healthy instance takes no more work, if so.
func (e *Engine) whyRetired(in *fleet.Member) (why Verdict, so bool) {
	switch {
	case in.Aged:
		return e.verdict(drover.ReasonAge, "it is %v old", e.s.Now.Sub(in.Created).Round(time.Second)), true
	case in.UseOnce && in.Used:
		return e.verdict(drover.ReasonUsed, "it has already run its one job"), true
	}
	return Verdict{}, false
}

// use records that a job has started on an instance. An instance on which a start failed counts as unused.
func (e *Engine) use(in *fleet.Member) {
	if in != nil && !in.Used {
		in.Used = true
		e.writeRevised(in)
	}
}
