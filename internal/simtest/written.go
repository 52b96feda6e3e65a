package simtest

import (
	"time"

	"drover"
	"drover/internal/engine"
)

// mayWrite checks a write against the present disk.
func (w *World) mayWrite(wr engine.Write) {
	d := w.Disk
	switch {
	case wr.Attempt != nil:
		a := wr.Attempt.Attempt
		was, known := d.attempts[a.ID.Job]
		switch known = known && was.ID == a.ID; {
		case !known && a.State == drover.AttemptRunning:
			w.mayRegain(a)
		case !known:
			w.mayBegin(a)
		}
		if !a.State.Live() {
			w.mayEnd(a)
			w.mayCost(*wr.Attempt)
		}
	case wr.Element != nil && wr.Element.State.Final():
		w.mayFinish(*wr.Element)
	case wr.Instance != nil:
		in := *wr.Instance
		was, known := d.instances[in.ID]
		switch {
		case !known:
			w.mayBe(in)
		case was.State != drover.InstanceStopping && in.State == drover.InstanceStopping:
			w.mayStop(in)
		case was.Price != in.Price:
			w.mayReprice(was, in)
		}
		if known && in.Pool != "" {
			w.mayLeavePool(was, in)
			w.mayRest(was, in)
			w.mayGiveUp(was, in)
		}
		if known {
			w.mayBind(was, in)
			w.mayBeTagged(was, in)
		}
		if known && in.Broken && !was.Broken && in.Reason != nil && in.Reason.Cause == drover.ReasonSilent {
			w.mayBeSilent(in)
		}
	case wr.Gone != nil:
		delete(w.controller.cries, wr.Gone.ID)
		w.mayGo(*wr.Gone)
	case wr.Blocks != nil:
		w.mayBlock(*wr.Blocks)
	case wr.Reply != nil:
		w.mayReply(d.wishes[wr.Reply.Wish], wr.Reply.Err)
	}
}

// mayBegin checks a new attempt.
func (w *World) mayBegin(a engine.Attempt) {
	w.withinBudgets(binding{begun: &a})
	w.mayGoFirst(a)
	d, job := w.Disk, a.ID.Job
	in, j := d.instances[a.Instance], d.jobs[job.Number]
	life, cancelled := w.promises.cancelled[job]
	if all, ok := w.promises.cancelled[drover.JobID{Number: job.Number, Index: -1}]; ok && all >= life {
		life, cancelled = all, true
	}
	other, live := d.attempts[job]
	switch v := w.vmOf(in); {
	case live:
		w.fail("attempt %v is to begin while attempt %v is live", a.ID, other.ID)
	case a.ID.Number <= d.begun[job]:
		w.fail("attempt %v is to begin after attempt %d", a.ID, d.begun[job])
	case cancelled && life >= j.Again:
		w.fail("attempt %v is to begin although its job was cancelled", a.ID)
	case in.Idle != drover.IdleRun || in.Broken || in.State == drover.InstanceStopping:
		w.fail("attempt %v is to begin on %s, which is %s, to %s, broken: %v", a.ID, in.Name, in.State, in.Idle, in.Broken)
	case v == nil:
		w.fail("attempt %v is to begin on %s, which is not there", a.ID, in.Name)
	case v.taken:
		w.fail("attempt %v is to begin on %s, which its cloud takes back", a.ID, in.Name)
	case d.lost[job] >= j.Attempts:
		w.fail("attempt %v is to begin after %d were lost, with a limit of %d", a.ID, d.lost[job], j.Attempts)
	case w.leaving(in.Cloud):
		w.fail("attempt %v is to begin on %s, whose cloud leaves", a.ID, in.Name)
	case j.Priority == 0:
		w.fail("attempt %v is to begin although its job's priority is 0", a.ID)
	case j.MaxRunning > 0 && d.live(j.Number) >= j.MaxRunning:
		w.fail("attempt %v is to begin beside %d of its array, with a limit of %d", a.ID, d.live(j.Number), j.MaxRunning)
	case d.elements[job].Until > a.Started:
		w.fail("attempt %v is to begin before %v, when its next try is due", a.ID, d.elements[job].Until.Std())
	case w.controller.drains:
		w.fail("attempt %v is to begin although the controller drains", a.ID)
	case w.paused:
		w.fail("attempt %v is to begin although the queue is paused", a.ID)
	case w.overloaded(in, j.Shape.Need):
		w.fail("attempt %v is to begin on %s, which has no room for it", a.ID, in.Name)
	}
}

// mayRegain checks an attempt that is taken over because it is newer than the records.
func (w *World) mayRegain(a engine.Attempt) {
	d, job := w.Disk, a.ID.Job
	other, live := d.attempts[job]
	switch v := w.vmOf(d.instances[a.Instance]); {
	case d.stale == nil:
		w.fail("attempt %v was never written to begin", a.ID)
	case live:
		w.fail("attempt %v is taken over while attempt %v is live", a.ID, other.ID)
	case a.ID.Number <= d.begun[job]:
		w.fail("attempt %v is taken over after attempt %d", a.ID, d.begun[job])
	case v == nil || v.run(a.ID) == nil:
		w.fail("attempt %v is taken over, and is not there", a.ID)
	}
}

// overloaded reports whether an instance lacks room for one more attempt.
func (w *World) overloaded(in engine.Instance, need drover.Resources) bool {
	left := in.Resources.Minus(need, 1)
	for _, a := range w.Disk.attempts {
		if a.Instance == in.ID && a.State != drover.AttemptCollecting {
			left = left.Minus(w.Disk.jobs[a.ID.Job.Number].Shape.Need, 1)
		}
	}
	return left.CPU < 0 || left.Memory < 0 || left.Disk < 0
}

// mayEnd checks an attempt that is no longer live: its command has ended, or will never begin.
func (w *World) mayEnd(a engine.Attempt) {
	if r := w.running[a.ID.Job]; r != nil && r.id == a.ID {
		w.fail("attempt %v is held to be %s while it runs on %s", a.ID, a.State, r.vm.name)
	}
	if v := w.vmOf(w.Disk.instances[a.Instance]); v != nil && v.taken && a.State == drover.AttemptLost && a.Exit == nil {
		w.fail("attempt %v counts as lost, although its cloud took %s back", a.ID, v.name)
	}
	if a.State == drover.AttemptFailed && a.Exit != nil && a.Exit.Cause == drover.CauseStopped {
		w.fail("attempt %v is held to have failed, and was told to end", a.ID)
	}
}

// mayFinish checks the outcome of a job or an element.
func (w *World) mayFinish(row engine.ElementRow) {
	id := drover.JobID{Number: row.Job, Index: row.Element.Index}
	last := drover.AttemptID{Job: id, Number: row.Element.Number}
	switch won := w.promises.won[last]; {
	case row.State == drover.JobSucceeded && !won:
		w.fail("job %v is said to have succeeded, but attempt %v has not", id, last)
	case row.State == drover.JobSucceeded && !w.promises.stored[last]:
		w.fail("job %v is said to have succeeded, but the output of attempt %v is not stored", id, last)
	case row.State == drover.JobCancelled && row.Reason.Code == drover.ReasonGang:
		w.fail("job %v is final, and was only to begin again with its gang: %s", id, row.Reason.Text)
	case row.State == drover.JobFailed && row.Reason.Code == drover.ReasonExit && won:
		w.fail("job %v is said to have failed (%s), but attempt %v has succeeded", id, row.Reason.Text, last)
	}
}

// mayReply checks the answer to a wish, which comes before its effects: a wish is refused only if it comes too late. It
// records what is granted.
func (w *World) mayReply(wish engine.Body, refused *drover.Error) {
	late := false
	switch b := wish.(type) {
	case engine.CancelAsked:
		late = !b.All && refused != nil && w.Disk.again[b.Job.Number] > b.Again // skipped if the controller does not have this life yet
		if !b.All && refused == nil {
			w.promises.cancelled[b.Job] = max(w.promises.cancelled[b.Job], b.Again)
		}
	case engine.PriorityAsked:
		j, known := w.Disk.jobs[b.Job]
		late = !known || j.Cancel != nil || j.Again > b.Again
	case engine.InstructAsked:
		in, known := w.Disk.instances[b.Instance]
		late = b.Verb != drover.VerbKill && (!known || in.State == drover.InstanceStopping)
	case engine.ResizeAsked:
		s := w.controller.poolSpec(b.Pool)
		late = s == nil || b.Count < 0 || s.Max > 0 && b.Count > s.Max
	case engine.GroupAsked:
		if late = refused != nil; !late {
			w.mayGrant(b)
		}
	case engine.QueueAsked:
		w.paused, w.switched = !b.Resume, w.controller.decides
	}
	if late != (refused != nil) {
		w.fail("the answer to %+v is %v, and that it comes too late is %t", wish, refused, late)
	}
}

// mayBe checks a new instance.
func (w *World) mayBe(in engine.Instance) {
	v := w.vmOf(in)
	switch {
	case w.returns(in):
	case in.State == drover.InstanceCreating:
		w.mayRent(in)
	case v != nil && v.tag == drover.IdleHold && v.shownTag == drover.IdleHold && in.Idle != drover.IdleHold:
		w.fail("instance %s is adopted, and its tag says that it is held", in.Name)
	}
}

// returns reports whether an instance was gone and is listed by its cloud again. No two records may be of one cloud
// instance, or it is paid twice.
func (w *World) returns(in engine.Instance) bool {
	for _, d := range w.Disk.departed {
		switch was := d.Instance; {
		case was.Cloud != in.Cloud || was.ProviderID != in.ProviderID || in.ProviderID == "":
		case was.ID != in.ID:
			w.fail("instance %s is recorded as %s, and was as %s before", in.ProviderID, in.Name, was.Name)
		case w.over: // nobody would look again, so it may stay settled
			return true
		default:
			w.vmOf(in).book.settled = 0 // the settlement is reverted
			return true
		}
	}
	return false
}

// mayRent checks an instance that is about to be created.
func (w *World) mayRent(in engine.Instance) {
	w.withinBudgets(binding{instance: &in, waits: in.Reservations})
	w.mayRentAnew(in)
	if in.Pool != "" {
		w.mayJoinPool(in)
	}
	there, limit := 1, 0
	if w.Disk.stale != nil {
		w.fail("instance %s is to be created although the records are an older copy", in.Name)
	}
	for _, o := range w.Disk.instances {
		if o.Cloud == in.Cloud {
			there++
		}
	}
	for _, c := range w.settings.Clouds {
		if c.Name == in.Cloud {
			limit = c.MaxInstances
		}
	}
	switch most := w.settings.MaxInstances; {
	case w.leaving(in.Cloud):
		w.fail("instance %s is to be created in a cloud that leaves", in.Name)
	case w.controller.drains:
		w.fail("instance %s is to be created although the controller drains", in.Name)
	case w.paused && in.Pool == "":
		w.fail("instance %s is to be created although the queue is paused", in.Name)
	case w.Disk.closing:
		w.fail("instance %s is to be created although the fleet closes", in.Name)
	case limit > 0 && there > limit:
		w.fail("instance %s would be the %dth in its cloud, with a limit of %d", in.Name, there, limit)
	case most > 0 && len(w.Disk.instances) >= most:
		w.fail("instance %s would be the %dth, with a limit of %d", in.Name, len(w.Disk.instances)+1, most)
	}
	w.withinLimits(in)
	w.mayReserve(in)
	for _, o := range in.Candidates {
		if b := w.blocked(o); b != nil {
			w.fail("instance %s is to be created of %s, which is blocked: %s", in.Name, b.Subject(), b.Reason.Text)
		}
	}
}

// blocked returns the block that covers an offering now; nil if there is none.
func (w *World) blocked(o drover.Offering) *engine.Block {
	for _, b := range w.Disk.blocks {
		if b.Covers(o) && b.Reason.Until > w.controller.now() {
			return &b
		}
	}
	return nil
}

// leaving reports whether the configuration makes a cloud leave.
func (w *World) leaving(cloud string) bool {
	for _, c := range w.controller.settings.Clouds {
		if c.Name == cloud {
			return c.Leaving
		}
	}
	return false
}

// gentle are the reasons for which an instance may go only when nothing runs on it.
var gentle = map[string]bool{
	drover.ReasonIdle: true, drover.ReasonClosing: true, drover.ReasonDraining: true, drover.ReasonTypeRemoved: true, drover.ReasonAge: true,
	drover.ReasonUsed: true, drover.ReasonGivesWay: true, drover.ReasonUnhealthy: true, drover.ReasonBudget: true,
}

// mayStop checks an instance that begins to stop.
func (w *World) mayStop(in engine.Instance) {
	why := drover.Reason{}
	if in.Reason != nil {
		why = in.Reason.Reason()
	}
	rest, age := w.controller.idleFor(in), w.controller.now().Sub(in.Created)
	if why.Code == drover.ReasonIdle && in.Ready != 0 && rest < min(time.Minute, w.controller.settings.Lifecycle.IdleTimeout) && age < time.Minute && !w.Disk.closing {
		w.fail("instance %s is to go after being idle for %v, %v old: its first minute is paid", in.Name, rest, age)
	}
	if in.Idle == drover.IdleHold && !w.promises.killed[in.Name] {
		w.fail("instance %s is held and is to go: %v", in.Name, why)
	}
	for _, a := range w.Disk.attempts {
		if a.Instance == in.ID && gentle[why.Code] {
			w.fail("instance %s is to go (%s) while attempt %v is live on it", in.Name, why.Text, a.ID)
		}
	}
}

// mayBeTagged checks an instance whose tag no longer needs to be set: its cloud has it.
func (w *World) mayBeTagged(was, in engine.Instance) {
	if v := w.vmOf(in); was.Retag && !in.Retag && v != nil && v.there() && orRun(v.tag) != in.Idle {
		w.fail("instance %s is to %s and needs no tag any more, and its cloud has %s", in.Name, in.Idle, orRun(v.tag))
	}
}

// mayBeSilent checks an instance that is given up for its silence. Controllers have listened for it for the whole
// allowed time, and at least one other instance of its cloud was heard, unless there are few or none was heard for too
// long.
func (w *World) mayBeSilent(in engine.Instance) {
	c, v := w.controller, w.vmOf(in)
	if v == nil {
		return
	}
	if quiet := v.quiet + c.now().Sub(max(v.heard, c.looks)); v.heard != 0 && quiet < w.settings.Lifecycle.ProbeTimeout {
		w.fail("instance %s is held to be silent, and was heard, or not listened to, %v ago", in.Name, quiet)
	}
	if silent, since := v.cloud.allSilent(); silent >= 3 && (w.Disk.missed(in) || w.serves(in)) && !w.partitionOver(since) {
		w.fail("instance %s is held to be silent, as all %d of its cloud are since %v: the controller is cut off", in.Name, silent, since)
	}
}

// serves reports whether a pool needs an instance, whatever runs on it.
func (w *World) serves(in engine.Instance) bool {
	s := w.controller.poolSpec(in.Pool)
	in.Broken, in.State = false, drover.InstanceIdle // as it was before it was given up
	return s != nil && in.Ready != 0 && !in.Waking && w.counts(in, s) && in.Template == s.Template && !w.controller.drains && !w.Disk.closing
}

// settled is the longest time until a controller notices that a link is cut, if its disk is not slow. After that it may
// count the instance as connected only until it handles the cut, which the step checks exactly.
const settled = 30 * time.Second

// allSilent returns how many of a cloud's instances were heard before and are silent, and since when all of them are; 0
// if one was heard recently. It ignores instances that the last list left out, which may be gone, and those without a
// login, which are never heard.
func (cl *cloud) allSilent() (n int, since drover.Time) {
	if c := cl.w.controller; c.now() < c.looks.Add(settled) { // a link that it counts as connected may have been cut while it was not looking
		return 0, 0
	}
	for _, v := range cl.vms {
		row := cl.w.record(v)
		switch {
		case v.link != nil, v.untold > 0, v.heard != 0 && cl.w.now < v.unheard.Add(settled): // connected, as far as the controller knows
			return 0, 0
		case v.heard == 0 || row == nil || row.Ready == 0 || row.Broken || row.State == drover.InstanceStopping:
		case row.State == drover.InstanceStopped || row.State == drover.InstanceBooting: // nothing is expected of it yet
		case v.missing != 0 || v.lacking != 0 || v.lacked != 0 && cl.w.now < v.lacked.Add(2*slowest):
		default:
			n, since = n+1, max(since, v.unheard)
		}
	}
	return n, since
}

// partitionOver reports whether none of a cloud's instances was heard for so long that the controller no longer
// suspects itself.
func (w *World) partitionOver(since drover.Time) bool {
	most := w.settings.Lifecycle.PartitionTimeout
	return most > 0 && w.now.Sub(since) >= most
}

// mayGo checks that an instance which is given up no longer exists, and settles its bill. One that its cloud is
// destroying may be given up before lists lack it, even one that was stopped.
func (w *World) mayGo(end engine.InstanceEnd) {
	in := w.Disk.instances[end.ID]
	for _, v := range w.cloud(in.Cloud).vms {
		same := in.ProviderID == v.provider || in.ProviderID == "" && in.Name == v.name
		if same && (v.alive || v.off && !v.ended()) && v.there() {
			w.fail("instance %s is held to be gone (%s), and %s is there", in.Name, end.Reason.Text, v.provider)
		}
	}
	w.settle(in, end)
}

// mayBlock checks that no existing block is lengthened.
func (w *World) mayBlock(blocks []engine.Block) {
	for _, b := range blocks {
		w.mayBeRestless(b)
		for _, was := range w.Disk.blocks {
			same := b.Subject() == was.Subject()
			if same && was.Reason.Until > w.controller.now() && b.Reason.Until > was.Reason.Until {
				w.fail("the block of %s is lengthened from %v to %v", b.Subject(), was.Reason.Until, b.Reason.Until)
			}
		}
	}
}
