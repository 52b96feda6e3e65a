package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/verdict"
)

// submit adds new jobs in the order of their numbers, and then finished jobs to be retried, in the order of the
// requests.
func (e *Engine) submit(jobs []Job) {
	var taken []int64
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b Job) int { return cmp.Or(cmp.Compare(a.Again, b.Again), cmp.Compare(a.Number, b.Number)) })
	for _, j := range jobs {
		switch {
		case j.Again == 0 && j.Number > e.s.LastJob:
			e.s.LastJob = j.Number
			e.accept(j)
		case j.Again > e.s.LastAgain && e.job(j.Number) == nil:
			e.s.LastAgain = j.Again
			j.Cancel, j.Overdue, j.Blocked, j.Grown = nil, nil, 0, nil
			e.accept(j)
		default:
			continue
		}
		taken = append(taken, j.Number)
	}
	for _, n := range taken {
		e.checkDependencies(e.job(n))
	}
	e.applySuccesses()
}

// checkDependencies checks whether a new job depends on one that has ended since it was submitted. The engine does not
// remember how that ended: if it matters, the job is cancelled.
func (e *Engine) checkDependencies(j *Job) {
	if j == nil { // cancelled together with an earlier one that it depends on
		return
	}
	there := func(n int64) bool { return e.job(n) != nil }
	if at := slices.IndexFunc(j.After, func(n int64) bool { return !there(n) }); at >= 0 {
		e.cancelJob(j, e.verdict(drover.ReasonDependency, "job %d, which this job depends on, ended while this job was being submitted; retry this job", j.After[at]))
		return
	}
	if left := slices.DeleteFunc(slices.Clone(j.AfterAny), func(n int64) bool { return !there(n) }); len(left) < len(j.AfterAny) {
		j.AfterAny = left
		e.writeJob(j)
		e.regroup(j)
	}
}

func (e *Engine) accept(j Job) {
	j = j.Clone()
	j.Since = e.s.Now
	e.addJob(&j)
	e.forecast.WorkCame(j.Shape, e.userOfGaps(&j), j.Queued.Count()-e.awaitsNow(&j), e.s.Now)
	e.writeJob(&j)
}

// writeJob records a job without its elements, which have their own rows: there may be very many.
func (e *Engine) writeJob(j *Job) {
	c := *j
	c.Tried, c.Postponed = nil, nil
	c = c.Clone()
	e.write(Write{Job: &c})
}

// cancel ends a job, one element, or everything: waiting elements immediately, running ones as soon as they can be
// stopped.
func (e *Engine) cancel(b CancelAsked) {
	why := verdict.Of(b.Reason)
	why.Since = e.s.Now
	j := e.job(b.Job.Number)
	if !b.All && j != nil && j.Again > b.Again {
		e.reply(b.Wish, doneAgain(b.Job.Number))
		return
	}
	e.reply(b.Wish, nil)
	switch {
	case b.All:
		for _, j := range slices.Collect(e.queue.All()) {
			e.cancelJob(j, why)
		}
	case j == nil: // it has ended already
	case b.Job.Index < 0:
		e.cancelJob(j, why)
	case j.Unqueue(b.Job.Index):
		e.regroup(j)
		e.finish(j, ElementRow{Element: *j.Element(b.Job.Index), State: drover.JobCancelled, Reason: why.Reason()})
		e.postponed(j, b.Job.Index)
	default:
		e.stopAttempt(e.fleet.Attempt(b.Job), why)
	}
}

func (e *Engine) cancelJob(j *Job, why Verdict) {
	if j.Cancel != nil {
		return
	}
	j.Cancel = &why
	e.cancelWaiting(j, nil, why)
	for _, a := range e.attemptsOf(j) {
		e.stopAttempt(a, why)
	}
	e.writeJob(j)
	e.endIfDone(j)
}

// cancelWaiting ends a job's waiting elements except some postponed ones. The caller writes the job.
func (e *Engine) cancelWaiting(j *Job, except Ranges, why Verdict) {
	e.ungroup(j)
	waiting := j.Queued.Without(except)
	j.Queued, j.Grown, j.Postponed = except, nil, slices.Clone(except)
	// Elements with attempts have rows to end; the others are only counted, so that a large array is cancelled quickly.
	for _, el := range slices.Clone(j.Tried) {
		if waiting.Remove(el.Index) {
			e.finishElement(j, ElementRow{Element: el, State: drover.JobCancelled, Reason: why.Reason()})
		}
	}
	if n := waiting.Count(); n > 0 {
		j.Cancelled += n
		e.noteCancelled(j, n, why)
	}
}

// noteCancelled reports elements that ended without having started.
func (e *Engine) noteCancelled(j *Job, n int, why Verdict) {
	level := Warn
	if why.Cause == verdict.Cancelled {
		level = Info
	}
	text := fmt.Sprintf("job %s cancelled", j.Name)
	if j.Array.Set {
		text = fmt.Sprintf("%s of job %s cancelled", countOf(n, "element"), j.Name)
	}
	e.note(Note{Level: level, Text: text, Job: &drover.JobID{Number: j.Number, Index: -1}, Reason: new(why.Reason())})
}

// attemptsOf returns a job's live attempts by index.
func (e *Engine) attemptsOf(j *Job) (live []*Attempt) {
	for _, el := range j.Tried {
		if a := e.fleet.Attempt(drover.JobID{Number: j.Number, Index: el.Index}); a != nil {
			live = append(live, a)
		}
	}
	return live
}

// finish makes one element final, and its job with the last of them. The rest of its gang ends too unless it succeeded.
func (e *Engine) finish(j *Job, row ElementRow) {
	e.finishElement(j, row)
	if j.Gang > 0 && j.Cancel == nil && row.State != drover.JobSucceeded {
		e.endGang(j, row)
	}
	e.writeJob(j)
	e.endIfDone(j)
}

func (e *Engine) finishElement(j *Job, row ElementRow) {
	row.Job, row.Ended = j.Number, e.s.Now
	e.write(Write{Element: &row})
	j.Forget(row.Element.Index)
	level := Info
	switch row.State {
	case drover.JobSucceeded:
		j.Succeeded++
	case drover.JobFailed:
		j.Failed++
		level = Warn
	default:
		j.Cancelled++
	}
	id := drover.JobID{Number: j.Number, Index: row.Element.Index}
	e.note(Note{Level: level, Text: fmt.Sprintf("job %s %s", e.jobName(j, id.Index), row.State), Job: &id, Reason: &row.Reason})
}

// jobName returns a job's name for people: its name and, in an array, its index.
func (e *Engine) jobName(j *Job, index int) string {
	if index < 0 {
		return j.Name
	}
	return fmt.Sprintf("%s.%d", j.Name, index)
}

// endIfDone ends a job whose elements are all final, and releases or cancels the jobs that wait for it.
func (e *Engine) endIfDone(j *Job) {
	if j.Succeeded+j.Failed+j.Cancelled < j.Array.Size() {
		return
	}
	end := JobEnd{Number: j.Number, At: e.s.Now, Succeeded: j.Succeeded, Failed: j.Failed, Cancelled: j.Cancelled}
	why := j.WhyCancelled()
	switch {
	case j.Failed > 0:
		end.State = drover.JobFailed
		end.Reason = e.verdict(drover.ReasonExit, "%d of %d failed", j.Failed, j.Array.Size()).Reason()
		if j.Cancelled > 0 && why != nil {
			end.Reason.Text += fmt.Sprintf(", %d cancelled (%s)", j.Cancelled, why.Text)
		}
	case j.Cancelled > 0:
		end.State = drover.JobCancelled
		end.Reason = e.verdict(drover.ReasonCancelled, "%d of %d cancelled", j.Cancelled, j.Array.Size()).Reason()
		if why != nil {
			end.Reason = why.Reason()
		}
	default:
		end.State = drover.JobSucceeded
	}
	e.write(Write{Ended: &end})
	e.removeJob(j)
	e.release(j, end.State)
}

// release tells the jobs that wait for j how it ended.
func (e *Engine) release(j *Job, state drover.JobState) {
	for _, n := range e.queue.Followers(j.Number) {
		o := e.job(n)
		switch {
		case o == nil:
		case state != drover.JobSucceeded && slices.Contains(o.After, j.Number):
			e.cancelJob(o, e.verdict(drover.ReasonDependency, "job %s, on which it depends, was %s", j.Name, stateWord(state)))
		default:
			ended := func(n int64) bool { return n == j.Number }
			o.After, o.AfterAny = slices.DeleteFunc(o.After, ended), slices.DeleteFunc(o.AfterAny, ended)
			o.Since = e.s.Now
			e.writeJob(o)
			e.regroup(o)
		}
	}
}

func stateWord(s drover.JobState) string {
	if s == drover.JobFailed {
		return "not successful"
	}
	return string(s)
}

// refuseMisfits cancels jobs that no configured type can hold, once the types of all clouds are known (behaviour D10). A
// type may be missing only for a moment, since changing it means replacing it in some clouds: if this controller has
// seen it, the next answer decides.
func (e *Engine) refuseMisfits() {
	if !e.pending.FitCheck || !e.market.Complete() {
		return
	}
	e.pending.FitCheck = false
	all := e.market.Offerings()
	for _, g := range slices.Clone(e.groups) {
		if len(g.Jobs) == 0 || g.typesRevision == e.typesRevision {
			continue
		}
		g.typesRevision = e.typesRevision
		if miss := g.Key.Shape.AtAnyPrice().NearestMiss(all); miss != "" {
			g.typesRevision = 0
			if c := e.missedBy(g.Key.Shape); c != nil {
				if c.Fails == 0 { // otherwise the cloud is asked again anyway, when it allows
					c.NextOffer = min(c.NextOffer, e.s.Now.Add(offersAgain))
				}
				continue
			}
			for _, j := range slices.Clone(g.Jobs) {
				e.misfit(g, j, miss)
			}
		}
	}
}

// missedBy returns the cloud whose last answer, but not the one before, lacks an offering that fits a shape.
func (e *Engine) missedBy(s drover.Shape) *Cloud {
	s = s.AtAnyPrice()
	for _, c := range e.enabled() {
		if slices.ContainsFunc(c.Missing, s.Accepts) {
			return c
		}
	}
	return nil
}

// misfit ends a job's waiting elements in a group that no type can hold.
func (e *Engine) misfit(g *group, j *Job, miss string) {
	if grown := j.GrownIn(g.Key); grown != nil {
		e.dismiss(g, j, drover.JobFailed, e.verdict(drover.ReasonMemory, "ran out of memory; no configured type can run it with %s: %s", grown.Memory.Rounded(), miss))
		return
	}
	e.cancelUnstarted(j, e.verdict(drover.ReasonNoFit, "no configured type can run it: %s", miss))
}
