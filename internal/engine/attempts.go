package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
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
		a.Likely = e.likely(e.job(a.ID.Job.Number))
	}
	e.load(in, a)
}

// load adds a live attempt to the instance's.
func (e *Engine) load(in *fleet.Member, a *Attempt) {
	e.fleet.Load(in, a)
	e.countMix(in, a, 1)
	e.occupy(in, a)
	e.expectEnd(a)
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

// begin starts the group's next element on an instance with room for it.
func (e *Engine) begin(g *group, in *fleet.Member) {
	j, index := e.take(g)
	e.beginElement(j, index, in)
}

// beginElement starts an element that has left its queue.
func (e *Engine) beginElement(j *Job, index int, in *fleet.Member) {
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
	a.Likely = e.likely(j)
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
		stop.Since = e.s.Now // it is told only now
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
		e.lose(a, "%s", b.Err.Message)
		return
	default:
		e.refused(a, b.Err)
		return
	}
	if a.Stop != nil {
		// Only the runner knows whether it was started; it must not be started now. The next hello tells.
		e.effect(Effect{Disconnect: &Disconnect{Instance: a.Instance}})
		return
	}
	a.Fails++
	if b.Late || a.Fails >= startTries {
		e.giveUpStart(a, b.Err)
		return
	}
	a.Retry = e.s.Now.Add(backoff(a.Fails, time.Second, time.Minute))
	e.touch(e.fleet.Member(a.Instance))
}

// startTries is how often in a row a start may fail transiently, over some ten minutes, before it is given up.
const startTries = 15

// giveUpStart counts an attempt as lost unless the next hello says that it was started.
func (e *Engine) giveUpStart(a *Attempt, err *drover.Error) {
	why := e.verdict(drover.ReasonNoStart, "not started: %s", err.Message)
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
	e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonNoStart, "%s", err.Message))
}

// exited handles the end of an attempt's command. Its room is free immediately; it is final once its output is stored.
func (e *Engine) exited(b Exited) {
	a, exit := e.live(b.Attempt), b.Exit
	switch {
	case a == nil || b.Instance != 0 && b.Instance != a.Instance:
		e.orphanEnded(b)
		return
	case b.Proof != ProofValid && !a.Unproven:
		e.forgedEnd(a)
		return
	case a.State == drover.AttemptCollecting:
		return
	}
	if givenUp(a) {
		a.Stop = nil
	}
	in := e.fleet.Member(a.Instance)
	e.vacate(in, a)
	if began(exit) {
		e.use(in)
	}
	a.State, a.Exit, a.Ended = drover.AttemptCollecting, &exit, e.ended(a, exit)
	e.occupy(in, a)
	e.learnRunTime(a)
	a.Effect, a.Fails, a.Retry = 0, 0, 0
	e.writeAttempt(a, Verdict{})
	e.collect(a)
	e.freed()
}

// freed lets others use what an attempt has released: its room, and the money committed for it.
func (e *Engine) freed() {
	e.needsPlacing = true
	if e.limited() {
		e.needsPlan = true
	}
}

// ended returns when an attempt's command ended, which may be reported late, after a broken connection or a restart.
// The instance's clock is trusted only for the duration.
func (e *Engine) ended(a *Attempt, exit drover.Exit) drover.Time {
	if at := a.Started.Add(exit.Ended.Sub(exit.Started)); exit.Started != 0 && at > a.Started && at < e.s.Now.Add(-lateness) {
		return at
	}
	return e.s.Now
}

// forgedEnd ignores an exit reported without proof that the attempt was placed on this instance. The next hello tells
// what really runs there.
func (e *Engine) forgedEnd(a *Attempt) {
	in := e.fleet.Member(a.Instance)
	e.distrust(in, a.ID)
	if in.Connected {
		e.effect(Effect{Disconnect: &Disconnect{Instance: in.ID}})
	}
}

// orphanEnded records that an orphaned attempt has ended as told.
func (e *Engine) orphanEnded(b Exited) {
	if in := e.fleet.Member(b.Instance); in != nil && b.Proof == ProofMissing {
		e.distrust(in, b.Attempt)
	}
	for _, in := range e.fleet.All() {
		at := slices.Index(in.Orphans, b.Attempt)
		if at >= 0 && (b.Instance == 0 || b.Instance == in.ID) {
			in.Orphans = slices.Delete(slices.Clone(in.Orphans), at, at+1)
			in.Forged = slices.DeleteFunc(slices.Clone(in.Forged), func(id drover.AttemptID) bool { return id == b.Attempt })
			e.forget(in, b.Attempt, b.Proof)
			e.needsPlacing = true
			e.touch(in)
		}
	}
}

func (e *Engine) collect(a *Attempt) {
	a.Effect = e.effect(Effect{Collect: &Collect{Attempt: a.ID, Instance: a.Instance}})
}

func (e *Engine) collected(b Collected) {
	a := e.live(b.Attempt)
	if a == nil || !answers(b.Effect, a.Effect) {
		return
	}
	a.Effect = 0
	switch {
	case b.Err == nil:
		e.judge(a)
	case b.Err.Kind == drover.KindInvalid && a.Exit.Cause != "": // the cause of its end matters more
		e.judge(a)
	case b.Err.Kind == drover.KindInvalid:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonOutputs, "%s", b.Err.Message))
	default:
		a.Fails++
		a.Retry = e.s.Now.Add(backoff(a.Fails, time.Second, time.Minute))
		e.note(Note{Level: Warn, Text: fmt.Sprintf("storing the output of attempt %v: %s", a.ID, b.Err.Message), Attempt: &a.ID, Reason: failure(b.Err)})
		if why := e.abandoned(a); why != nil && a.Fails >= abandonedTries {
			e.end(a, drover.AttemptCancelled, *why)
			return
		}
		e.touch(e.fleet.Member(a.Instance))
	}
}

// abandonedTries is how often storing the output of a cancelled attempt is tried: a full disk must not keep it, and its
// instance, forever.
const abandonedTries = 3

// abandoned returns why an attempt's result is no longer wanted; nil if it is.
func (e *Engine) abandoned(a *Attempt) *Verdict {
	if a.Stop != nil {
		return a.Stop
	}
	return e.job(a.ID.Job.Number).Cancel
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
