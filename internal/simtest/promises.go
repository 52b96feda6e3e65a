package simtest

import (
	"drover"
	"drover/internal/engine"
)

// promises is what has to be remembered so that they can be checked.
type promises struct {
	won       map[drover.AttemptID]bool // whose command ended with exit code 0
	stored    map[drover.AttemptID]bool // whose output is
	killed    map[string]bool           // instances that somebody told to die, by name
	released  map[string]bool           // or to take work again
	cancelled map[drover.JobID]int64    // the last life in which somebody cancelled it
}

func newPromises() promises {
	return promises{map[drover.AttemptID]bool{}, map[drover.AttemptID]bool{}, map[string]bool{}, map[string]bool{}, map[drover.JobID]int64{}}
}

// vmOf is the instance of the cloud behind one of the engine's; nil if there was none, or if that is long ago.
func (w *World) vmOf(in engine.Instance) *vm {
	if in.ProviderID == "" {
		return nil
	}
	return w.cloud(in.Cloud).provided(in.ProviderID)
}

// answered takes note of an answer before the controller does.
func (c *controller) answered(body engine.Body) {
	switch b := body.(type) {
	case engine.Configured:
		c.settings = b.Settings
	case engine.DrainAsked:
		c.drains = true
	case engine.Fired:
		delete(c.cries, b.Instance)
	case engine.Noticed:
		c.w.vmOf(c.w.Disk.instances[b.Instance]).told()
	case engine.Connected:
		if b.Notice != nil {
			c.w.vmOf(c.w.Disk.instances[b.Instance]).told()
		}
	case engine.Described:
		if v := c.w.vmOf(c.w.Disk.instances[b.Instance]); v != nil && b.Ended != 0 {
			v.book.said = c
		}
	case engine.Offered:
		c.priced(b)
	case engine.Created:
		c.had(b.Taken)
		c.landed(b.Effect)
	case engine.CreateFailed:
		if cloud, ok := c.calls[b.Effect]; ok && b.Err.Kind == drover.KindRateLimit {
			c.noCreate[cloud] = max(c.noCreate[cloud], b.Err.RetryAt)
		}
		c.refused(b)
		c.landed(b.Effect)
	case engine.Listed:
		if b.Err != nil && b.Err.Kind == drover.KindRateLimit {
			c.noList[b.Cloud] = max(c.noList[b.Cloud], b.Err.RetryAt)
		}
		c.failing(b)
		c.leftOut(b)
		for _, s := range b.Added {
			if v := c.w.cloud(b.Cloud).provided(s.ProviderID); v != nil {
				c.had(v.offering)
				// Of one that is kept stopped an end is no news: it may be when it was stopped.
				if in := c.w.record(v); s.Ended != 0 && !(s.Stopped && in != nil && in.State == drover.InstanceStopped) {
					v.book.said = c
				}
				if s.Reclaimed {
					v.told()
				}
			}
		}
	}
}

// heard takes note of what a controller that lives on has taken in.
func (c *controller) heard(ev engine.Event) {
	c.told(ev)
	switch b := ev.Body.(type) {
	case engine.Noticed:
		c.taken(b.Instance)
	case engine.Disconnected:
		if v := c.w.vmOf(c.w.Disk.instances[b.Instance]); v != nil {
			v.untold = max(0, v.untold-1)
		}
	case engine.Connected:
		if v := c.w.vmOf(c.w.Disk.instances[b.Instance]); v != nil {
			v.quiet = 0 // now that it is written down that the instance was heard
		}
		if b.Notice != nil {
			c.taken(b.Instance)
		}
		if in, ok := c.w.Disk.instances[b.Instance]; ok && in.State.Ready() && in.HostKey != b.HostKey {
			c.w.fail("instance %s has proved host key %q, and %q is written down", in.Name, b.HostKey, in.HostKey)
		}
	case engine.Listed:
		for _, s := range b.Added {
			if v := c.w.cloud(b.Cloud).provided(s.ProviderID); v != nil {
				v.taken = v.taken || s.Reclaimed
			}
		}
	}
}

// taken notes that a controller knows that an instance is taken back, unless it has been told to go: then nobody asks
// for its word.
func (c *controller) taken(instance int64) {
	if in, ok := c.w.Disk.instances[instance]; ok && in.State != drover.InstanceStopping {
		if v := c.w.vmOf(in); v != nil {
			v.taken = true
		}
	}
}

// slack is how often, in steps, what is not looked at with each change is looked at.
const slack = 64

// glance checks what no single change shows.
func (w *World) glance() {
	w.controller.glancePrices()
	w.controller.glanceVolumes()
	w.addsUp()
	for _, in := range w.controller.loop.Engine.Instances() {
		kept := in.Unhealthy != nil || in.KeepUntil > w.controller.now() || in.Joined != 0 && !in.Emptied // a node is emptied first
		if in.Idle == drover.IdleDrain && in.State == drover.InstanceIdle && in.Connected && len(in.Orphans) == 0 && !kept {
			w.fail("instance %s drains, is idle, and stays", in.Name)
		}
	}
	for _, j := range w.Disk.jobs {
		id := drover.JobID{Number: j.Number, Index: -1}
		if x, ok := w.controller.loop.Engine.Explain(id); len(j.Queued) > 0 && (!ok || len(x.Reasons) == 0 || x.Reasons[0].Text == "") {
			w.fail("job %v waits, and nobody can say why", id)
		}
	}
}
