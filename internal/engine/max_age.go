package engine

import (
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// An instance that is too old, or has run its one job where none is used twice, takes no more work and goes when it has none.

// adapt takes over what the settings say of each instance.
func (e *Engine) adapt(in *fleet.Member) {
	in.Leaving = e.limits(in.Cloud).Leaving
	in.UseOnce, in.Sharing = e.life().UseOnce, e.life().Sharing
	e.belongTo(in)
	in.Aged = e.old(in)
}

// old reports whether an instance has come to the greatest age that any may have.
func (e *Engine) old(in *fleet.Member) bool {
	at := e.agesAt(in)
	return at != 0 && e.s.Now >= at
}

// agesAt is when an instance is too old, by its cloud's word of when it was created where there is one; 0 for never.
func (e *Engine) agesAt(in *fleet.Member) drover.Time {
	if most := e.maxAge(in); most > 0 && in.Ready != 0 {
		return in.Created.Add(most)
	}
	return 0
}

// checkAge retires an instance that has become too old.
func (e *Engine) checkAge(in *fleet.Member) {
	if !in.Aged && in.State != drover.InstanceStopping && e.old(in) {
		in.Aged = true
		e.retire(in)
	}
}

// outlived says why an instance takes no more work although nothing is wrong with it, if so.
func (e *Engine) outlived(in *fleet.Member) (why Verdict, so bool) {
	switch {
	case in.Aged:
		return e.verdict(drover.ReasonAge, "it is %v old", e.s.Now.Sub(in.Created).Round(time.Second)), true
	case in.UseOnce && in.Used:
		return e.verdict(drover.ReasonUsed, "it has run its one job"), true
	}
	return Verdict{}, false
}

// use notes that a job has begun on an instance. One on which a job was only to begin is as good as new.
func (e *Engine) use(in *fleet.Member) {
	if in != nil && !in.Used {
		in.Used = true
		e.fleet.Moved()
		e.writeInstance(in)
	}
}

// bindable is for how many more elements of the group there is room on the instance.
func (g *group) bindable(in *fleet.Member) int {
	if in.Full() {
		return 0
	}
	return in.Room.Times(g.Key.Shape.Need, in.AtOnce(max(0, g.mayBind(in))))
}
