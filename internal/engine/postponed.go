package engine

import (
	"fmt"
	"slices"

	"drover"
)

// An element that waits but may not start yet is postponed, and in no group: its gang has live attempts, its retry is
// not due, or max_running of its array run.

// postpone updates what is postponed after an element has started, ended or been queued. The caller regroups the job.
func (e *Engine) postpone(j *Job, index int) {
	if !j.Postpones() {
		return
	}
	siblings := 0
	if j.Gang > 0 {
		siblings = len(e.gangLive(j, index))
	}
	j.Postpone(index, siblings, e.s.Now)
}

// postponeFrom computes what is postponed of a job when it is added; live attempts of gangs were handled before.
func (e *Engine) postponeFrom(j *Job) {
	for _, el := range j.Tried {
		if el.Until > e.s.Now && j.Queued.Has(el.Index) {
			e.queue.TryAt(j, el)
			e.postpone(j, el.Index)
		}
	}
	j.HoldBack(e.s.Now)
}

// postponed calls postpone after an attempt has started or ended, and regroups the job if needed.
func (e *Engine) postponed(j *Job, index int) {
	if !j.Postpones() {
		return
	}
	before := slices.Clone(j.Postponed)
	if e.postpone(j, index); !slices.Equal(j.Postponed, before) && e.job(j.Number) == j {
		e.regroup(j)
	}
}

// resume lets elements whose retry is due wait for a place.
func (e *Engine) resume() {
	for j, index := e.queue.Due(e.s.Now); j != nil; j, index = e.queue.Due(e.s.Now) {
		e.postponed(j, index)
	}
}

// whyPostponed explains why a job or element is postponed, each cause once.
func (e *Engine) whyPostponed(j *Job, id drover.JobID) (why []Verdict) {
	postponed := j.Postponed
	if id.Index >= 0 || !j.Array.Set {
		if postponed = nil; j.Postponed.Has(id.Index) {
			postponed = Ranges{{First: id.Index, Last: id.Index}}
		}
	}
	if len(postponed) == 0 {
		return nil
	}
	delayed := Ranges{}
	until := drover.Time(0)
	for _, el := range j.Tried {
		if el.Until > e.s.Now && postponed.Has(el.Index) {
			delayed.Add(el.Index)
			until = sooner(until, el.Until)
		}
	}
	if n := delayed.Count(); n > 0 {
		text := fmt.Sprintf("failed; waiting for retry %d of %d", j.Element(delayed[0].First).Retried, j.Retry.Times)
		why = append(why, Verdict{Cause: drover.ReasonRetry, Text: text, Since: j.Since, Until: until})
	}
	rest := postponed.Without(delayed)
	switch {
	case len(rest) == 0:
	case j.Gang > 0 && len(delayed) > 0: // they start together
	case j.Gang > 0:
		r := Verdict{Cause: drover.ReasonGang, Text: "will restart with its gang once all jobs of the gang may be retried", Since: j.Since}
		if live := e.gangLive(j, rest[0].First); len(live) > 0 {
			r.Text = fmt.Sprintf("will restart with its gang; waiting for %s of the gang to end", countOf(len(live), "job"))
		} else {
			r.Until = j.Due(j.GangOf(rest[0].First))
		}
		why = append(why, r)
	default:
		text := fmt.Sprintf("the array has reached its max_running of %d: other elements are running or will start first", j.MaxRunning)
		why = append(why, Verdict{Cause: drover.ReasonMaxRunning, Text: text, Since: j.Since})
	}
	return why
}
