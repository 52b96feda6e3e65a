package engine

import (
	"fmt"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// say appends verdicts to an explanation.
func (e *Engine) say(x *drover.Explanation, why ...Verdict) {
	x.Reasons = append(x.Reasons, verdict.Reasons(e.s.Now, why...)...)
}

// explained returns an explanation by verdicts, as old as the first of them.
func (e *Engine) explained(subject string, why ...Verdict) drover.Explanation {
	return drover.Explanation{Subject: subject, Since: why[0].Since, Reasons: verdict.Reasons(e.s.Now, why...)}
}

// present returns those of the verdicts that exist.
func present(all ...*Verdict) (why []Verdict) {
	for _, v := range all {
		if v != nil {
			why = append(why, *v)
		}
	}
	return why
}

// told renders a verdict for people; nil if there is none.
func (e *Engine) told(v *Verdict) *drover.Reason {
	if v == nil {
		return nil
	}
	return new(v.At(e.s.Now))
}

// ExplainSubject explains a subject: a job's ID, an instance by anything that Find accepts, "fleet", a cloud, a block,
// offerings, or any subject of ExplainAll. An empty subject means the fleet and then everything in ExplainAll. It
// returns at most most explanations and counts the rest; the list is nil if the subject is unknown.
func (e *Engine) ExplainSubject(subject string, most int) (list []drover.Explanation, left int) {
	if subject == "" {
		list, left = e.ExplainAll(most)
		return slices.Insert(list, 0, e.ExplainFleet()), left
	}
	if one, ok := e.explainOne(subject); ok {
		return []drover.Explanation{one}, 0
	}
	if list, left = e.ExplainOfferings(subject, most); len(list) > 0 {
		return list, left
	}
	all, _ := e.ExplainAll(most)
	return slices.DeleteFunc(all, func(x drover.Explanation) bool { return x.Subject != subject }), 0
}

// explainOne explains a subject that is a single thing.
func (e *Engine) explainOne(subject string) (drover.Explanation, bool) {
	if id, err := drover.ParseJobID(subject); err == nil {
		if one, ok := e.Explain(id); ok {
			return one, true
		}
	}
	for _, explain := range []func(string) (drover.Explanation, bool){e.ExplainInstance, e.ExplainCloud, e.explainPool} {
		if one, ok := explain(subject); ok {
			return one, true
		}
	}
	if subject == fleetSubject {
		return e.ExplainFleet(), true
	}
	if strings.ContainsAny(subject, "*=") { // otherwise it names one offering, which has a fuller explanation
		return e.ExplainBlock(subject)
	}
	return drover.Explanation{}, false
}

// fleetSubject is the subject of the fleet's explanation.
const fleetSubject = "fleet"

// notReady are the reasons of jobs that may not start yet, so that no instance boots for them.
var notReady = []string{drover.ReasonDependency, drover.ReasonHeld, drover.ReasonMaxRunning, drover.ReasonRetry, drover.ReasonGang}

// ExplainFleet explains why work waits, with the number per reason, or that nothing waits.
func (e *Engine) ExplainFleet() drover.Explanation {
	list, queued := e.waiting()
	x := drover.Explanation{Subject: fleetSubject, Waiting: queued > 0, Count: queued}
	boots := slices.ContainsFunc(e.fleet.All(), func(in *fleet.Member) bool { // the state of one with reservations may be unknown
		return in.Coming() || len(in.Reservations) > 0
	})
	for _, w := range list {
		why, who := w.Reason, countOf(w.Count, "job")
		if !boots && !slices.Contains(notReady, why.Code) {
			who += ", and no instance is booting"
		}
		why.Text = who + ": " + why.Text
		x.Reasons = append(x.Reasons, why)
	}
	if queued == 0 {
		e.say(&x, e.whyRest())
	}
	for j := range e.queue.All() { // a reason may be older than the jobs that wait for it
		if j.Queued.Count() > 0 {
			x.Since = sooner(x.Since, j.Since)
		}
	}
	return x
}

// whyRest explains that nothing waits, and what exists.
func (e *Engine) whyRest() Verdict {
	running, used := 0, 0
	for _, in := range e.fleet.All() {
		if len(in.Load) > 0 {
			running += len(in.Load)
			used++
		}
	}
	text := "no jobs are waiting or running"
	switch {
	case running > 0:
		text = fmt.Sprintf("no jobs are waiting; the fleet runs %s on %d of %s", countOf(running, "attempt"), used, countOf(e.fleet.Len(), "instance"))
	case e.fleet.Len() > 0:
		text = fmt.Sprintf("no jobs are waiting or running; the fleet still has %s", countOf(e.fleet.Len(), "instance"))
	}
	if len(e.pools.list) == 0 {
		text += "; no instance boots until a job is submitted"
	}
	return Verdict{Cause: drover.ReasonRest, Text: text}
}
