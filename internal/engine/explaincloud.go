package engine

import (
	"fmt"
	"slices"

	"drover"
)

// ExplainCloud says what keeps instances from being rented in a cloud, or that they may be.
func (e *Engine) ExplainCloud(name string) (drover.Explanation, bool) {
	c := e.cloud(name)
	if c == nil {
		return drover.Explanation{}, false
	}
	x := drover.Explanation{Subject: name, Reasons: e.whyNotIn(c)}
	x.Reasons = append(x.Reasons, e.troublesOf(c)...)
	x.Reasons = append(x.Reasons, e.blocksIn(c)...)
	for _, why := range x.Reasons {
		x.Since = sooner(x.Since, why.Since)
	}
	x.Reasons = append(x.Reasons, e.whatIsOffered(c))
	return x, true
}

// whyNotIn is all that keeps anything at all from being rented in a cloud just now.
func (e *Engine) whyNotIn(c *Cloud) (why []drover.Reason) {
	if e.limits(c.Name).Leaving {
		why = append(why, drover.Reason{Code: drover.ReasonTypeRemoved, Text: "the cloud is no longer configured: nothing is rented there, and what is there drains", Since: c.Left})
	}
	why = append(why, e.whyNowhere()...)
	if c.NextCreate > e.s.Now {
		why = append(why, drover.Reason{Code: string(drover.KindRateLimit), Text: "the cloud takes no more create calls for a while", Since: c.Slowed, Until: c.NextCreate})
	}
	if most := e.limits(c.Name).MaxInstances; most > 0 && e.cloudRoom(c.Name) == 0 && !e.limits(c.Name).Leaving {
		why = append(why, whyFull(cloudFull(c.Name, most), e.useOfAll(c.Name)))
	}
	return why
}

// whyNowhere is all that keeps anything at all from being rented in any cloud.
func (e *Engine) whyNowhere() (why []drover.Reason) {
	switch {
	case e.s.Draining:
		why = append(why, drover.Reason{Code: drover.ReasonDraining, Text: drainingText, Since: e.s.Halted})
	case !e.proved():
		why = append(why, e.whyUnproved())
	case e.s.Closing:
		why = append(why, drover.Reason{Code: drover.ReasonClosing, Text: closingText, Since: e.s.Halted})
	}
	if most := e.s.Settings.MaxInstances; most > 0 && e.room() == 0 {
		why = append(why, whyFull(fleetFull(most), e.useOfAll("")))
	}
	return why
}

// troublesOf is what a cloud does not say, or is not asked for, but for what it refuses.
func (e *Engine) troublesOf(c *Cloud) (why []drover.Reason) {
	if !c.Known {
		why = append(why, e.whyCatalogue(c))
	} else if c.Mute.Code != "" {
		text := "its types and prices, which may have changed since, cannot be had: " + c.Mute.Text
		why = append(why, drover.Reason{Code: drover.ReasonCatalogue, Text: text, Since: c.Mute.Since, Until: later(c.NextOffer, e.s.Now)})
	}
	if c.Unlisted.Code != "" {
		unlisted := c.Unlisted
		unlisted.Text = fmt.Sprintf("asked %s, it does not say what instances it has, for which nothing changes meanwhile: %s", countOf(c.ListFails, "time"), unlisted.Text)
		unlisted.Until = later(c.NextList, e.s.Now)
		why = append(why, unlisted)
	}
	if c.Deaf != 0 {
		text := "most of its instances fell silent together, so the controller takes itself for the deaf one until one of them answers"
		why = append(why, drover.Reason{Code: drover.ReasonDeaf, Text: text, Since: c.Deaf})
	}
	for _, t := range c.Throttles {
		text := fmt.Sprintf("%s/%s/%s/%s is asked for %d at a time, since its cloud had not enough; one more with each that comes", c.Name, t.Zone, t.Type, t.Market, t.Most)
		why = append(why, drover.Reason{Code: drover.ReasonCapacity, Text: text, Since: t.Since})
	}
	return why
}

// blocksIn is what a cloud's offerings are blocked by.
func (e *Engine) blocksIn(c *Cloud) (why []drover.Reason) {
	blocks := slices.DeleteFunc(slices.Clone(e.s.Blocks), func(b Block) bool { return b.Cloud != c.Name })
	for _, b := range blocks[:min(len(blocks), maxBlocks)] {
		one := e.explainBlock(b).Reasons[0]
		one.Text = b.Subject() + " is left alone: " + one.Text
		why = append(why, one)
	}
	if more := len(blocks) - maxBlocks; more > 0 {
		others := drover.Reason{Code: drover.ReasonOther, Text: fmt.Sprintf("and %d more blocks: drover offers lists what is blocked", more)}
		for _, b := range blocks[maxBlocks:] {
			others.Since = sooner(others.Since, b.Reason.Since)
		}
		why = append(why, others)
	}
	return why
}

// whatIsOffered sums up what may be rented in a cloud, and what is there.
func (e *Engine) whatIsOffered(c *Cloud) drover.Reason {
	free, cheapest := 0, drover.Offering{}
	for _, o := range c.Offerings {
		if o = e.asPaid(o); e.blockOf(o) == nil {
			if free++; free == 1 || o.Price < cheapest.Price {
				cheapest = o
			}
		}
	}
	there, coming := 0, 0
	for _, in := range e.instances {
		if in.Cloud == c.Name {
			there++
			if in.coming() {
				coming++
			}
		}
	}
	text := fmt.Sprintf("it has %s, %d on their way", countOf(there, "instance"), coming)
	if most := e.limits(c.Name).MaxInstances; most > 0 {
		text = fmt.Sprintf("it has %d of at most %s, %d on their way", there, countOf(most, "instance"), coming)
	}
	if free > 0 {
		text = fmt.Sprintf("not blocked: %d of %s, the cheapest %s at %v an hour; ", free, countOf(len(c.Offerings), "offering"), cheapest.Name(), cheapest.Price) + text
	}
	return drover.Reason{Code: drover.ReasonOffered, Text: text}
}
