package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
)

// What waits of a job but may not start yet is postponed, and in no group: others of its gang have yet to end, its next try is not due, or as many
// of its array run as may at once.

// maxRetryDelay is the longest time between two tries.
const maxRetryDelay = time.Hour

// delay is how long an element waits before its next try: each time twice as long as the time before.
func delay(r drover.Retry, tries int) time.Duration {
	d := r.Delay
	for range tries - 1 {
		d = min(2*d, max(r.Delay, maxRetryDelay))
	}
	return d
}

// postpones reports whether anything of the job may ever be postponed.
func (j *Job) postpones() bool { return j.Gang > 0 || j.Retry.Delay > 0 || j.MaxRunning > 0 }

// postpone looks again at what is postponed, after an element has begun, ended or come to wait. The caller puts the job in its groups anew.
func (e *Engine) postpone(j *Job, index int) {
	if !j.postpones() {
		return
	}
	first, last := index, index
	if j.Gang > 0 {
		first, last = j.gangOf(index)
	}
	if j.Queued.Any(first, last) || j.Postponed.Any(first, last) {
		wait := j.Gang > 0 && len(e.gangLive(j, index)) > 0 || j.due(first, last) > e.s.Now
		for i := first; i <= last; i++ {
			if wait && j.Queued.Has(i) {
				j.Postponed.Add(i)
			} else {
				j.Postponed.Remove(i)
			}
		}
	}
	e.holdBack(j)
}

// due is when the last of the elements that wait may be tried again, 0 if none of them has to wait for that.
func (j *Job) due(first, last int) (at drover.Time) {
	from, _ := slices.BinarySearchFunc(j.Tried, first, byIndex)
	for _, el := range j.Tried[from:] {
		if el.Index > last {
			break
		}
		if j.Queued.Has(el.Index) {
			at = max(at, el.Until)
		}
	}
	return at
}

// holdBack postpones those elements of an array beyond the first that may run beside those that do.
func (e *Engine) holdBack(j *Job) {
	if j.MaxRunning == 0 || j.Gang > 0 {
		return
	}
	due := j.Queued.Without(j.delayed(e.s.Now))
	j.Postponed = j.Queued.Without(due.Lowest(j.MaxRunning - j.live()))
}

// delayed is the elements whose next try is not due.
func (j *Job) delayed(now drover.Time) (all Ranges) {
	for _, el := range j.Tried {
		if el.Until > now && j.Queued.Has(el.Index) {
			all.Add(el.Index)
		}
	}
	return all
}

// live is how many elements have a live attempt.
func (j *Job) live() int {
	return j.Array.Size() - j.Queued.Count() - j.Succeeded - j.Failed - j.Cancelled
}

// postponeFrom looks at all of a job as the engine meets it; what follows from live attempts of gangs is known before.
func (e *Engine) postponeFrom(j *Job) {
	for _, el := range j.Tried {
		if el.Until > e.s.Now && j.Queued.Has(el.Index) {
			e.tryAt(j, el)
			e.postpone(j, el.Index)
		}
	}
	e.holdBack(j)
}

// postponed is postpone after an attempt has begun or ended.
func (e *Engine) postponed(j *Job, index int) {
	if !j.postpones() {
		return
	}
	before := slices.Clone(j.Postponed)
	if e.postpone(j, index); !slices.Equal(j.Postponed, before) && e.job(j.Number) == j {
		e.regroup(j)
	}
}

// try is when an element may be tried again.
type try struct {
	at    drover.Time
	job   int64
	index int
}

// tryAt has an element that waits be tried again at a time.
func (e *Engine) tryAt(j *Job, el Element) {
	n := try{el.Until, j.Number, el.Index}
	at, _ := slices.BinarySearchFunc(e.tries, n, func(a, b try) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job), cmp.Compare(a.index, b.index))
	})
	e.tries = slices.Insert(e.tries, at, n)
}

// nextTry is the next element that is to be tried again, if it still waits for that.
func (e *Engine) nextTry() (n try, j *Job) {
	for len(e.tries) > 0 {
		n = e.tries[0]
		if j = e.job(n.job); j != nil && j.Queued.Has(n.index) && j.due(n.index, n.index) == n.at {
			return n, j
		}
		e.tries = e.tries[1:]
	}
	return try{}, nil
}

// resume lets those wait for a place whose next try is due.
func (e *Engine) resume() {
	for n, j := e.nextTry(); j != nil && n.at <= e.s.Now; n, j = e.nextTry() {
		e.tries = e.tries[1:]
		e.postponed(j, n.index)
	}
}

// whyPostponed says why what is named of a job is postponed, each cause once.
func (e *Engine) whyPostponed(j *Job, id drover.JobID) (why []drover.Reason) {
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
		text := fmt.Sprintf("failed and is tried again, for the %s time of at most %d", ordinal(j.element(delayed[0].First).Retried), j.Retry.Times)
		why = append(why, drover.Reason{Code: drover.ReasonRetry, Text: text, Since: j.Since, Until: until})
	}
	rest := postponed.Without(delayed)
	switch {
	case len(rest) == 0:
	case j.Gang > 0 && len(delayed) > 0: // they begin together
	case j.Gang > 0:
		r := drover.Reason{Code: drover.ReasonGang, Text: "begins again together with others of its gang, once they may be tried again", Since: j.Since}
		if live := e.gangLive(j, rest[0].First); len(live) > 0 {
			r.Text = fmt.Sprintf("begins again together with others of its gang: %d of them have yet to end", len(live))
		} else {
			r.Until = j.due(j.gangOf(rest[0].First))
		}
		why = append(why, r)
	default:
		text := fmt.Sprintf("%d of its array run or are about to, as many as max_running lets run at once", j.MaxRunning)
		why = append(why, drover.Reason{Code: drover.ReasonMaxRunning, Text: text, Since: j.Since})
	}
	return why
}

// ordinal is 1 as "first", 2 as "second" and so on.
func ordinal(n int) string {
	words := []string{"first", "second", "third"}
	if n >= 1 && n <= len(words) {
		return words[n-1]
	}
	return fmt.Sprintf("%dth", n)
}
