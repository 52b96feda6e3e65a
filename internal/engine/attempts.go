package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
)

// lastWord is how long after SIGKILL an attempt may take to end before its instance is held to be broken.
const lastWord = 30 * time.Second

// addAttempt takes in a live attempt of a State.
func (e *Engine) addAttempt(a *Attempt) {
	in := e.instance(a.Instance)
	if in == nil || e.job(a.ID.Job.Number) == nil {
		return
	}
	e.attempts[a.ID.Job] = a
	in.load = append(in.load, a)
	in.free = in.free.Minus(e.need(a), 1)
}

// need is what an attempt takes of its instance: everything while its command may run, afterwards only its disk.
func (e *Engine) need(a *Attempt) drover.Resources {
	need := e.job(a.ID.Job.Number).needs(a.ID.Job.Index)
	if a.State == drover.AttemptCollecting {
		return drover.Resources{Disk: need.Disk}
	}
	return need
}

// begin puts the group's next element on an instance that has room for it.
func (e *Engine) begin(g *group, in *instance) {
	j, index := e.take(g)
	el := j.element(index)
	el.Number++
	a := &Attempt{
		ID:       drover.AttemptID{Job: drover.JobID{Number: j.Number, Index: index}, Number: el.Number},
		Instance: in.ID,
		State:    drover.AttemptStarting,
		Started:  e.s.Now,
	}
	e.attempts[a.ID.Job] = a
	in.load = append(in.load, a)
	in.free = in.free.Minus(j.needs(index), 1)
	if in.State == drover.InstanceIdle {
		e.setState(in, drover.InstanceRunning)
	}
	e.writeJob(j)
	e.write(Write{Element: &ElementRow{Job: j.Number, Element: *el, State: drover.JobRunning, Started: e.s.Now}})
	e.writeAttempt(a, drover.Reason{})
	e.start(in, a)
}

// start asks the runner to run the attempt. The runner runs it once, however often it is asked.
func (e *Engine) start(in *instance, a *Attempt) {
	j := e.job(a.ID.Job.Number)
	a.Effect = e.effect(Effect{Start: &Start{
		Attempt: a.ID, Instance: in.ID, Type: in.Type.Name, Interrupted: j.element(a.ID.Job.Index).Interrupted,
		Limits: j.needs(a.ID.Job.Index), Timeout: j.Timeout, Grace: e.life().TermTimeout,
	}})
}

func (e *Engine) writeAttempt(a *Attempt, why drover.Reason) {
	row := AttemptRow{Attempt: *a, Reason: why}
	if a.Ended != 0 {
		row.Cost = e.share(a)
	}
	e.write(Write{Attempt: &row})
}

// share is what the attempt costs of its instance's price: by its part of the vCPUs, so that the shares of attempts that run side
// by side never add up to more than the whole.
func (e *Engine) share(a *Attempt) drover.Money {
	in, j := e.instance(a.Instance), e.job(a.ID.Job.Number)
	if in == nil || j == nil || in.Resources.CPU <= 0 {
		return 0
	}
	cpu := min(j.Shape.Need.CPU, in.Resources.CPU)
	return in.Price.For(a.Ended.Sub(a.Started)).Part(int64(cpu), int64(in.Resources.CPU))
}

// live finds the attempt by its full id; nil if it is not, or no longer, live.
func (e *Engine) live(id drover.AttemptID) *Attempt {
	if a := e.attempts[id.Job]; a != nil && a.ID == id {
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

// running notes the runner's word that an attempt has been started.
func (e *Engine) running(a *Attempt) {
	if a.State != drover.AttemptStarting {
		return
	}
	a.State = drover.AttemptRunning
	if a.Stop != nil {
		stop := *a.Stop
		stop.Since = e.s.Now // it is told only now
		a.Stop = &stop
		e.askStop(a)
	}
	e.writeAttempt(a, drover.Reason{})
	e.use(e.instance(a.Instance))
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
		// Whether it was started is for the runner to say; it is not to be started now. The next hello tells.
		e.effect(Effect{Disconnect: &Disconnect{Instance: a.Instance}})
		return
	}
	a.Fails++
	a.Retry = e.s.Now.Add(backoff(a.Fails, time.Second, time.Minute))
	e.touch(e.instance(a.Instance))
}

// refused ends an attempt that was never started.
func (e *Engine) refused(a *Attempt, err *drover.Error) {
	if a.Stop != nil {
		e.end(a, drover.AttemptCancelled, *a.Stop)
		return
	}
	e.end(a, drover.AttemptFailed, e.reason(drover.ReasonNoStart, "%s", err.Message))
}

// exited takes the runner's word that an attempt's command has ended. Its room is free at once; it is final when its output is stored.
func (e *Engine) exited(b Exited) {
	a, exit := e.live(b.Attempt), b.Exit
	switch {
	case a == nil || b.Instance != 0 && b.Instance != a.Instance:
		e.strangerEnded(b)
		return
	case a.State == drover.AttemptCollecting:
		return
	}
	in := e.instance(a.Instance)
	in.free = in.free.Plus(e.need(a), 1)
	if began(exit) {
		e.use(in)
	}
	a.State, a.Exit, a.Ended = drover.AttemptCollecting, &exit, e.ended(a, exit)
	in.free = in.free.Minus(e.need(a), 1)
	a.Effect, a.Fails, a.Retry = 0, 0, 0
	e.writeAttempt(a, drover.Reason{})
	e.collect(a)
	e.freed()
}

// freed has what an attempt no longer takes given to others: its room, and the money that was committed for it.
func (e *Engine) freed() {
	e.replace = true
	if e.s.Settings.MaxCost > 0 {
		e.replan = true
	}
}

// ended is when an attempt's command ended, of which word may have come late: after the connection was broken, or no controller ran. The instance's
// clock is believed only for how long it took.
func (e *Engine) ended(a *Attempt, exit drover.Exit) drover.Time {
	if at := a.Started.Add(exit.Ended.Sub(exit.Started)); exit.Started != 0 && at > a.Started && at < e.s.Now.Add(-lateness) {
		return at
	}
	return e.s.Now
}

// strangerEnded takes note that an attempt which is not known has ended as it was told to.
func (e *Engine) strangerEnded(b Exited) {
	for _, in := range e.instances {
		at := slices.Index(in.Strangers, b.Attempt)
		if at >= 0 && (b.Instance == 0 || b.Instance == in.ID) {
			in.Strangers = slices.Delete(slices.Clone(in.Strangers), at, at+1)
			e.forget(in, b.Attempt)
			e.replace = true
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
	case b.Err.Kind == drover.KindInvalid && a.Exit.Cause != "": // why it ended matters more
		e.judge(a)
	case b.Err.Kind == drover.KindInvalid:
		e.end(a, drover.AttemptFailed, e.reason(drover.ReasonOutputs, "%s", b.Err.Message))
	default:
		a.Fails++
		a.Retry = e.s.Now.Add(backoff(a.Fails, time.Second, time.Minute))
		e.note(Note{Level: Warn, Text: fmt.Sprintf("storing the output of attempt %v: %s", a.ID, b.Err.Message), Attempt: &a.ID, Reason: failure(b.Err)})
		if why := e.abandoned(a); why != nil && a.Fails >= abandonedTries {
			e.end(a, drover.AttemptCancelled, *why)
			return
		}
		e.touch(e.instance(a.Instance))
	}
}

// abandonedTries is how often it is tried to store what nobody asks for any more, before that is given up: a full disk is not to keep a
// cancelled job, and its instance, for ever.
const abandonedTries = 3

// abandoned is why an attempt's result is no longer asked for; nil if it is.
func (e *Engine) abandoned(a *Attempt) *drover.Reason {
	if a.Stop != nil {
		return a.Stop
	}
	return e.job(a.ID.Job.Number).Cancel
}

// end makes an attempt final and decides what becomes of its job.
func (e *Engine) end(a *Attempt, state drover.AttemptState, why drover.Reason) {
	in, j := e.instance(a.Instance), e.job(a.ID.Job.Number)
	in.free = in.free.Plus(e.need(a), 1)
	a.State = state
	if a.Ended == 0 {
		a.Ended = e.s.Now
	}
	e.writeAttempt(a, why)
	e.unload(in, a)
	el := j.element(a.ID.Job.Index)
	el.Interrupted = 0
	if preempted(j, a) {
		e.putOff(j, *el, why)
		return
	}
	switch state {
	case drover.AttemptLost:
		el.Lost++
		e.afterLoss(j, *el, a, why)
	case drover.AttemptFailed:
		e.afterFailure(in, j, el, a, why)
	case drover.AttemptInterrupted:
		e.afterInterruption(j, el, a, why)
	case drover.AttemptSucceeded:
		e.finish(j, e.finalRow(*el, drover.JobSucceeded, a, why))
	default:
		e.finish(j, e.finalRow(*el, drover.JobCancelled, a, why))
	}
}

// unload takes a final attempt off its instance and lets the runner forget it.
func (e *Engine) unload(in *instance, a *Attempt) {
	delete(e.attempts, a.ID.Job)
	in.load = slices.DeleteFunc(in.load, func(o *Attempt) bool { return o == a })
	keep := a.State == drover.AttemptFailed && e.s.Settings.Keep > 0
	if in.Connected && !keep {
		e.forget(in, a.ID)
	}
	if len(in.load) == 0 && in.State == drover.InstanceRunning {
		e.setState(in, drover.InstanceIdle)
	}
	e.freed()
	e.touch(in)
}

func (e *Engine) forget(in *instance, id drover.AttemptID) {
	e.effect(Effect{Forget: &Forget{Attempt: id, Instance: in.ID}})
}

func (e *Engine) finalRow(el Element, state drover.JobState, a *Attempt, why drover.Reason) ElementRow {
	row := ElementRow{Element: el, State: state, Reason: why}
	if a.Exit != nil && began(*a.Exit) {
		row.Code = &a.Exit.Code
	}
	return row
}

// afterLoss starts a job again whose instance died under it, unless that happened too often (BEHAVIOUR D12).
func (e *Engine) afterLoss(j *Job, el Element, a *Attempt, why drover.Reason) {
	switch {
	case j.Cancel != nil || a.Stop != nil:
		row := e.finalRow(el, drover.JobCancelled, a, why)
		if a.Stop != nil {
			row.Reason = *a.Stop
		}
		e.finish(j, row)
	case el.Lost >= j.Attempts:
		row := e.finalRow(el, drover.JobFailed, a, e.reason(drover.ReasonAttempts, "lost %s: %s", times(el.Lost), why.Text))
		row.Code = nil
		e.finish(j, row)
	default:
		e.tryAgain(j, el, why)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times, at last", n)
}

func (e *Engine) afterFailure(in *instance, j *Job, el *Element, a *Attempt, why drover.Reason) {
	retry := a.Exit != nil && a.Exit.Cause == "" && j.Cancel == nil &&
		el.Retried < j.Retry.Times && slices.Contains(j.Retry.ExitCodes, a.Exit.Code)
	if retry {
		el.Retried++
		e.tryAgain(j, *el, why)
		return
	}
	if why.Code == drover.ReasonMemory {
		e.afterMemory(j, el, a, why)
		return
	}
	if keep := e.s.Settings.Keep; keep > 0 {
		in.KeepUntil = e.s.Now.Add(keep)
		e.writeInstance(in)
	}
	e.finish(j, e.finalRow(*el, drover.JobFailed, a, why))
}

// tryAgain puts an element back in the queue.
func (e *Engine) tryAgain(j *Job, el Element, why drover.Reason) {
	if j.Cancel != nil {
		e.finish(j, ElementRow{Element: el, State: drover.JobCancelled, Reason: *j.Cancel})
		return
	}
	e.requeue(j, el, why)
	id := drover.JobID{Number: j.Number, Index: el.Index}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("job %s will be tried again: %s", e.jobName(j, el.Index), why.Text), Job: &id, Reason: &why})
}

// requeue has an element wait for another attempt, and writes that down.
func (e *Engine) requeue(j *Job, el Element, why drover.Reason) {
	e.enqueue(j, el.Index)
	e.write(Write{Element: &ElementRow{Job: j.Number, Element: el, State: drover.JobQueued, Reason: why}})
	e.writeJob(j)
}

// stopAttempt has a live attempt ended: SIGTERM, and SIGKILL after the grace.
func (e *Engine) stopAttempt(a *Attempt, why drover.Reason) {
	switch {
	case a == nil:
		return
	case a.Stop != nil && a.Stop.Code == drover.ReasonPreempted:
		e.stopForGood(a, why)
		return
	case a.Stop != nil || a.State == drover.AttemptCollecting && why.Code == drover.ReasonPreempted:
		return
	}
	why.Since = e.s.Now
	a.Stop = &why
	e.writeAttempt(a, why)
	if a.State != drover.AttemptCollecting { // else it is only not to be tried again
		e.askStop(a)
	}
	e.replace = true // it is not expected back
	e.touch(e.instance(a.Instance))
}

func (e *Engine) askStop(a *Attempt) {
	if e.instance(a.Instance).Connected {
		e.effect(Effect{Stop: &Stop{Attempt: a.ID, Instance: a.Instance, Grace: e.life().TermTimeout}})
	}
}

// checkAttempts repeats what failed and finds attempts that nothing can end.
func (e *Engine) checkAttempts(in *instance) {
	for _, a := range slices.Clone(in.load) {
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
	if in.Connected && !in.held() {
		e.stuck(in)
	}
}

// unstoppableAt is when an attempt that was told to end is held to be beyond that. Time in which Drover was not looking does not count.
func (e *Engine) unstoppableAt(a *Attempt) drover.Time {
	return max(a.Stop.Since, e.s.Looking).Add(e.life().TermTimeout + lastWord)
}

// nextAttemptCheck is the earliest time at which checkAttempts has something to do, 0 for none.
func (e *Engine) nextAttemptCheck(in *instance) (at drover.Time) {
	for _, a := range in.load {
		if a.Effect == 0 {
			at = sooner(at, a.Retry)
		}
		if a.Stop != nil && a.State == drover.AttemptRunning && !in.held() {
			at = sooner(at, later(e.unstoppableAt(a), e.s.Now))
		}
	}
	return at
}

// sooner is the earlier of two times, of which 0 means never.
func sooner(a, b drover.Time) drover.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
