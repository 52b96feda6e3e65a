package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
)

// vm is an instance of the modelled cloud.
type vm struct {
	id       int64 // the engine's
	provider string
	name     string
	offering drover.Offering
	tag      drover.IdleBehavior
	listed   bool // the cloud still has it
	alive    bool
	boots    drover.Time // when it answers, 0 for never
	created  drover.Time
	hangs    drover.Time // until then it cannot be reached
	bad      bool        // its boot probe fails
	refused  bool        // a controller was told so
	proved   *loop.Loop  // the controller that has seen its boot probe
	link     *loop.Loop  // the controller that is connected
	runs     map[drover.AttemptID]*run
	fence    map[drover.JobID]int // the highest attempt seen
}

// run is an attempt on an instance.
type run struct {
	id   drover.AttemptID
	vm   *vm
	exit *drover.Exit
}

// Offerings is what a modelled cloud has.
func Offerings(cloud string) []drover.Offering {
	var all []drover.Offering
	for i, name := range []string{"small", "large"} {
		n := drover.MilliCPU(2000 << (2 * i))
		all = append(all, drover.Offering{Cloud: cloud, Zone: "z", Market: drover.OnDemand, Price: drover.Money(n) * drover.Dollar / 20000, Type: drover.InstanceType{
			Name: name, ProviderType: name, Resources: drover.Resources{CPU: n, Memory: drover.Bytes(n) * drover.MiB * 2, Disk: 100 * drover.GiB, Arch: "amd64"},
		}})
	}
	return all
}

func (c *controller) create(effect int64, f engine.Create) {
	w := c.w
	if !w.Disk.names[f.Name] {
		w.fail("instance %s is created, but was not written down", f.Name)
	}
	v := w.byName(f.Name)
	if v == nil && w.chance(w.luck.CreateFails) {
		kind, scope := drover.KindCapacity, drover.ScopeType
		if w.rng.IntN(2) == 0 {
			kind, scope = drover.KindQuota, drover.ScopeAll
		}
		c.reply(time.Second, engine.CreateFailed{Effect: effect, Instance: f.Instance, Err: &drover.Error{Kind: kind, Scope: scope, Message: "refused"}})
		return
	}
	if v == nil {
		v = w.newVM(f)
		if c.l != w.loop {
			v.id = 0
		}
	}
	if w.chance(w.luck.CreateLost) {
		c.reply(time.Minute, engine.CreateFailed{Effect: effect, Instance: f.Instance, Err: drover.Errorf(drover.KindTransient, "timed out")})
		return
	}
	c.reply(2*time.Second, engine.Created{Effect: effect, Instance: f.Instance, ProviderID: v.provider, Taken: f.Candidates[0]})
}

func (w *World) newVM(f engine.Create) *vm {
	w.made++
	v := &vm{
		id: f.Instance, provider: fmt.Sprintf("vm-%d", w.made), name: f.Name, offering: f.Candidates[0], listed: true, alive: true,
		created: w.now, boots: w.now.Add(w.delay(time.Minute)), runs: map[drover.AttemptID]*run{}, fence: map[drover.JobID]int{},
	}
	if w.chance(w.luck.BootFails) {
		v.boots = 0
	}
	w.vms[v.provider] = v
	return v
}

func (w *World) byName(name string) *vm {
	for _, v := range w.vms {
		if v.name == name && v.listed {
			return v
		}
	}
	return nil
}

func (w *World) byID(id int64) *vm {
	for _, v := range w.vms {
		if v.id == id && v.listed {
			return v
		}
	}
	return nil
}

func (c *controller) destroy(effect int64, f engine.Destroy) {
	w := c.w
	if v := w.byName(f.Name); v != nil && !w.chance(w.luck.DestroyLost) {
		w.kill(v)
		w.after(w.delay(30*time.Second), func() { v.listed = false })
	}
	c.reply(time.Second, engine.Destroyed{Effect: effect, Instance: f.Instance})
}

// kill ends an instance and all that runs on it.
func (w *World) kill(v *vm) {
	v.alive = false
	for _, r := range v.runs {
		if w.running[r.id.Job] == r {
			delete(w.running, r.id.Job)
		}
	}
	w.cut(v)
}

func (w *World) cut(v *vm) {
	if to := v.link; to != nil {
		v.link = nil
		heard := w.now
		w.after(w.delay(20*time.Second), func() { w.answer(to, engine.Disconnected{Instance: v.id, Heard: heard, Text: "reset"}) })
	}
}

// misfortune lets an instance die, or its connection be cut, now and then.
func (w *World) misfortune(v *vm) {
	switch {
	case w.chance(w.luck.Death):
		w.kill(v)
		w.after(w.delay(time.Minute), func() { v.listed = false })
	case w.chance(w.luck.Cut):
		w.cut(v)
	case w.chance(w.luck.Hang):
		v.hangs = w.now.Add(w.delay(10 * time.Minute))
		w.cut(v)
	case w.chance(w.luck.ProbeFails):
		v.bad = true
	}
}

func (c *controller) list(effect int64, cloud string) {
	w := c.w
	began := w.now
	if c.l != w.loop {
		return // what a dead controller sees, nobody knows
	}
	if w.chance(w.luck.ListFails) {
		c.reply(10*time.Second, engine.Listed{Effect: effect, Cloud: cloud, Began: began, Err: drover.Errorf(drover.KindTransient, "list failed")})
		return
	}
	ev := engine.Listed{Effect: effect, Cloud: cloud, Began: began}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) {
		v := w.vms[id]
		if v.offering.Cloud != cloud {
			continue
		}
		listed := v.listed && !(w.seen[id] && w.chance(w.luck.ListMisses))
		switch {
		case listed && !w.seen[id]:
			w.seen[id] = true
			ev.Added = append(ev.Added, engine.Sighting{
				ProviderID: id, Name: v.name, ProviderType: v.offering.Type.ProviderType, Type: v.offering.Type.Name,
				Zone: v.offering.Zone, Market: v.offering.Market, Price: v.offering.Price, Created: v.created, Idle: v.tag,
			})
		case !listed && w.seen[id]:
			delete(w.seen, id)
			ev.Removed = append(ev.Removed, id)
		}
	}
	c.reply(time.Second, ev)
}

func (c *controller) setTags(effect int64, f engine.SetTags) {
	w := c.w
	v := w.vms[f.ProviderID]
	ev := engine.Tagged{Effect: effect, Instance: f.Instance}
	switch lost := w.chance(w.luck.TagFails); {
	case v == nil || !v.listed:
		ev.Err = drover.Errorf(drover.KindNotFound, "no such instance")
	case lost && w.rng.IntN(2) == 0:
		ev.Err = drover.Errorf(drover.KindTransient, "not tagged")
	default:
		v.tag = f.Idle
		if lost {
			ev.Err = drover.Errorf(drover.KindTransient, "timed out")
		}
	}
	c.reply(2*time.Second, ev)
}

func (c *controller) connect(effect int64, f engine.Connect) {
	w := c.w
	v := w.vms[f.ProviderID]
	if v == nil || !v.alive || v.boots == 0 || w.now < max(v.boots, v.hangs) {
		c.reply(time.Second, engine.ConnectFailed{Effect: effect, Instance: f.Instance, Err: drover.Errorf(drover.KindUnreachable, "no answer")})
		return
	}
	if c.l != w.loop {
		return // a dead controller's connection ends with it
	}
	bad := f.Probe && v.bad
	if bad && len(v.runs) == 0 {
		c.reply(time.Second, engine.ConnectFailed{Effect: effect, Instance: f.Instance, Err: drover.Errorf(drover.KindUnreachable, "the boot probe failed")})
		return
	}
	w.mayConnect(v, f)
	v.link, v.id = c.l, f.Instance
	ev := engine.Connected{Effect: effect, Instance: f.Instance, HostKey: v.name}
	if bad {
		v.refused, ev.ProbeFailed = true, "exit code 1"
	}
	for _, r := range v.runs {
		ev.Attempts = append(ev.Attempts, engine.Report{ID: r.id, Exit: r.exit})
	}
	slices.SortFunc(ev.Attempts, func(a, b engine.Report) int { return int(a.ID.Job.Index - b.ID.Job.Index) })
	w.answer(c.l, ev)
}

func (c *controller) start(effect int64, f engine.Start) {
	w := c.w
	v := w.byID(f.Instance)
	if v == nil || !v.alive || v.link != c.l {
		c.reply(time.Second, engine.StartFailed{Effect: effect, Attempt: f.Attempt, Err: drover.Errorf(drover.KindTransient, "not connected")})
		return
	}
	if v.runs[f.Attempt] == nil {
		if f.Attempt.Number <= v.fence[f.Attempt.Job] {
			w.fail("attempt %v is started after attempt %d on %s", f.Attempt, v.fence[f.Attempt.Job], v.name)
		}
		if v.refused && !w.released[v.name] {
			w.fail("attempt %v is started on %s, whose boot probe failed", f.Attempt, v.name)
		}
		v.fence[f.Attempt.Job] = f.Attempt.Number
		w.begins(v, f.Attempt)
	}
	c.reply(100*time.Millisecond, engine.Started{Effect: effect, Attempt: f.Attempt})
	w.misfortune(v)
}

// begins runs an attempt, which ends by itself after a while. No two of one job may run at once.
func (w *World) begins(v *vm, id drover.AttemptID) {
	if other := w.running[id.Job]; other != nil {
		w.fail("attempt %v begins on %s while attempt %v runs on %s", id, v.name, other.id, other.vm.name)
	}
	if was, ok := w.Disk.Final[id.Job]; ok {
		w.fail("attempt %v begins although the job is %s", id, was)
	}
	r := &run{id: id, vm: v}
	v.runs[id], w.running[id.Job] = r, r
	takes := w.delay(3 * time.Minute)
	if w.rng.IntN(8) == 0 {
		takes *= 10
	}
	w.after(takes, func() { w.ends(r, drover.Exit{}) })
}

func (w *World) ends(r *run, exit drover.Exit) {
	if !r.vm.alive || r.exit != nil {
		return
	}
	r.exit = &exit
	if w.running[r.id.Job] == r {
		delete(w.running, r.id.Job)
	}
	if to := r.vm.link; to != nil {
		w.after(w.delay(50*time.Millisecond), func() { w.answer(to, engine.Exited{Attempt: r.id, Exit: exit}) })
	}
	w.misfortune(r.vm)
}

func (c *controller) stop(f engine.Stop) {
	v := c.w.byID(f.Instance)
	if v == nil || v.link != c.l || v.runs[f.Attempt] == nil {
		return
	}
	r := v.runs[f.Attempt]
	if c.w.chance(c.w.luck.Stubborn) {
		return
	}
	c.w.after(c.w.delay(f.Grace), func() { c.w.ends(r, drover.Exit{Code: 143, Cause: drover.CauseStopped}) })
}

func (c *controller) collect(effect int64, f engine.Collect) {
	v := c.w.byID(f.Instance)
	ev := engine.Collected{Effect: effect, Attempt: f.Attempt}
	if v == nil || !v.alive || v.link != c.l || v.runs[f.Attempt] == nil {
		ev.Err = drover.Errorf(drover.KindTransient, "not connected")
	}
	c.reply(5*time.Second, ev)
}

func (c *controller) forget(f engine.Forget) {
	v := c.w.byID(f.Instance)
	if v != nil && v.runs[f.Attempt] != nil && v.runs[f.Attempt].exit != nil {
		delete(v.runs, f.Attempt)
	}
}
