package engine

import (
	"cmp"
	"fmt"

	"drover"
	"drover/internal/engine/verdict"
)

// prioritize changes a job's priority. With 0 its attempts are stopped, to be retried once it is raised (behaviour
// D13).
func (e *Engine) prioritize(b PriorityAsked) {
	j := e.job(b.Job)
	err := e.tooLate(j, b.Job, b.Again)
	if e.reply(b.Wish, err); err != nil || j.Priority == b.Priority {
		return
	}
	e.ungroup(j)
	e.countMixOf(j, -1)
	if j.Priority == 0 || b.Priority == 0 {
		j.Since = e.s.Now
	}
	j.Priority = b.Priority
	e.countMixOf(j, 1)
	e.regroup(j)
	for _, a := range e.attemptsOf(j) {
		e.fleet.Changed(e.fleet.Member(a.Instance)) // the backfill may hold its room for others now
	}
	if j.Priority == 0 {
		for _, a := range e.attemptsOf(j) {
			e.stopAttempt(a, e.verdict(drover.ReasonPreempted, "%s", cmp.Or(b.Reason.Text, "its priority was set to 0")))
		}
	}
	e.pending.Plan = true
	e.writeJob(j)
	e.note(Note{Level: Info, Text: fmt.Sprintf("job %s: %s", j.Name, cmp.Or(b.Reason.Text, fmt.Sprintf("its priority was set to %d", j.Priority))), Job: &drover.JobID{Number: b.Job, Index: -1}})
}

// tooLate returns why a job's priority can no longer be changed, if so. life is the retry of the job that is meant.
func (e *Engine) tooLate(j *Job, number, life int64) *drover.Error {
	switch {
	case j == nil:
		return drover.Errorf(drover.KindConflict, "job %d has ended", number)
	case j.Again > life:
		return doneAgain(number)
	case j.Cancel != nil:
		return drover.Errorf(drover.KindConflict, "job %d is being cancelled", number)
	}
	return nil
}

// doneAgain refuses a request for a job that has ended and been retried since.
func doneAgain(number int64) *drover.Error {
	return drover.Errorf(drover.KindConflict, "job %d has ended and has been retried in the meantime", number).WithHint("repeat the command to apply it to the retry too")
}

// requeues reports whether an attempt stopped for this reason is requeued.
func requeues(why Verdict) bool {
	if why.Cause == verdict.Draining {
		return true
	}
	return why.Cause == verdict.Preempted || why.Cause == verdict.Gang
}

// preempted reports whether an attempt ended because its job's priority was set to 0, its gang restarts, or the
// controller stops everything: it is requeued, not final. If the command ended by itself before, its result is final.
func preempted(j *Job, a *Attempt) bool {
	if a.Stop == nil || !requeues(*a.Stop) || j.Cancel != nil {
		return false
	}
	return a.State == drover.AttemptCancelled || a.State == drover.AttemptLost || a.State == drover.AttemptInterrupted
}

// requeuePreempted requeues an element as if the attempt had not happened.
func (e *Engine) requeuePreempted(j *Job, el Element, why Verdict) {
	e.requeue(j, el, why)
	id := drover.JobID{Number: j.Number, Index: el.Index}
	e.note(Note{Level: Info, Text: fmt.Sprintf("job %s is queued again: %s", e.jobName(j, el.Index), why.Text), Job: &id, Reason: new(why.Reason())})
}

// stopPermanently makes the end of an attempt final that was to be requeued.
func (e *Engine) stopPermanently(a *Attempt, why Verdict) {
	if requeues(why) {
		return
	}
	why.Since = a.Stop.Since
	a.Stop = &why
	e.writeAttempt(a, why)
}
