package sim

import (
	"strings"

	"drover"
	"drover/internal/engine"
)

// seen is what there was after the step before.
type seen struct {
	attempts  map[drover.AttemptID]bool
	instances map[string]drover.IdleBehavior
}

// promises checks, after each step, what a decision may not do.
func (w *World) promises() {
	now := seen{map[drover.AttemptID]bool{}, map[string]drover.IdleBehavior{}}
	for _, a := range w.Disk.attempts {
		now.attempts[a.ID] = true
		if !w.before.attempts[a.ID] {
			w.mayBegin(a)
		}
	}
	for _, in := range w.Disk.instances {
		now.instances[in.Name] = in.Idle
		if _, known := w.before.instances[in.Name]; !known {
			w.mayBe(in)
		}
	}
	for _, v := range w.vms {
		_, kept := now.instances[v.name]
		if w.before.instances[v.name] == drover.IdleHold && !kept && v.listed && v.alive && !w.killed[v.name] {
			w.fail("instance %s was held and is given up", v.name)
		}
	}
	for _, in := range w.loop.Engine.Instances() {
		if in.Idle == drover.IdleDrain && in.State == drover.InstanceIdle && in.Connected && len(in.Strangers) == 0 {
			w.fail("instance %s drains, is idle, and stays", in.Name)
		}
	}
	w.before = now
}

// mayConnect checks that each controller sees the boot probe of an instance before it takes the instance's word for anything.
func (w *World) mayConnect(v *vm, f engine.Connect) {
	if !f.Probe && v.proved != w.loop {
		w.fail("instance %s is taken as it is by a controller that has not seen its boot probe", v.name)
	}
	v.proved = w.loop
}

// mayBegin checks an attempt that was not there before.
func (w *World) mayBegin(a engine.Attempt) {
	in, j := w.Disk.instances[a.Instance], w.Disk.jobs[a.ID.Job.Number]
	switch {
	case in.Idle != drover.IdleRun || in.Broken:
		w.fail("attempt %v is to begin on %s, which is to %s", a.ID, in.Name, in.Idle)
	case w.leaving(in.Cloud):
		w.fail("attempt %v is to begin on %s, whose cloud leaves", a.ID, in.Name)
	case j.Priority == 0:
		w.fail("attempt %v is to begin although its job's priority is 0", a.ID)
	case w.loop.Engine.Status().Draining:
		w.fail("attempt %v is to begin although the controller drains", a.ID)
	}
}

// mayBe checks an instance that was not there before.
func (w *World) mayBe(in engine.Instance) {
	v := w.vms[in.ProviderID]
	switch {
	case in.State == drover.InstanceCreating && w.leaving(in.Cloud):
		w.fail("instance %s is to be created in a cloud that leaves", in.Name)
	case in.State == drover.InstanceCreating && w.loop.Engine.Status().Draining:
		w.fail("instance %s is to be created although the controller drains", in.Name)
	case v != nil && v.tag == drover.IdleHold && in.Idle != drover.IdleHold:
		w.fail("instance %s is adopted, and its tag says that it is held", in.Name)
	case v != nil && in.Idle == drover.IdleRun && !strings.Contains(in.Name, "-"+w.Disk.nonce+"-"):
		w.fail("instance %s was named by another store, and is to take work", in.Name)
	}
}

// leaving reports whether the controller has been told that the cloud leaves.
func (w *World) leaving(cloud string) bool {
	for _, c := range w.loop.Engine.State().Settings.Clouds {
		if c.Name == cloud {
			return c.Leaving
		}
	}
	return false
}

// mayDestroy checks that an instance which is held is destroyed only if it was killed.
func (w *World) mayDestroy(f engine.Destroy) {
	if in, ok := w.Disk.instances[f.Instance]; ok && in.Idle == drover.IdleHold && !w.killed[in.Name] {
		w.fail("instance %s is held and is to be destroyed: %v", in.Name, in.Reason)
	}
}
