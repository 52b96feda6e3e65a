package engine

import (
	"slices"
	"strings"

	"drover"
)

// ExplainSubject explains what a subject names: a job's id, an instance by whatever Find knows it by, "fleet", a cloud, a block or offerings, or whatever
// else ExplainAll gives as one; empty: the fleet, and then all that ExplainAll explains. It stops at so many, and counts what is left. It is nil
// if nothing is known of the subject.
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

// explainOne explains what there is one of.
func (e *Engine) explainOne(subject string) (drover.Explanation, bool) {
	if id, err := drover.ParseJobID(subject); err == nil {
		if one, ok := e.Explain(id); ok {
			return one, true
		}
	}
	if one, ok := e.ExplainInstance(subject); ok {
		return one, true
	}
	if one, ok := e.ExplainCloud(subject); ok {
		return one, true
	}
	if one, ok := e.explainPool(subject); ok {
		return one, true
	}
	if subject == fleetSubject {
		return e.ExplainFleet(), true
	}
	if strings.ContainsAny(subject, "*=") { // else it names one offering, of which there is more to say
		return e.ExplainBlock(subject)
	}
	return drover.Explanation{}, false
}
