package simtest

import (
	"slices"

	"drover"
	"drover/internal/engine"
)

// mayDo checks an effect as it is released: its cause must be written down.
func (c *controller) mayDo(f engine.Effect) {
	switch {
	case f.Create != nil:
		c.mayCreate(f.ID, *f.Create)
	case f.Destroy != nil:
		c.mayDestroy(*f.Destroy)
	case f.ListInstances != nil:
		if until := c.noList[f.ListInstances.Cloud]; c.now() < until {
			c.w.fail("cloud %s is listed although it said not before %v", f.ListInstances.Cloud, until)
		}
	case f.Solve != nil:
		c.maySolve(*f.Solve)
	case f.GrowDisk != nil:
		c.mayGrow(*f.GrowDisk)
	case f.Connect != nil:
		in, there := c.w.Disk.instances[f.Connect.Instance] // it is absent if another event of this step reported it gone
		if c.impostor[in.ID] && !in.Waking {                // a restarted instance may have another address
			c.w.fail("instance %s is logged into although it showed another host key", in.Name)
		}
		if there && in.HostKey != f.Connect.HostKey {
			c.w.fail("instance %s is logged into with host key %q pinned, and %q is written down", in.Name, f.Connect.HostKey, in.HostKey)
		}
	case f.Start != nil:
		if a := c.w.Disk.attempts[f.Start.Attempt.Job]; a.ID != f.Start.Attempt || a.State != drover.AttemptStarting {
			c.w.fail("attempt %v is started, but was not written down", f.Start.Attempt)
		}
	case f.Fire != nil && f.Fire.Hook == drover.HookBroken && c.settings.BrokenHook:
		c.cries[f.Fire.Instance] = f.Fire.Reason.Since.Add(engine.HookTime)
	case f.Forget != nil:
		if a := c.w.Disk.attempts[f.Forget.Attempt.Job]; a.ID == f.Forget.Attempt && a.Instance == f.Forget.Instance && !f.Forget.Foreign {
			c.w.fail("attempt %v is forgotten on its instance although it is %s", a.ID, a.State)
		}
	}
}

func (c *controller) mayCreate(effect int64, f engine.Create) {
	w, flying := c.w, 0
	for _, cloud := range c.calls {
		if cloud == f.Cloud {
			flying++
		}
	}
	c.calls[effect] = f.Cloud
	most := 0
	for _, s := range c.settings.Clouds {
		if s.Name == f.Cloud {
			most = s.MaxCreating
		}
	}
	c.mayProbe(effect, f)
	switch in := w.Disk.instances[f.Instance]; {
	case in.Name != f.Name || !in.Begun:
		w.fail("instance %s is created, but was not written down", f.Name)
	case flying >= most:
		w.fail("instance %s is created while %d calls are in flight, with a limit of %d", f.Name, flying, most)
	case c.now() < c.noCreate[f.Cloud]:
		w.fail("instance %s is created although its cloud said not before %v", f.Name, c.noCreate[f.Cloud])
	}
}

// mayDestroy checks that a destroyed instance was first recorded as stopping.
func (c *controller) mayDestroy(f engine.Destroy) {
	w := c.w
	in, ok := w.Disk.instances[f.Instance]
	switch {
	case slices.ContainsFunc(w.Disk.departed, func(d *engine.Departed) bool { return d.Instance.ID == f.Instance }):
		// Another event of this step reported it gone.
	case !ok:
		w.fail("instance %s is destroyed, but is not written down", f.Name)
	case in.State != drover.InstanceStopping && in.ProviderID == f.ProviderID:
		w.fail("instance %s is destroyed, but was not written down to go", in.Name)
	case c.now() < c.cries[f.Instance]:
		w.fail("instance %s is destroyed while the hook that tells it is broken may run", in.Name)
	}
}

// mayConnect checks that each controller sees an instance's boot probe before it trusts the instance.
func (c *controller) mayConnect(v *vm, f engine.Connect) {
	if !f.Probe && v.proved != c.life {
		c.w.fail("instance %s is taken as it is by a controller that has not seen its boot probe", v.name)
	}
	v.proved = c.life
}

// mayRun checks a command that begins: no two run at once for a job, and none runs beside an unknown attempt.
func (c *controller) mayRun(v *vm, id drover.AttemptID) {
	w := c.w
	w.mayFill(v, id)
	if other := w.running[id.Job]; other != nil {
		w.fail("attempt %v begins on %s while attempt %v runs on %s", id, v.name, other.id, other.vm.name)
	}
	if was, ok := w.Disk.Final[id.Job]; ok {
		w.fail("attempt %v begins although the job is %s", id, was)
	}
	w.mayMeet(v, id)
	if v.failed && !w.promises.released[v.name] {
		w.fail("attempt %v begins on %s, whose boot probe failed", id, v.name)
	}
	for _, r := range v.runs {
		if a := w.Disk.attempts[r.id.Job]; c.alive() && r.exit == nil && a.ID != r.id {
			w.fail("attempt %v begins on %s beside %v, which nobody knows", id, v.name, r.id)
		}
	}
}

// mayMeet checks that, where instances belong to users, no job begins on an instance that has run another user's job.
func (w *World) mayMeet(v *vm, id drover.AttemptID) {
	j, known := w.Disk.jobs[id.Job.Number]
	if w.settings.Lifecycle.Sharing != drover.ShareUser || !known {
		return
	}
	if v.first == nil {
		v.first = &j.User
	}
	if *v.first != j.User {
		w.fail("attempt %v of %q begins on %s, which is %q's", id, j.User, v.name, *v.first)
	}
}

// mayRefuse checks that a runner has no reason to refuse an attempt for its number.
func (w *World) mayRefuse(v *vm, id drover.AttemptID) {
	w.fail("attempt %v is started on %s, which has seen attempt %d", id, v.name, v.fence[w.fenced(id)])
}
