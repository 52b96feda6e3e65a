package engine

import (
	"drover"
	"drover/internal/engine/verdict"
)

// setPaused has nothing that waits be started, nor rented for, until the queue is resumed, by whichever controller. What runs goes on, and instances that
// fall idle go in their time.
func (e *Engine) setPaused(b QueueAsked) {
	e.reply(b.Wish, nil)
	why := b.Reason
	why.Since = e.s.Now
	e.note(Note{Level: Info, Text: why.Text, Reason: &why})
	e.s.Paused, e.replace, e.replan = &why, true, true
	if b.Resume {
		e.s.Paused = nil
	}
	e.write(Write{Queue: &Queue{Paused: e.s.Paused}})
	if e.s.Paused != nil {
		for _, in := range e.fleet.All() {
			e.unneeded(in)
		}
	}
}

// halted reports whether nothing that waits may be started, nor rented for.
func (e *Engine) halted() bool { return e.s.Draining || !e.proved() || e.s.Paused != nil }

// whyHalted says why that is so.
func (e *Engine) whyHalted() Verdict {
	switch {
	case e.s.Draining:
		return Verdict{Cause: drover.ReasonDraining, Text: drainingText, Since: e.s.Halted}
	case !e.proved():
		return e.whyUnproved()
	}
	return verdict.Of(*e.s.Paused)
}
