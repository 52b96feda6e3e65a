package simtest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// run is an attempt on an instance.
type run struct {
	id     drover.AttemptID
	vm     *vm
	store  string // the nonce of the records that started it
	begun  drover.Time
	exit   *drover.Exit
	undead bool // nothing ends it
}

// fenced is a job and the records that number it.
type fenced struct {
	store string
	job   drover.JobID
}

func (w *World) fenced(id drover.AttemptID) fenced { return fenced{w.Disk.nonce, id.Job} }

func (v *vm) run(id drover.AttemptID) *run {
	for _, r := range v.runs {
		if r.id == id {
			return r
		}
	}
	return nil
}

// linked returns the instance with a number if this controller is connected to it; nil if not.
func (c *controller) linked(instance int64) *vm {
	if v := c.links[instance]; v != nil && v.alive && v.link == c {
		return v
	}
	return nil
}

// connect logs in to an instance, checks its host key and boot probe, and accepts its runner's report of attempts.
func (c *controller) connect(effect int64, f engine.Connect) {
	v := c.w.cloud(f.Cloud).provided(f.ProviderID)
	no := func(most time.Duration, kind drover.ErrorKind, text string) {
		c.reply(most, engine.ConnectFailed{Effect: effect, Instance: f.Instance, Err: drover.Errorf(kind, "%s", text)})
	}
	switch address := c.addressOf(v, f); {
	case v == nil || address == "":
		no(time.Second, drover.KindNotFound, "its address is not known")
	case !v.reachable() || address != v.address:
		no(30*time.Second, drover.KindUnreachable, "no answer")
	case !c.alive():
		// A dead controller's connection ends with it.
	case v.key != v.name || f.HostKey != "" && f.HostKey != v.key:
		c.impostor[f.Instance] = true
		no(time.Second, drover.KindHostKey, "another host key")
	case f.Probe && c.w.now < v.stuck:
		no(time.Minute, drover.KindTransient, "the boot probe did not end")
	case f.Probe && v.bad && len(v.runs) == 0:
		no(time.Second, drover.KindTransient, "the boot probe failed")
	default:
		c.hello(effect, f, v)
	}
}

// addressOf is where a controller dials an instance: its last list's address, or else the create call's, or else the
// recorded one.
func (c *controller) addressOf(v *vm, f engine.Connect) string {
	switch {
	case v == nil:
		return ""
	case v.seen.by == c && v.seen.address != "":
		return v.seen.address
	case v.madeFor == c && v.createTold != "":
		return v.createTold
	}
	return f.Addresses.Private
}

func (c *controller) hello(effect int64, f engine.Connect, v *vm) {
	c.mayConnect(v, f)
	if c.w.cut(v); c.links[f.Instance] != nil {
		c.w.cut(c.links[f.Instance])
	}
	if v.heard != 0 {
		v.quiet += max(0, c.now().Sub(max(v.heard, c.looks)))
	}
	v.link, v.number, v.lost, v.unheard = c, f.Instance, 0, 0
	v.appears = min(v.appears, c.w.now) // a cloud lists an instance that can be logged in to
	v.session++
	c.links[f.Instance] = v
	ev := engine.Connected{Effect: effect, Instance: f.Instance, HostKey: v.key, Notice: v.notice, Unhealthy: v.ill}
	if f.Probe && v.bad {
		v.failed, ev.ProbeFailed = true, "exit code 1"
	}
	for _, r := range v.runs {
		ev.Attempts = append(ev.Attempts, engine.Report{ID: r.id, Exit: r.exit, Proof: c.w.proof(r)})
	}
	if c.w.happens(Forges) {
		ev.Attempts = append(ev.Attempts, c.w.forged(v)...)
	}
	slices.SortFunc(ev.Attempts, func(a, b engine.Report) int {
		return cmp.Or(a.ID.Job.Compare(b.ID.Job), cmp.Compare(a.ID.Number, b.ID.Number))
	})
	c.take(ev)
	v.misfortune()
}

// forged returns false reports by a job that pretends to be its runner: attempts on other instances have ended here,
// later ones run here, and so does a job that nobody submitted.
func (w *World) forged(v *vm) (reports []engine.Report) {
	for _, job := range slices.SortedFunc(maps.Keys(w.running), func(a, b drover.JobID) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Index, b.Index))
	}) {
		r := w.running[job]
		if r.vm != v {
			later := r.id
			later.Number += 500
			reports = append(reports, engine.Report{ID: r.id, Exit: &drover.Exit{}, Proof: engine.ProofMissing}, engine.Report{ID: later, Proof: engine.ProofMissing})
		}
	}
	nobodys := drover.AttemptID{Job: drover.JobID{Number: 1000, Index: -1}, Number: 1}
	return append(reports, engine.Report{ID: nobodys, Proof: engine.ProofMissing})
}

// session is the number of the current link to an instance; 0 if there is none.
func (c *controller) session(instance int64) int {
	if v := c.linked(instance); v != nil {
		return v.session
	}
	return 0
}

// start makes a runner begin an attempt, if the link is still the one for which the effect was released.
func (c *controller) start(effect int64, f engine.Start, session int) {
	v := c.linked(f.Instance)
	no := func(most time.Duration, kind drover.ErrorKind, text string) {
		c.reply(most, engine.StartFailed{Effect: effect, Attempt: f.Attempt, Err: drover.Errorf(kind, "%s", text)})
	}
	switch {
	case v == nil || v.session != session:
		no(time.Second, drover.KindTransient, "not connected")
	case v.halfOpen && c.w.roll(2) == 0:
		no(patience, drover.KindTransient, "the connection is dead")
	case v.run(f.Attempt) == nil && f.Attempt.Number <= v.fence[c.w.fenced(f.Attempt)]:
		c.w.mayRefuse(v, f.Attempt)
		no(time.Second, drover.KindConflict, "a later one was here")
	default:
		v.drop(f.Attempt, c.w.Disk.nonce)
		if v.run(f.Attempt) == nil {
			c.begins(v, f)
		}
		if v.halfOpen {
			no(patience, drover.KindTransient, "the connection is dead")
		} else {
			c.reply(100*time.Millisecond, engine.Started{Effect: effect, Attempt: f.Attempt})
		}
		v.misfortune()
	}
}

// begins runs an attempt, which ends by itself after a while. No two attempts of one job may run at once.
func (c *controller) begins(v *vm, f engine.Start) {
	w, id := c.w, f.Attempt
	c.mayRun(v, id)
	r := &run{id: id, vm: v, store: w.Disk.nonce, begun: w.now}
	v.fence[w.fenced(id)] = id.Number
	v.runs, w.running[id.Job] = append(v.runs, r), r
	takes := w.within(3 * time.Minute)
	if w.roll(8) == 0 {
		takes *= 10
	}
	if w.now < v.full {
		w.after(0, func() { w.ends(r, drover.Exit{Code: 126, Cause: drover.CauseLost, Text: "no space left"}) })
		return
	}
	w.after(takes, func() { w.ends(r, w.outcome()) })
}

// proof returns how an attempt's proof verifies.
func (w *World) proof(r *run) engine.Proof {
	if r.store != w.Disk.nonce {
		return engine.ProofForeign
	}
	return engine.ProofValid
}

// outcome returns how a command ends by itself.
func (w *World) outcome() drover.Exit {
	switch {
	case w.happens(OutOfMemory):
		return drover.Exit{Code: 137, Signal: "killed", Cause: drover.CauseMemory}
	case w.happens(JobFails):
		return drover.Exit{Code: 1}
	case w.happens(NoImage):
		return drover.Exit{Code: 125, Cause: drover.CauseNoImage, Text: "no such image"}
	case w.happens(SupervisorDies):
		return drover.Exit{Code: 137, Cause: drover.CauseLost}
	}
	return drover.Exit{}
}

func (w *World) ends(r *run, exit drover.Exit) {
	if !r.vm.alive || r.exit != nil || r.undead {
		return
	}
	exit.Started, exit.Ended = r.begun.Add(r.vm.clock), w.now.Add(r.vm.clock)
	r.exit = &exit
	if w.running[r.id.Job] == r { // otherwise it belonged to a lost store
		delete(w.running, r.id.Job)
		w.promises.won[r.id] = exit.Code == 0
	}
	r.vm.tell(engine.Exited{Instance: r.vm.number, Attempt: r.id, Exit: exit, Proof: w.proof(r)})
	r.vm.misfortune()
}

// stop ends an attempt: within its grace after SIGTERM, by SIGKILL after that, or not at all.
func (c *controller) stop(f engine.Stop) {
	w, v := c.w, c.linked(f.Instance)
	if v == nil || v.halfOpen {
		return
	}
	r := v.run(f.Attempt)
	if r == nil || r.exit != nil {
		return
	}
	exit, takes := drover.Exit{Code: 143, Signal: "terminated", Cause: drover.CauseStopped}, w.within(f.Grace)
	switch {
	case w.happens(Undead):
		r.undead = true
		if known := w.Disk.attempts[f.Attempt.Job]; w.older && known.ID != f.Attempt {
			w.bury(v)
		}
	case w.happens(Stubborn):
		exit.Code, exit.Signal, takes = 137, "killed", f.Grace
	}
	w.after(takes, func() { w.ends(r, exit) })
}

func (c *controller) collect(effect int64, f engine.Collect) {
	v, ev := c.linked(f.Instance), engine.Collected{Effect: effect, Attempt: f.Attempt}
	switch {
	case v == nil || v.run(f.Attempt) == nil || v.halfOpen:
		ev.Err = drover.Errorf(drover.KindTransient, "not connected")
	case c.w.happens(CollectFails) || c.w.now < v.full:
		ev.Err = drover.Errorf(drover.KindTransient, "no space left")
	default:
		c.w.promises.stored[f.Attempt] = true
	}
	c.reply(5*time.Second, ev)
}

// forget makes a runner forget an attempt, if the link is still the one for which the effect was released.
func (c *controller) forget(f engine.Forget, session int) {
	v := c.linked(f.Instance)
	if v == nil || v.halfOpen || v.session != session {
		return
	}
	not := ""
	if f.Foreign {
		not = c.w.Disk.nonce
	}
	v.drop(f.Attempt, not)
}

// drop makes a runner forget an ended attempt, unless the records with this nonce started it.
func (v *vm) drop(id drover.AttemptID, not string) {
	v.runs = slices.DeleteFunc(v.runs, func(r *run) bool { return r.id == id && r.exit != nil && r.store != not })
}
