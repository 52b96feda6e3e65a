package engine

import (
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/queue"
	"drover/internal/engine/verdict"
)

// What happens to a job when one of its attempts has ended: it is final, or it is queued again.

// end makes an attempt final and decides what happens to its job.
func (e *Engine) end(a *Attempt, state drover.AttemptState, why Verdict) {
	in, j := e.fleet.Member(a.Instance), e.job(a.ID.Job.Number)
	e.vacate(in, a)
	if givenUp(a) { // and it was not started, or it would not be any more
		if a.Stop = nil; state == drover.AttemptCancelled {
			state = e.lossOf(a)
		}
	}
	a.State = state
	if a.Ended == 0 {
		a.Ended = e.s.Now
	}
	e.writeAttempt(a, why)
	e.settleAttempt(a)
	e.unload(in, a)
	defer e.postponed(j, a.ID.Job.Index)
	el := j.Element(a.ID.Job.Index)
	el.Interrupted = 0
	if preempted(j, a) {
		e.requeuePreempted(j, *el, why)
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

// unload removes a final attempt from its instance and lets the runner forget it.
func (e *Engine) unload(in *fleet.Member, a *Attempt) {
	e.countMix(in, a, -1)
	e.fleet.Unload(in, a)
	e.changed(in)
	keep := a.State == drover.AttemptFailed && e.s.Settings.Keep > 0
	if in.Connected && !keep {
		e.forget(in, a.ID, ProofValid)
	}
	if len(in.Load) == 0 && in.State == drover.InstanceRunning {
		e.setState(in, drover.InstanceIdle)
		j := e.job(a.ID.Job.Number)
		key := e.queue.KeyOf(j).With(j.MemoryOf(a.ID.Job.Index))
		if g := e.byKey[key]; g == nil || g.Queued == 0 {
			e.forecast.WorkEnded(key.Shape, e.userOfGaps(j), e.s.Now)
		}
		e.pending.Plan = e.pending.Plan || e.pending.GangReleased
	}
	e.freed()
	e.touch(in)
}

func (e *Engine) forget(in *fleet.Member, id drover.AttemptID, proof Proof) {
	e.effect(Effect{Forget: &Forget{Attempt: id, Instance: in.ID, Foreign: proof == ProofForeign}})
}

func (e *Engine) finalRow(el Element, state drover.JobState, a *Attempt, why Verdict) ElementRow {
	row := ElementRow{Element: el, State: state, Reason: why.Reason()}
	if a.Exit != nil && began(*a.Exit) {
		row.Code = &a.Exit.Code
	}
	return row
}

// afterLoss retries a job whose instance died, unless that happened too often (behaviour D12).
func (e *Engine) afterLoss(j *Job, el Element, a *Attempt, why Verdict) {
	switch {
	case j.Cancel != nil || a.Stop != nil:
		row := e.finalRow(el, drover.JobCancelled, a, why)
		if a.Stop != nil {
			row.Reason = a.Stop.Reason()
		}
		e.finish(j, row)
	case el.Lost >= j.Attempts:
		row := e.finalRow(el, drover.JobFailed, a, e.verdict(drover.ReasonAttempts, "lost %s: %s", times(el.Lost), why.Text))
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
	return fmt.Sprintf("%d times, most recently", n)
}

func (e *Engine) afterFailure(in *fleet.Member, j *Job, el *Element, a *Attempt, why Verdict) {
	retry := a.Exit != nil && a.Exit.Cause == "" && j.Cancel == nil && a.Stop == nil &&
		el.Retried < j.Retry.Times && j.Retry.Retries(a.Exit.Code)
	if retry {
		el.Retried++
		if j.Retry.Delay > 0 {
			el.Until = e.s.Now.Add(queue.RetryDelay(j.Retry, el.Retried))
			e.queue.TryAt(j, *el)
		}
		e.tryAgain(j, *el, why)
		return
	}
	if why.Cause == verdict.Memory {
		e.afterMemory(j, el, a, why)
		return
	}
	if keep := e.s.Settings.Keep; keep > 0 {
		in.KeepUntil = e.s.Now.Add(keep)
		e.writeInstance(in)
	}
	e.finish(j, e.finalRow(*el, drover.JobFailed, a, why))
}

// tryAgain requeues an element.
func (e *Engine) tryAgain(j *Job, el Element, why Verdict) {
	if j.Cancel != nil {
		e.finish(j, ElementRow{Element: el, State: drover.JobCancelled, Reason: j.Cancel.Reason()})
		return
	}
	e.requeue(j, el, why)
	id := drover.JobID{Number: j.Number, Index: el.Index}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("job %s will be retried: %s", e.jobName(j, el.Index), why.Text), Job: &id, Reason: new(why.Reason())})
}

// requeue lets an element wait for another attempt, and records it.
func (e *Engine) requeue(j *Job, el Element, why Verdict) {
	e.enqueue(j, el.Index)
	e.write(Write{Element: &ElementRow{Job: j.Number, Element: el, State: drover.JobQueued, Reason: why.Reason()}})
	e.writeJob(j)
	e.stopSiblings(j, el.Index, why)
}

// grow gives an element that ran out of memory more, if configured and a type has it; otherwise it says why not.
func (e *Engine) grow(j *Job, el *Element) (whyNot string, grown bool) {
	by, has := drover.Bytes(e.s.Settings.GrowMemory), j.Needs(el.Index).Memory
	more := has/1000*by + has%1000*by/1000
	if by <= 1000 || more <= has || j.Cancel != nil || j.Gang > 0 { // a gang has one shape
		return "", false
	}
	shape := e.queue.KeyOf(j).With(more).Shape
	if miss := shape.NearestMiss(e.market.Offerings()); miss != "" && e.market.Complete() && e.missedBy(shape) == nil {
		return fmt.Sprintf("; no configured type can run it with %s: %s", more.Rounded(), miss), false
	}
	el.Memory = more
	return "", true
}

// afterMemory retries an element that ran out of memory with more, as long as a type has it. That does not count as a
// lost attempt.
func (e *Engine) afterMemory(j *Job, el *Element, a *Attempt, why Verdict) {
	whyNot, grown := e.grow(j, el)
	if grown {
		why.Text += fmt.Sprintf("; it will run with %s from now on", el.Memory.Rounded())
		e.tryAgain(j, *el, why)
		return
	}
	why.Text += whyNot
	e.finish(j, e.finalRow(*el, drover.JobFailed, a, why))
}

// dismiss ends a job's waiting elements in a group, in the given state: the whole job, or only the elements with more
// memory.
func (e *Engine) dismiss(g *group, j *Job, state drover.JobState, why Verdict) {
	grown := j.GrownIn(g.Key)
	if grown == nil {
		e.cancelJob(j, why)
		return
	}
	e.ungroup(j)
	for _, run := range slices.Clone(grown.Waiting) {
		for i := run.First; i <= run.Last; i++ {
			j.Unqueue(i)
			e.finishElement(j, ElementRow{Element: *j.Element(i), State: state, Reason: why.Reason()})
		}
	}
	j.HoldBack(e.s.Now)
	e.regroup(j)
	e.writeJob(j)
	e.endIfDone(j)
}
