package engine

import (
	"cmp"
	"fmt"

	"drover"
	"drover/internal/engine/verdict"
)

// prioritize moves a job to the group of another priority. With 0 its attempts are ended, to be tried again once it is raised (BEHAVIOUR
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
		e.fleet.Changed(e.fleet.Member(a.Instance)) // whose room is kept for whom may have changed
	}
	if j.Priority == 0 {
		for _, a := range e.attemptsOf(j) {
			e.stopAttempt(a, e.verdict(drover.ReasonPreempted, "%s", cmp.Or(b.Reason.Text, "its priority was set to 0")))
		}
	}
	e.needsPlan = true
	e.writeJob(j)
	e.note(Note{Level: Info, Text: fmt.Sprintf("job %s: %s", j.Name, cmp.Or(b.Reason.Text, fmt.Sprintf("its priority was set to %d", j.Priority))), Job: &drover.JobID{Number: b.Job, Index: -1}})
}

// tooLate says why the priority of a job in one of its lives cannot be changed any more, if so.
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

// doneAgain refuses what was wished for a job that has ended, and is done again since.
func doneAgain(number int64) *drover.Error {
	return drover.Errorf(drover.KindConflict, "job %d has ended and been retried meanwhile", number).WithHint("if you mean the retry too, repeat the command")
}

// putsOff reports whether what is told to end for the reason is to begin again.
func putsOff(why Verdict) bool {
	if why.Cause == verdict.Draining {
		return true
	}
	return why.Cause == verdict.Preempted || why.Cause == verdict.Gang
}

// preempted reports whether an attempt that has ended did so because its job's priority was set to 0, its gang begins again, or the controller stops everything: it is put off, not final. What came
// to its own end before is as final as ever.
func preempted(j *Job, a *Attempt) bool {
	if a.Stop == nil || !putsOff(*a.Stop) || j.Cancel != nil {
		return false
	}
	switch a.State {
	case drover.AttemptCancelled, drover.AttemptLost, drover.AttemptInterrupted:
		return true
	case drover.AttemptFailed: // its output could not be stored, which matters only if it is whole
		return a.Exit != nil && a.Exit.Code != 0
	}
	return false
}

// putOff puts an element back in the queue as if the attempt had not been.
func (e *Engine) putOff(j *Job, el Element, why Verdict) {
	e.requeue(j, el, why)
	id := drover.JobID{Number: j.Number, Index: el.Index}
	e.note(Note{Level: Info, Text: fmt.Sprintf("job %s is queued again: %s", e.jobName(j, el.Index), why.Text), Job: &id, Reason: new(why.Reason())})
}

// stopForGood makes the end of an attempt that was only to be put off final.
func (e *Engine) stopPermanently(a *Attempt, why Verdict) {
	if putsOff(why) {
		return
	}
	why.Since = a.Stop.Since
	a.Stop = &why
	e.writeAttempt(a, why)
}
