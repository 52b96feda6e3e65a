package engine

import (
	"fmt"
	"path"
	"strings"

	"drover"
	"drover/internal/engine/market"
)

// ExplainOfferings explains, for each offering that a subject names, why it is not rented, or that it can be. A subject
// is CLOUD/ZONE/TYPE/MARKET; parts after the cloud may be omitted, and each part may be a pattern such as m7i.*. It
// returns at most most explanations and counts the rest.
func (e *Engine) ExplainOfferings(subject string, most int) (list []drover.Explanation, left int) {
	cloud, rest, several := strings.Cut(subject, "/")
	for _, c := range e.clouds {
		if !several || !matches(cloud, c.Name) {
			continue
		}
		general := e.whyNotIn(c)
		for _, o := range c.Offerings {
			switch {
			case subject != o.Name() && !selects(strings.Split(rest, "/"), o):
			case len(list) == most:
				left++
			default:
				list = append(list, e.explainOffering(o, general))
			}
		}
	}
	return list, left
}

// selects reports whether the parts match the offering's zone, type and market in order; some may be omitted.
func selects(parts []string, o drover.Offering) bool {
	of := []string{o.Zone, o.Type.Name, string(o.Market)}
	for _, p := range parts {
		for len(of) > 0 && !matches(p, of[0]) {
			of = of[1:]
		}
		if len(of) == 0 {
			return false
		}
		of = of[1:]
	}
	return true
}

// matches reports whether a part of a subject equals the word or is a pattern for it.
func matches(part, word string) bool {
	ok, err := path.Match(part, word)
	return part == word || part == "" || err == nil && ok
}

// explainOffering explains an offering; general are the causes that affect its whole cloud.
func (e *Engine) explainOffering(o drover.Offering, general []Verdict) drover.Explanation {
	x := drover.Explanation{Subject: o.Name()}
	for _, b := range e.market.Blocks() {
		if b.Covers(o) {
			e.say(&x, e.blockReason(b))
		}
	}
	e.say(&x, general...)
	for _, ask := range []func(drover.Offering) (Verdict, bool){e.whyPassed, e.whyOverBudget, e.whySpread} {
		if why, ok := ask(o); ok {
			e.say(&x, why)
		}
	}
	for _, why := range x.Reasons {
		x.Since = sooner(x.Since, why.Since)
	}
	if len(x.Reasons) == 0 {
		e.say(&x, e.whyOffered(e.asPaid(o)))
	}
	e.say(&x, e.exhaustedBudgets([]drover.Offering{e.asPaid(o)})...)
	return x
}

// whyOffered says that an offering can be rented, its price, and who could use it.
func (e *Engine) whyOffered(o drover.Offering) Verdict {
	there := 0
	for _, in := range e.fleet.All() {
		if isOf(in, o) {
			there++
		}
	}
	suits, waits := 0, 0
	for _, g := range e.groups {
		if waits += g.Queued; g.Key.Shape.Accepts(o) {
			suits += g.Queued
		}
	}
	price := fmt.Sprintf("%v an hour", o.Price)
	if o.Reserved {
		price += " (reserved)"
	}
	wanted := fmt.Sprintf("it can run %d of %s", suits, countOf(waits, "waiting job"))
	if waits == 0 {
		wanted = "no jobs are waiting"
	}
	text := fmt.Sprintf("can be rented for %s; the fleet has %s; %s", price, countOf(there, "such instance"), wanted)
	return Verdict{Cause: drover.ReasonOffered, Text: text}
}

// OfferState is an offering and, if it cannot be rented now, why not and until when: the first reason that
// ExplainOfferings gives, which also says since when.
type OfferState struct {
	drover.Offering
	Why *drover.Reason
}

// Offers lists the offerings by cloud, type, zone and market. The values share no memory with the engine.
func (e *Engine) Offers() []OfferState {
	all := e.market.Offerings()
	list := make([]OfferState, len(all))
	bars := e.obstacles()
	for i, o := range all {
		list[i] = OfferState{e.asPaid(o), e.told(bars.of(o))}
	}
	return list
}

// obstacles are what prevents renting, collected in one pass over the instances.
type obstacles struct {
	e      *Engine
	clouds map[string][]Verdict // what affects a whole cloud
	left   market.Limits
	spread drover.Problem
}

func (e *Engine) obstacles() *obstacles {
	b := &obstacles{e: e, clouds: map[string][]Verdict{}, left: e.limitsLeft()}
	for _, c := range e.clouds {
		b.clouds[c.Name] = e.whyNotIn(c)
	}
	e.spread(&b.spread)
	return b
}

// of returns the first obstacle for an offering; nil if there is none.
func (b *obstacles) of(o drover.Offering) *Verdict {
	if block := b.e.market.BlockOf(o); block != nil {
		why := block.Reason
		why.Text = blockText(*block)
		return &why
	}
	if all := b.clouds[o.Cloud]; len(all) > 0 {
		return &all[0]
	}
	if why, l := b.e.passedBy(b.left, o); l != nil {
		return &why
	}
	if why, a := b.e.refusingBudget(o); a != nil {
		return &why
	}
	if why, has := b.e.spreads(b.spread, o); has {
		return &why
	}
	return nil
}
