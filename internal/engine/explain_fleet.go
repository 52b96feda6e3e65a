package engine

import (
	"fmt"

	"drover"
)

// fleetSubject names the whole fleet in an explanation.
const fleetSubject = "fleet"

// ExplainFleet says of all that waits together why it does, and how much for each reason; or that nothing waits.
func (e *Engine) ExplainFleet() drover.Explanation {
	list, queued := e.waiting()
	x := drover.Explanation{Subject: fleetSubject, Waiting: queued > 0, Count: queued}
	boots := e.onTheirWay() > 0
	for _, w := range list {
		why, who := w.Reason, countOf(w.Count, "job")
		if why.Code != drover.ReasonDependency && why.Code != drover.ReasonHeld && !boots {
			who += ", and nothing boots"
		}
		why.Text = who + ": " + why.Text
		x.Since = sooner(x.Since, why.Since)
		x.Reasons = append(x.Reasons, why)
	}
	if queued == 0 {
		say(&x, e.whyRest())
	}
	return x
}

// onTheirWay is how many instances are being created or boot.
func (e *Engine) onTheirWay() (n int) {
	for _, in := range e.fleet.All() {
		if in.Coming() {
			n++
		}
	}
	return n
}

// whyRest says that nothing waits, and what there is.
func (e *Engine) whyRest() Verdict {
	running, used := 0, 0
	for _, in := range e.fleet.All() {
		if len(in.Load) > 0 {
			running += len(in.Load)
			used++
		}
	}
	text := "nothing waits or runs"
	switch {
	case running > 0:
		text = fmt.Sprintf("nothing waits; %s on %d of %s", countOf(running, "attempt"), used, countOf(e.fleet.Len(), "instance"))
	case e.fleet.Len() > 0:
		text = fmt.Sprintf("nothing waits or runs; not gone yet: %s", countOf(e.fleet.Len(), "instance"))
	}
	if len(e.pools.list) == 0 {
		text += "; nothing boots until a job is submitted"
	}
	return Verdict{Cause: drover.ReasonRest, Text: text}
}
