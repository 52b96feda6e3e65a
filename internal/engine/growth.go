package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
)

// An element that ran out of memory may be tried again with more. It is then of another shape than the rest of its job, so it waits in the
// group of that shape: a job is in as many groups as there are amounts of memory that its waiting elements have. Queued has them all, and
// Grown, for each amount but the job's own, those that have it.

// keyWith is the group of the job's elements that have so much memory; with 0, as much as the job says.
func (e *Engine) keyWith(j *Job, memory drover.Bytes) GroupKey {
	key := e.keyOf(j)
	if memory > 0 {
		key.Shape.Need.Memory = memory
	}
	return key
}

// grownIn is those of the job's elements that wait in a group because they have more memory; nil if it is the job's own group.
func (j *Job) grownIn(key GroupKey) *Grown {
	for i := range j.Grown {
		if j.Grown[i].Memory == key.Shape.Need.Memory {
			return &j.Grown[i]
		}
	}
	return nil
}

// waitingIn is how many of the job's elements wait in the group.
func (j *Job) waitingIn(key GroupKey) int {
	if len(j.Postponed) == 0 && len(j.Grown) == 0 {
		return j.Queued.Count()
	}
	return j.waitingRanges(key).Count()
}

// waitingRanges is those of the job's elements that wait in the group.
func (j *Job) waitingRanges(key GroupKey) Ranges {
	if grown := j.grownIn(key); grown != nil {
		return grown.Waiting.Without(j.Postponed)
	}
	own := j.Queued.Without(j.Postponed)
	for _, grown := range j.Grown {
		own = own.Without(grown.Waiting)
	}
	return own
}

// takeFrom takes the next of the job's elements that wait in the group out of its queue.
func (j *Job) takeFrom(g *group) int {
	if len(j.Postponed) == 0 && len(j.Grown) == 0 {
		return j.Queued.Pop()
	}
	index := j.waitingRanges(g.Key)[0].First
	if grown := j.grownIn(g.Key); grown != nil {
		grown.Waiting.Remove(index)
	}
	j.Queued.Remove(index)
	return index
}

// queue puts an element in the job's queue, with the memory that it has.
func (j *Job) queue(index int) {
	j.Queued.Add(index)
	memory := j.memory(index)
	if memory == 0 {
		return
	}
	at, known := slices.BinarySearchFunc(j.Grown, memory, func(g Grown, m drover.Bytes) int { return cmp.Compare(g.Memory, m) })
	if !known {
		j.Grown = slices.Insert(j.Grown, at, Grown{Memory: memory})
	}
	j.Grown[at].Waiting.Add(index)
}

// unqueue takes an element out of the job's queue and reports whether it was in.
func (j *Job) unqueue(index int) bool {
	for i := range j.Grown {
		j.Grown[i].Waiting.Remove(index)
	}
	j.Postponed.Remove(index)
	return j.Queued.Remove(index)
}

// needs is what an element of the job needs of an instance.
func (j *Job) needs(index int) drover.Resources {
	need := j.Shape.Need
	if memory := j.memory(index); memory > 0 {
		need.Memory = memory
	}
	return need
}

// memory is how much an element has because it ran out of less, 0 for what its job says.
func (j *Job) memory(index int) drover.Bytes {
	if at, tried := slices.BinarySearchFunc(j.Tried, index, byIndex); tried {
		return j.Tried[at].Memory
	}
	return 0
}

// grow gives an element that ran out of memory more of it, if that is wanted and some type has it; else it says why not.
func (e *Engine) grow(j *Job, el *Element) (whyNot string, grown bool) {
	by, has := drover.Bytes(e.s.Settings.GrowMemory), j.needs(el.Index).Memory
	more := has/1000*by + has%1000*by/1000
	if by <= 1000 || more <= has || j.Cancel != nil || j.Gang > 0 { // gangs are of one shape
		return "", false
	}
	shape := e.keyWith(j, more).Shape
	if miss := shape.NearestMiss(e.market.Offerings()); miss != "" && e.market.Complete() {
		return fmt.Sprintf("; no configured type can hold it with %s: %s", more.Rounded(), miss), false
	}
	el.Memory = more
	return "", true
}

// afterMemory has an element that ran out of memory tried again with more, as often as there are types that have it. That is no lost start.
func (e *Engine) afterMemory(j *Job, el *Element, a *Attempt, why drover.Reason) {
	whyNot, grown := e.grow(j, el)
	if grown {
		why.Text += fmt.Sprintf("; it has %s from now on", el.Memory.Rounded())
		e.tryAgain(j, *el, why)
		return
	}
	why.Text += whyNot
	e.finish(j, e.finalRow(*el, drover.JobFailed, a, why))
}

// dismiss ends what of a job waits in a group: all of the job, or of those that have more memory only these, in the state.
func (e *Engine) dismiss(g *group, j *Job, state drover.JobState, why drover.Reason) {
	grown := j.grownIn(g.Key)
	if grown == nil {
		e.cancelJob(j, why)
		return
	}
	e.ungroup(j)
	for waiting := slices.Clone(grown.Waiting); len(waiting) > 0; {
		index := waiting.Pop()
		j.unqueue(index)
		e.finishElement(j, ElementRow{Element: *j.element(index), State: state, Reason: why})
	}
	e.regroup(j)
	e.writeJob(j)
	e.endIfDone(j)
}
