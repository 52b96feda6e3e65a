package engine

import (
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/timers"
	"drover/internal/engine/verdict"
	"drover/internal/runtimes"
)

// addAttempt adds a live attempt from a State.
func (e *Engine) addAttempt(a *Attempt) {
	in := e.fleet.Member(a.Instance)
	if in == nil || e.job(a.ID.Job.Number) == nil {
		return
	}
	if a.Likely == (runtimes.Dist{}) {
		a.Likely = e.runTimeOf(e.job(a.ID.Job.Number)).Alone
	}
	e.load(in, a)
}

// load adds a live attempt to the instance's.
func (e *Engine) load(in *fleet.Member, a *Attempt) {
	e.fleet.Load(in, a)
	e.countMix(in, a, 1)
	e.occupy(in, a)
	e.expectEnd(in, a)
}

// need returns what an attempt occupies on its instance: everything while its command may run, afterwards only its
// disk.
func (e *Engine) need(a *Attempt) drover.Resources {
	need := e.job(a.ID.Job.Number).Needs(a.ID.Job.Index)
	if a.State == drover.AttemptCollecting {
		return drover.Resources{Disk: need.Disk}
	}
	return need
}

// begin starts an element that has left its queue on an instance with room for it.
func (e *Engine) begin(j *Job, index int, in *fleet.Member) {
	a := &Attempt{
		ID:       drover.AttemptID{Job: drover.JobID{Number: j.Number, Index: index}, Number: max(j.LastAttempt(index), e.s.LastAttempt) + 1},
		Instance: in.ID,
		State:    drover.AttemptStarting,
		Started:  e.s.Now,
	}
	e.admit(in, j, a)
	e.start(in, a)
}

// admit records a new attempt on an instance.
func (e *Engine) admit(in *fleet.Member, j *Job, a *Attempt) {
	e.takeOwner(in, j.User)
	a.Likely = e.runTimeOf(j).Alone
	el := j.Element(a.ID.Job.Index)
	el.Number = a.ID.Number
	e.load(in, a)
	if in.State == drover.InstanceIdle {
		e.setState(in, drover.InstanceRunning)
	}
	e.writeJob(j)
	e.write(Write{Element: &ElementRow{Job: j.Number, Element: *el, State: drover.JobRunning, Started: e.s.Now}})
	e.writeAttempt(a, Verdict{})
}

// start asks the runner to start the attempt. The runner starts it once, however often it is asked.
func (e *Engine) start(in *fleet.Member, a *Attempt) {
	j := e.job(a.ID.Job.Number)
	a.Effect = e.effect(Effect{Start: &Start{
		Attempt: a.ID, Instance: in.ID, Type: in.Type.Name, Interrupted: j.Element(a.ID.Job.Index).Interrupted,
		Limits: j.Needs(a.ID.Job.Index), Timeout: j.Timeout, Grace: e.life().TermTimeout,
	}})
}

func (e *Engine) writeAttempt(a *Attempt, why Verdict) {
	row := AttemptRow{Attempt: *a, Reason: why.Reason()}
	if a.Ended != 0 {
		row.Cost = e.share(a)
	}
	e.write(Write{Attempt: &row})
}

// live returns the attempt with this full ID; nil if it is not, or no longer, live.
func (e *Engine) live(id drover.AttemptID) *Attempt {
	if a := e.fleet.Attempt(id.Job); a != nil && a.ID == id {
		return a
	}
	return nil
}

func (e *Engine) started(b Started) {
	a := e.live(b.Attempt)
	if a == nil {
		return
	}
	if a.Effect == b.Effect {
		a.Effect, a.Fails = 0, 0
	}
	e.running(a)
}

// running records that the runner has started an attempt.
func (e *Engine) running(a *Attempt) {
	if a.State != drover.AttemptStarting {
		return
	}
	a.State = drover.AttemptRunning
	if givenUp(a) {
		a.Stop = nil // it was started after all
	}
	if a.Stop != nil {
		stop := *a.Stop
		stop.Since = e.s.Now // the order is sent only now
		a.Stop = &stop
		e.askStop(a)
		e.touch(e.fleet.Member(a.Instance)) // which becomes unhealthy if the attempt does not end
	}
	e.writeAttempt(a, Verdict{})
	e.use(e.fleet.Member(a.Instance))
}

func (e *Engine) startFailed(b StartFailed) {
	a := e.live(b.Attempt)
	if a == nil || !answers(b.Effect, a.Effect) {
		return
	}
	a.Effect = 0
	if a.State != drover.AttemptStarting {
		return
	}
	switch b.Err.Kind {
	case drover.KindTransient:
	case drover.KindConflict:
		e.lose(a, "%s", b.Err.Explained())
		return
	default:
		e.refused(a, b.Err)
		return
	}
	if a.Stop != nil {
		// Only the runner knows whether it was started; it must not be started now. The next hello reports it.
		e.effect(Effect{Disconnect: &Disconnect{Instance: a.Instance}})
		return
	}
	a.Fails++
	if b.Late || a.Fails >= startTries {
		e.giveUpStart(a, b.Err)
		return
	}
	a.Retry = e.s.Now.Add(timers.Backoff(a.Fails, time.Second, time.Minute))
	e.touch(e.fleet.Member(a.Instance))
}

// startTries is how often in a row a start may fail transiently, over some ten minutes, before it is given up.
const startTries = 15

// giveUpStart counts an attempt as lost unless the next hello says that it was started.
func (e *Engine) giveUpStart(a *Attempt, err *drover.Error) {
	why := e.verdict(drover.ReasonNoStart, "not started: %s", err.Explained())
	a.Stop = &why
	e.writeAttempt(a, why)
	e.effect(Effect{Disconnect: &Disconnect{Instance: a.Instance}})
}

// givenUp reports whether the start of an attempt was given up, so that it counts as lost unless it was started after
// all.
func givenUp(a *Attempt) bool { return a.Stop != nil && a.Stop.Cause == verdict.NoStart }

// refused ends an attempt that was never started.
func (e *Engine) refused(a *Attempt, err *drover.Error) {
	if a.Stop != nil {
		e.end(a, drover.AttemptCancelled, *a.Stop)
		return
	}
	e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonNoStart, "%s", err.Explained()))
}

// checkAttempts retries what failed and handles unkillable attempts.
func (e *Engine) checkAttempts(in *fleet.Member) {
	for _, a := range slices.Clone(in.Load) {
		if a.Effect == 0 && a.Retry != 0 && a.Retry <= e.s.Now && in.Connected {
			a.Retry = 0
			switch {
			case a.State == drover.AttemptStarting && a.Stop != nil:
				e.effect(Effect{Disconnect: &Disconnect{Instance: in.ID}}) // as startFailed does
			case a.State == drover.AttemptStarting:
				e.start(in, a)
			case a.State == drover.AttemptCollecting:
				e.collect(a)
			}
		}
	}
	if in.Connected && !in.Held() {
		e.stopUnkillable(in)
	}
}

// nextAttemptCheck returns the earliest time at which checkAttempts has something to do, 0 for none.
func (e *Engine) nextAttemptCheck(in *fleet.Member) (at drover.Time) {
	for _, a := range in.Load {
		if a.Effect == 0 {
			at = sooner(at, a.Retry)
		}
		if a.Stop != nil && a.State == drover.AttemptRunning && !in.Held() {
			at = sooner(at, later(e.unkillableAt(a), e.s.Now))
		}
	}
	return at
}

// sooner returns the earlier of two times, of which 0 means never.
func sooner(a, b drover.Time) drover.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// An attempt is told to stop as soon as its runner is connected. It ends when the runner says so or the instance is
// gone. An attempt that cannot be killed makes its instance unhealthy.

// killGrace is how long after SIGKILL an attempt may take to end before its instance counts as broken.
const killGrace = 30 * time.Second

// stopAttempt stops a live attempt: SIGTERM, then SIGKILL after the grace.
func (e *Engine) stopAttempt(a *Attempt, why Verdict) {
	switch {
	case a == nil:
		return
	case a.Stop != nil && requeues(*a.Stop):
		e.stopPermanently(a, why)
		return
	case a.Stop != nil && !givenUp(a) || a.State == drover.AttemptCollecting && requeues(why):
		return
	}
	why.Since = e.s.Now
	a.Stop = &why
	e.writeAttempt(a, why)
	if a.State != drover.AttemptCollecting { // else it is only not to be tried again
		e.askStop(a)
	}
	e.pending.Place = true // its end is no longer expected to start it again
	e.touch(e.fleet.Member(a.Instance))
}

func (e *Engine) askStop(a *Attempt) {
	if e.fleet.Member(a.Instance).Connected {
		e.effect(Effect{Stop: &Stop{Attempt: a.ID, Instance: a.Instance, Grace: e.life().TermTimeout}})
	}
}

// unkillableAt returns when an attempt that was told to stop counts as unkillable. Time during which the controller was
// suspended does not count.
func (e *Engine) unkillableAt(a *Attempt) drover.Time {
	return max(a.Stop.Since, e.s.Looking).Add(e.life().TermTimeout + killGrace)
}

// stopUnkillable marks an instance with an unkillable attempt as unhealthy: it gets no more work and is destroyed once
// it runs nothing else. The other attempts may finish, since what keeps a process from dying, such as a hanging file
// system, need not affect them.
func (e *Engine) stopUnkillable(in *fleet.Member) {
	at := slices.IndexFunc(in.Load, e.unkillable)
	if at < 0 {
		return
	}
	a := in.Load[at]
	why := e.verdict(drover.ReasonBroken, "attempt %v had not ended %v after SIGKILL", a.ID, killGrace)
	if slices.ContainsFunc(in.Load, func(a *Attempt) bool { return !e.unkillable(a) }) {
		e.markUnhealthy(in, why)
		return
	}
	e.breakInstance(in, why)
}

// unkillable reports whether an attempt is still running long after it was told to stop.
func (e *Engine) unkillable(a *Attempt) bool {
	return a.Stop != nil && a.State == drover.AttemptRunning && e.unkillableAt(a) <= e.s.Now
}
