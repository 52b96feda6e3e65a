package simtest

import (
	"maps"
	"slices"

	"drover"
	"drover/internal/engine"
)

// promises is what the world must remember to check its promises.
type promises struct {
	won       map[drover.AttemptID]bool // attempts whose command ended with exit code 0
	stored    map[drover.AttemptID]bool // attempts whose output is stored
	killed    map[string]bool           // names of instances that somebody killed
	released  map[string]bool           // names of instances that somebody released
	cancelled map[drover.JobID]int64    // the last life in which somebody cancelled the job
}

func newPromises() promises {
	return promises{map[drover.AttemptID]bool{}, map[drover.AttemptID]bool{}, map[string]bool{}, map[string]bool{}, map[drover.JobID]int64{}}
}

// vmOf returns the cloud's instance for one of the engine's; nil if there was none, or if it is long gone.
func (w *World) vmOf(in engine.Instance) *vm {
	if in.ProviderID == "" {
		return nil
	}
	return w.cloud(in.Cloud).provided(in.ProviderID)
}

// answered records an answer before the controller handles it.
func (c *controller) answered(ev engine.Event) {
	switch b := ev.Body.(type) {
	case engine.Configured:
		c.settings = b.Settings
		maps.DeleteFunc(c.offered, func(cloud string, _ drover.Time) bool {
			return !slices.ContainsFunc(b.Settings.Clouds, func(s engine.CloudSettings) bool { return s.Name == cloud })
		})
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
	case engine.Solved:
		c.planned = ev.At
	case engine.Offered:
		if _, known := c.offered[b.Cloud]; !known && b.Err == nil {
			c.offered[b.Cloud] = ev.At
		}
		c.priced(b)
	case engine.Created:
		c.had(b.Taken)
		c.landed(b.Effect)
	case engine.CreateFailed:
		if cloud, ok := c.calls[b.Effect]; ok && b.Err.Kind == drover.KindRateLimit {
			c.noCreate[cloud] = max(c.noCreate[cloud], b.Err.RetryAt)
		}
		c.refused(b, ev.At)
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
				// For an instance that is kept stopped an end is no news: it may be the time at which it was stopped.
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

// heard records an event that a living controller has handled.
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
			v.quiet = 0 // now it is recorded that the instance was heard
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

// taken records that a controller knows of an instance's interruption, unless the instance is stopping: then its
// notices no longer matter.
func (c *controller) taken(instance int64) {
	if in, ok := c.w.Disk.instances[instance]; ok && in.State != drover.InstanceStopping {
		if v := c.w.vmOf(in); v != nil {
			v.taken = true
		}
	}
}

// slack is how many steps pass between checks of what no single change shows.
const slack = 64

// glance checks what no single change shows.
func (w *World) glance() {
	w.controller.glancePrices()
	w.controller.glanceVolumes()
	w.addsUp()
	w.explains()
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
