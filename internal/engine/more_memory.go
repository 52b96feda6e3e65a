package engine

import (
	"fmt"
	"slices"

	"drover"
)

// grow gives an element that ran out of memory more, if configured and a type has it; otherwise it says why not.
func (e *Engine) grow(j *Job, el *Element) (whyNot string, grown bool) {
	by, has := drover.Bytes(e.s.Settings.GrowMemory), j.Needs(el.Index).Memory
	more := has/1000*by + has%1000*by/1000
	if by <= 1000 || more <= has || j.Cancel != nil || j.Gang > 0 { // a gang has one shape
		return "", false
	}
	shape := e.queue.KeyOf(j).With(more).Shape
	if miss := shape.NearestMiss(e.market.Offerings()); miss != "" && e.market.Complete() {
		return fmt.Sprintf("; no configured type can run it with %s: %s", more.Rounded(), miss), false
	}
	el.Memory = more
	return "", true
}

// afterMemory retries an element that ran out of memory with more, as long as a type has it. That does not count as a
// lost attempt.
func (e *Engine) afterMemory(j *Job, el *Element, a *Attempt, why Verdict) {
	whyNot, grown := e.grow(j, el)
	if grown {
		why.Text += fmt.Sprintf("; it will run with %s from now on", el.Memory.Rounded())
		e.tryAgain(j, *el, why)
		return
	}
	why.Text += whyNot
	e.finish(j, e.finalRow(*el, drover.JobFailed, a, why))
}

// dismiss ends a job's waiting elements in a group, in the given state: the whole job, or only the elements with more
// memory.
func (e *Engine) dismiss(g *group, j *Job, state drover.JobState, why Verdict) {
	grown := j.GrownIn(g.Key)
	if grown == nil {
		e.cancelJob(j, why)
		return
	}
	e.ungroup(j)
	for waiting := slices.Clone(grown.Waiting); len(waiting) > 0; {
		index := waiting.Pop()
		j.Unqueue(index)
		e.finishElement(j, ElementRow{Element: *j.Element(index), State: state, Reason: why.Reason()})
	}
	e.regroup(j)
	e.writeJob(j)
	e.endIfDone(j)
}
