package engine

import (
	"fmt"
	"strconv"
	"strings"

	"drover"
)

// maxKinds is how many kinds of waiting a Status distinguishes, including held jobs.
const maxKinds = 50

const (
	bootingText  = "waiting for instances to boot"
	endingText   = "a running job will probably end before a new instance could boot"
	answerText   = "an instance with room for some of these jobs has not answered since the controller started, but probably will soon"
	heldText     = "waiting at priority 0; raise it with drover priority"
	planningText = "Drover is choosing instances; this takes a few seconds"
	drainingText = "the controller is shutting down; the next one will start waiting jobs"
	closingText  = "the fleet is shutting down: no more instances are rented, and idle ones are destroyed"
)

// whyEnding explains that a group waits for room that is paid for anyway.
func (e *Engine) whyEnding(g *group) Verdict {
	if g.Key.MaxWait == 0 {
		return e.verdict(drover.ReasonEnding, endingText)
	}
	return e.verdict(drover.ReasonEnding, "a running job will probably end soon enough: max_wait lets this job wait up to %v longer than an instance takes to boot", g.Key.MaxWait)
}

// whyHeld explains why a job's elements may not start at all, if so.
func (e *Engine) whyHeld(j *Job) (Verdict, bool) {
	switch {
	case !j.Held():
		return Verdict{}, false
	case !j.Follows():
		return Verdict{Cause: drover.ReasonHeld, Text: heldText, Since: j.Since}, true
	}
	var waits []string
	if len(j.After) > 0 {
		waits = append(waits, e.afterWords(j.After)+" to succeed")
	}
	if len(j.AfterAny) > 0 {
		waits = append(waits, e.afterWords(j.AfterAny)+" to end")
	}
	return Verdict{Cause: drover.ReasonDependency, Text: "waiting for " + strings.Join(waits, ", and for "), Since: j.Since}, true
}

// maxAfter is how many jobs a sentence names.
const maxAfter = 5

// afterWords names jobs that another depends on.
func (e *Engine) afterWords(jobs []int64) string {
	var names []string
	for _, n := range jobs[:min(len(jobs), maxAfter)] {
		name := strconv.FormatInt(n, 10)
		if o := e.job(n); o != nil && o.Name != "" {
			name += " (" + o.Name + ")"
		}
		names = append(names, name)
	}
	if len(jobs) == 1 {
		return "job " + names[0]
	}
	if more := len(jobs) - maxAfter; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "jobs " + strings.Join(names, ", ")
}

// waiting summarizes waiting elements by reason, in order of service, and counts them.
func (e *Engine) waiting() (list []drover.Waiting, queued int) {
	t := tally{now: e.s.Now}
	booting := Verdict{Cause: drover.ReasonBooting, Text: bootingText, Since: e.firstReserved()}
	for _, g := range e.groups {
		t.add(g.booting(), booting)
		t.add(g.Queued-g.booting(), g.Reason)
	}
	e.sumPostponed(&t)
	after, zero := e.held()
	t.append(after)
	t.append(zero)
	t.append(others(t.others))
	return t.list, t.queued
}

// firstReserved returns when the first instance with reservations was requested.
func (e *Engine) firstReserved() (first drover.Time) {
	for _, in := range e.fleet.All() {
		if len(in.Reservations) > 0 {
			first = sooner(first, in.Asked)
		}
	}
	return first
}

// held summarizes jobs that may not start at all: with dependencies, and with priority 0.
func (e *Engine) held() (after, zero drover.Waiting) {
	after.Reason = drover.Reason{Code: drover.ReasonDependency, Text: "waiting for other jobs"}
	zero.Reason = drover.Reason{Code: drover.ReasonHeld, Text: heldText}
	for j := range e.queue.All() {
		if !j.Held() {
			continue
		}
		w := &zero
		if j.Follows() {
			w = &after
		}
		w.Count += j.Queued.Count()
		w.Reason.Since = sooner(w.Reason.Since, j.Since)
	}
	return after, zero
}

// postponedTexts are reasons that apply to any job.
var postponedTexts = map[Cause]string{
	drover.ReasonGang:       "will restart with the gang once all of its jobs have ended",
	drover.ReasonRetry:      "failed; will be retried after a delay",
	drover.ReasonMaxRunning: "the array has reached its max_running",
}

// sumPostponed adds postponed elements, by the first reason of each job.
func (e *Engine) sumPostponed(t *tally) {
	for j := range e.queue.All() {
		if len(j.Postponed) > 0 && !j.Held() {
			why := e.whyPostponed(j, drover.JobID{Number: j.Number, Index: -1})[0]
			why.Text = postponedTexts[why.Cause]
			t.add(j.Postponed.Count(), why)
		}
	}
}

// standing summarizes the instances that run nothing, by what they wait for, oldest first.
func (e *Engine) standing() []drover.Waiting {
	t := tally{now: e.s.Now}
	for _, in := range e.fleet.All() {
		if in.State != drover.InstanceRunning {
			why := e.whyInState(in)
			t.add(1, why[len(why)-1])
		}
	}
	t.append(others(t.others))
	return t.list
}

// others summarizes elements whose reasons did not fit the list.
func others(n int) drover.Waiting {
	return drover.Waiting{Count: n, Reason: drover.Reason{Code: drover.ReasonOther, Text: "various other reasons; see drover explain JOB"}}
}

// tally counts waiting elements by reason.
type tally struct {
	now    drover.Time
	list   []drover.Waiting
	at     map[kind]int // index into list
	others int          // of kinds beyond maxKinds
	queued int
}

// kind identifies equal reasons.
type kind struct {
	cause Cause
	text  string
}

// add counts n elements that wait for a reason, leaving room for the two reasons of held jobs.
func (t *tally) add(n int, why Verdict) {
	k := kind{why.Cause, why.Text}
	at, known := t.at[k]
	switch {
	case n == 0:
	case known:
		t.list[at].Count += n
		t.list[at].Reason.Since = sooner(t.list[at].Reason.Since, why.Since)
		t.queued += n
	case len(t.list) == maxKinds-2:
		t.others += n
	default:
		if t.at == nil {
			t.at = map[kind]int{}
		}
		t.at[k] = len(t.list)
		t.append(drover.Waiting{Count: n, Reason: why.At(t.now)})
	}
}

func (t *tally) append(w drover.Waiting) {
	if w.Count > 0 {
		t.list = append(t.list, w)
		t.queued += w.Count
	}
}

// front holds the jobs of a group whose first elements have reservations, and how many elements of other jobs come
// before each.
type front map[int64]int

// WhyWait returns the first reason why each of these jobs, arrays or elements waits; nil if it does not. It visits only
// these, and the ones with reservations, not all waiting work.
func (e *Engine) WhyWait(ids []drover.JobID) []*drover.Reason {
	why, fronts := make([]*drover.Reason, len(ids)), map[*group]front{}
	for i, id := range ids {
		if j := e.job(id.Number); j != nil && j.Waits(id) > 0 {
			why[i] = new(e.whyFirst(j, id, fronts).At(e.s.Now))
		}
	}
	return why
}

func (e *Engine) whyFirst(j *Job, id drover.JobID, fronts map[*group]front) Verdict {
	if why, held := e.whyHeld(j); held {
		return why
	}
	if j.Postponed.Has(id.Index) {
		return e.whyPostponed(j, id)[0]
	}
	key, rank := e.queue.KeyOf(j), 0
	if id.Index >= 0 || !j.Array.Set {
		key = key.With(j.MemoryOf(id.Index))
	}
	g := e.byKey[key]
	if id.Index < 0 && j.Array.Set && (g == nil || j.WaitingIn(g.Key) == 0) {
		if why := e.whyPostponed(j, id); len(why) > 0 {
			return why[0]
		}
	}
	if g == nil || g.Reason.Cause == "" {
		return Verdict{Cause: drover.ReasonPlanning, Text: planningText, Since: j.Since}
	}
	if id.Index >= 0 {
		rank = j.WaitingRanges(g.Key).Rank(id.Index)
	}
	if fronts[g] == nil {
		fronts[g] = frontOf(g)
	}
	if before, first := fronts[g][j.Number]; first && before+rank < g.booting() {
		return Verdict{Cause: drover.ReasonBooting, Text: bootingText}
	}
	return g.Reason
}

// frontOf computes a group's front.
func frontOf(g *group) front {
	f, before := front{}, 0
	for _, j := range g.Jobs {
		if before >= g.booting() {
			break
		}
		f[j.Number] = before
		before += j.WaitingIn(g.Key)
	}
	return f
}
