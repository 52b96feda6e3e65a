package engine

import (
	"cmp"
	"fmt"

	"drover"
)

// prioritize moves a job to the group of another priority. With 0 its attempts are ended, to be tried again once it is raised (BEHAVIOUR
// D13).
func (e *Engine) prioritize(b PriorityAsked) {
	e.grant(b.Wish)
	j := e.job(b.Job)
	if j == nil || j.Cancel != nil || j.Again > b.Again {
		e.note(Note{Level: Warn, Text: fmt.Sprintf("too late to change the priority of job %d", b.Job), Job: &drover.JobID{Number: b.Job, Index: -1}})
		return
	}
	if j.Priority == b.Priority {
		return
	}
	e.ungroup(j)
	if j.Priority == 0 || b.Priority == 0 {
		j.Since = e.s.Now
	}
	j.Priority = b.Priority
	e.regroup(j)
	for _, a := range e.attemptsOf(j) {
		e.enlist(e.instance(a.Instance)) // whose room is kept for whom may have changed
	}
	if j.Priority == 0 {
		for _, a := range e.attemptsOf(j) {
			e.stopAttempt(a, e.reason(drover.ReasonPreempted, "%s", cmp.Or(b.Reason.Text, "its priority was set to 0")))
		}
	}
	e.replan = true
	e.writeJob(j)
	e.note(Note{Level: Info, Text: fmt.Sprintf("job %s: %s", j.Name, cmp.Or(b.Reason.Text, fmt.Sprintf("its priority was set to %d", j.Priority))), Job: &drover.JobID{Number: b.Job, Index: -1}})
}

// putsOff reports whether what is told to end for the reason is to begin again.
func putsOff(why drover.Reason) bool {
	if why.Code == drover.ReasonDraining {
		return true
	}
	return why.Code == drover.ReasonPreempted || why.Code == drover.ReasonGang
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
func (e *Engine) putOff(j *Job, el Element, why drover.Reason) {
	e.requeue(j, el, why)
	id := drover.JobID{Number: j.Number, Index: el.Index}
	e.note(Note{Level: Info, Text: fmt.Sprintf("job %s waits again: %s", e.jobName(j, el.Index), why.Text), Job: &id, Reason: &why})
}

// stopForGood makes the end of an attempt that was only to be put off final.
func (e *Engine) stopForGood(a *Attempt, why drover.Reason) {
	if putsOff(why) {
		return
	}
	why.Since = a.Stop.Since
	a.Stop = &why
	e.writeAttempt(a, why)
}
