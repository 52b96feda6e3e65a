package simtest

import (
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// rests reports whether the engine has nothing left to do.
func (w *World) rests() bool {
	c := w.controller
	return c.alive() && c.loop.Engine.AtRest() && w.Disk.closing && len(w.submit) == 0 && len(c.inbox) == 0
}

// aftermath is how long after a fleet's end no new instance may appear.
const aftermath = time.Minute

// afterAll checks what exists when the engine reports that nothing is left. A real controller would exit now and never
// look again.
func (w *World) afterAll() {
	w.over = true
	end := w.now.Add(aftermath)
	for at, more := w.agenda.Next(); more && at <= end && w.broken == nil; at, more = w.agenda.Next() {
		w.goOn()
	}
	w.now = max(w.now, end)
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			switch {
			case v.there() && !v.ended():
				w.fail("instance %s is there although the fleet is at rest", v.name)
			case v.book.settled == 0 && v.book.known != 0:
				w.fail("the bill of instance %s was never settled", v.name)
			}
		}
	}
	for _, row := range slices.Sorted(maps.Keys(w.Disk.wishes)) {
		w.fail("wish %d was never granted: %+v", row, w.Disk.wishes[row])
	}
	if n := len(w.running); n > 0 {
		w.fail("%d attempts run although the fleet is at rest", n)
	}
}

// AllSucceeded returns an error for a job that has not succeeded, if there is one.
func (w *World) AllSucceeded() error {
	for _, j := range w.recipe.Jobs {
		if end := w.Disk.ended[j.Number]; end.State != drover.JobSucceeded || end.Succeeded != j.Array.Size() {
			w.fail("job %d is %q, with %d of %d succeeded: %v", j.Number, end.State, end.Succeeded, j.Array.Size(), end.Reason)
		}
	}
	return w.broken
}

// onlyHeld checks what a drained controller leaves behind.
func (w *World) onlyHeld() {
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			if in := w.record(v); v.there() && !v.ended() && (in == nil || in.Idle != drover.IdleHold) {
				w.fail("instance %s is there although the controller has drained", v.name)
			}
		}
	}
}

// asWished checks the tags, and that no job with priority 0 runs.
func (w *World) asWished() {
	w.poolsAsWished()
	w.stoppedAsWished()
	for _, cl := range w.clouds {
		for _, v := range cl.vms {
			in := w.record(v)
			if in == nil || !v.there() || in.State == drover.InstanceStopping {
				continue
			}
			if got := orRun(v.tag); got != in.Idle {
				w.fail("instance %s is to %s, and its tag says %s", v.name, in.Idle, got)
			}
		}
	}
	for id, r := range w.running {
		in := w.record(r.vm)
		// An attempt that survives SIGKILL goes on while its instance is held or lets its attempts finish; so does any
		// attempt on a held instance with a wrong host key, which is not dialled any more.
		held := in != nil && in.Idle == drover.IdleHold
		kept := held && (r.undead || in.Broken) || r.undead && in != nil && in.Unhealthy != nil
		if j, ok := w.Disk.jobs[id.Number]; ok && j.Priority == 0 && !kept {
			w.fail("job %v runs although its priority is 0", id)
		}
	}
}

func orRun(tag drover.IdleBehavior) drover.IdleBehavior {
	if tag == "" {
		return drover.IdleRun
	}
	return tag
}

// record returns the disk's record of an instance; nil if there is none.
func (w *World) record(v *vm) *engine.Instance {
	for _, in := range w.Disk.instances {
		if in.Cloud == v.cloud.name && (in.ProviderID == v.provider || in.ProviderID == "" && in.Name == v.name) {
			found := in // so that only this one escapes to the heap
			return &found
		}
	}
	return nil
}
