package engine

import (
	"time"

	"drover"
)

// An instance that is too old, or has run its one job where none is used twice, takes no more work and goes when it has none.

// adapt takes over what the settings say of each instance.
func (e *Engine) adapt(in *instance) {
	in.leaving = e.limits(in.Cloud).Leaving
	in.once, in.sharing = e.life().UseOnce, e.life().Sharing
	e.belongTo(in)
	in.Aged = e.old(in)
}

// old reports whether an instance has come to the greatest age that any may have.
func (e *Engine) old(in *instance) bool {
	at := e.agesAt(in)
	return at != 0 && e.s.Now >= at
}

// agesAt is when an instance is too old, by its cloud's word of when it was created where there is one; 0 for never.
func (e *Engine) agesAt(in *instance) drover.Time {
	if most := e.maxAge(in); most > 0 && in.Ready != 0 {
		return in.Created.Add(most)
	}
	return 0
}

// checkAge retires an instance that has become too old.
func (e *Engine) checkAge(in *instance) {
	if !in.Aged && in.State != drover.InstanceStopping && e.old(in) {
		in.Aged = true
		e.retire(in)
	}
}

// outlived says why an instance takes no more work although nothing is wrong with it, if so.
func (e *Engine) outlived(in *instance) (why Verdict, so bool) {
	switch {
	case in.Aged:
		return e.verdict(drover.ReasonAge, "it is %v old", e.s.Now.Sub(in.Created).Round(time.Second)), true
	case in.once && in.Used:
		return e.verdict(drover.ReasonUsed, "it has run its one job"), true
	}
	return Verdict{}, false
}

// use notes that a job has begun on an instance. One on which a job was only to begin is as good as new.
func (e *Engine) use(in *instance) {
	if in != nil && !in.Used {
		in.Used = true
		e.fleet++
		e.writeInstance(in)
	}
}

// full reports whether the instance may be given one job and has it.
func (in *instance) full() bool { return in.once && len(in.load)+len(in.Bound)+in.seated > 0 }

// bindable is for how many more elements of the group there is room on the instance.
func (in *instance) bindable(g *group) int {
	if in.full() {
		return 0
	}
	return in.room.Times(g.Key.Shape.Need, in.atOnce(max(0, g.mayBind(in))))
}

// atOnce is how many of so many jobs the instance may be given.
func (in *instance) atOnce(n int) int {
	if in.once {
		return min(n, 1)
	}
	return n
}
