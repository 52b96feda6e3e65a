package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
)

// The elements of a gang begin together or not at all: so many of an array, one after another. A gang is begun by one decision, which has a place for
// each of its elements that is not final. If one of them is to be tried again, those that still run are ended, and put off like those of a job whose
// priority became 0: nothing is counted against them. Until the last of them has ended, what waits of the gang is postponed.

// gangLive is the live attempts of an element's gang.
func (e *Engine) gangLive(j *Job, index int) (live []*Attempt) {
	first, last := j.GangOf(index)
	for i := first; i <= last; i++ {
		if a := e.fleet.Attempt(drover.JobID{Number: j.Number, Index: i}); a != nil {
			live = append(live, a)
		}
	}
	return live
}

// tear notes what waits of gangs of which others are live, before the engine begins with a State.
func (s State) tear() {
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

// stopSiblings ends what still runs of the gang of an element that is to be tried again. While the records may be older, nobody knows whether it began with it.
func (e *Engine) stopSiblings(j *Job, index int, why Verdict) {
	if j.Gang == 0 || !e.proved() {
		return
	}
	for _, a := range e.gangLive(j, index) {
		if a.Stop == nil {
			e.stopAttempt(a, e.verdict(drover.ReasonGang, "restarts together with %s: %s", e.jobName(j, index), why.Text))
		}
	}
}

// whyGang says how many of the group's next gang have places.
func (e *Engine) whyGang(g *group) []Verdict {
	if g.Key.Gang == 0 || g.Queued == 0 {
		return nil
	}
	_, members := g.NextGang()
	text := fmt.Sprintf("%d jobs start together or not at all; places on ready instances: %d, on booting ones: %d", len(members), g.Standby, min(g.bound, len(members)-g.Standby))
	return []Verdict{{Cause: drover.ReasonGang, Text: text, Since: g.Reason.Since}}
}
