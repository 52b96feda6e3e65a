package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
)

// The elements of a gang, which are consecutive in an array, start together or not at all. One decision starts a gang:
// it has a place for each element that is not final. If an element is to be retried, the others that still run are
// stopped and requeued like those of a job whose priority became 0: that does not count as an attempt. Until the last
// of them has ended, the gang's waiting elements are postponed.

// gangLive returns the live attempts of an element's gang.
func (e *Engine) gangLive(j *Job, index int) (live []*Attempt) {
	first, last := j.GangOf(index)
	for i := first; i <= last; i++ {
		if a := e.fleet.Attempt(drover.JobID{Number: j.Number, Index: i}); a != nil {
			live = append(live, a)
		}
	}
	return live
}

// markIncomplete postpones the waiting elements of gangs with live attempts, before the engine starts from a State.
func (s State) markIncomplete() {
	there := make(map[int64]bool, len(s.Instances))
	for _, in := range s.Instances {
		there[in.ID] = true
	}
	for _, a := range s.Attempts {
		at, ok := slices.BinarySearchFunc(s.Jobs, a.ID.Job.Number, func(j Job, number int64) int { return cmp.Compare(j.Number, number) })
		if !ok || s.Jobs[at].Gang == 0 || !there[a.Instance] {
			continue
		}
		j := &s.Jobs[at]
		for _, i := range j.Gangmates(a.ID.Job.Index) {
			j.Postponed.Add(i)
		}
	}
}

// stopSiblings stops the running attempts of the gang of an element that is to be retried. While the records may be
// stale, it is not known whether they started together.
func (e *Engine) stopSiblings(j *Job, index int, why Verdict) {
	if j.Gang == 0 || !e.recordsCurrent() {
		return
	}
	for _, a := range e.gangLive(j, index) {
		e.stopAttempt(a, e.verdict(drover.ReasonGang, "restarts together with %s: %s", e.jobName(j, index), why.Text))
	}
}

// whyGang says how many elements of the group's next gang have places.
func (e *Engine) whyGang(g *group) []Verdict {
	if g.Key.Gang == 0 || g.Queued == 0 {
		return nil
	}
	_, members := g.NextGang()
	text := fmt.Sprintf("%d jobs start together or not at all; places on ready instances: %d, on booting ones: %d", len(members), g.Standby, min(g.reserved, len(members)-g.Standby))
	return []Verdict{{Cause: drover.ReasonGang, Text: text, Since: g.Reason.Since}}
}
