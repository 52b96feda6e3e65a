package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/verdict"
)

// ExplainCloud explains what prevents renting in a cloud, or that nothing does.
func (e *Engine) ExplainCloud(name string) (drover.Explanation, bool) {
	c := e.cloud(name)
	if c == nil {
		return drover.Explanation{}, false
	}
	x := drover.Explanation{Subject: name, Reasons: verdict.Reasons(e.s.Now, e.whyNotIn(c)...)}
	e.say(&x, e.cloudProblems(c)...)
	e.say(&x, e.blocksIn(c)...)
	free := e.unblockedIn(c)
	paid := slices.DeleteFunc(slices.Clone(free), func(o drover.Offering) bool { return e.dear(o, time.Hour) })
	if len(free) > 0 && len(paid) == 0 {
		e.say(&x, e.whyNothingIsPaid(free))
	}
	for _, why := range x.Reasons {
		x.Since = sooner(x.Since, why.Since)
	}
	e.say(&x, e.summarizeOffers(c, free, paid))
	e.say(&x, e.exhaustedBudgets(paid)...)
	return x, true
}

// whyNotIn returns everything that prevents any renting in a cloud now.
func (e *Engine) whyNotIn(c *Cloud) (why []Verdict) {
	if e.limits(c.Name).Leaving {
		why = append(why, Verdict{Cause: drover.ReasonTypeRemoved, Text: "the cloud is no longer configured: no instances are rented there, and existing ones drain", Since: c.Left})
	}
	why = append(why, e.whyNowhere()...)
	if c.NextCreate > e.s.Now {
		why = append(why, Verdict{Cause: Cause(drover.KindRateLimit), Text: "the cloud is not accepting create requests at the moment", Since: c.Slowed, Until: c.NextCreate})
	}
	if limits := e.limits(c.Name); !limits.Leaving && e.cloudRoom(c.Name) == 0 {
		why = append(why, whyFull(cloudFull(c.Name, limits.MaxInstances), e.useOfAll(c.Name)))
	}
	return why
}

// whyNowhere returns everything that prevents any renting in any cloud.
func (e *Engine) whyNowhere() (why []Verdict) {
	if e.nothingStarts() {
		why = append(why, e.whyNothingStarts())
	} else if e.s.Closing {
		why = append(why, Verdict{Cause: drover.ReasonClosing, Text: closingText, Since: e.s.ShutdownSince})
	}
	if e.room() == 0 {
		why = append(why, whyFull(fleetFull(e.s.Settings.MaxInstances), e.useOfAll("")))
	}
	return why
}

// cloudProblems returns a cloud's other problems: missing or old catalogues and lists, partitions, throttles.
func (e *Engine) cloudProblems(c *Cloud) (why []Verdict) {
	if !c.Known {
		why = append(why, e.whyCatalogue(c))
	} else if c.Mute.Cause != "" {
		text := "updating its types and prices failed: " + c.Mute.Text
		why = append(why, Verdict{Cause: drover.ReasonCatalogue, Text: text, Since: c.Mute.Since, Until: c.NextOffer})
	}
	if c.Unlisted.Cause != "" {
		why = append(why, e.whyUnlisted(c))
	}
	if c.Partition.Since != 0 {
		why = append(why, e.whyPartitioned(c))
	}
	if c.Checks.Since != 0 {
		why = append(why, e.whyUnchecked(c))
	}
	for _, t := range c.Throttles {
		text := fmt.Sprintf("%s/%s/%s/%s ran out of capacity, so Drover requests only %s at a time; each success allows one more", c.Name, t.Zone, t.Type, t.Market, countOf(t.Most, "instance"))
		why = append(why, Verdict{Cause: drover.ReasonCapacity, Text: text, Since: t.Since})
	}
	return why
}

// whyUnlisted explains that a cloud's instances could not be listed.
func (e *Engine) whyUnlisted(c *Cloud) Verdict {
	why := c.Unlisted
	why.Text = fmt.Sprintf("the instances of cloud %s could not be listed (consecutive failures: %d), so Drover assumes that they are unchanged: %s", c.Name, c.ListFails, why.Text)
	why.Until = c.NextList
	return why
}

// blocksIn returns the blocks of a cloud's offerings.
func (e *Engine) blocksIn(c *Cloud) (why []Verdict) {
	blocks := slices.DeleteFunc(slices.Clone(e.market.Blocks()), func(b Block) bool { return b.Cloud != c.Name })
	for _, b := range blocks[:min(len(blocks), maxBlocks)] {
		one := e.blockReason(b)
		one.Text = b.Subject() + " is blocked: " + one.Text
		why = append(why, one)
	}
	if more := len(blocks) - maxBlocks; more > 0 {
		others := Verdict{Cause: drover.ReasonOther, Text: fmt.Sprintf("and %d more blocks: see drover offers", more)}
		for _, b := range blocks[maxBlocks:] {
			others.Since = sooner(others.Since, b.Reason.Since)
		}
		why = append(why, others)
	}
	return why
}

// unblockedIn returns a cloud's unblocked offerings, at the price paid for them.
func (e *Engine) unblockedIn(c *Cloud) (free []drover.Offering) {
	for _, o := range c.Offerings {
		if e.market.BlockOf(o) == nil {
			free = append(free, e.asPaid(o))
		}
	}
	return free
}

// summarizeOffers summarizes a cloud's offerings, the unblocked and affordable ones, and its instances.
func (e *Engine) summarizeOffers(c *Cloud, free, paid []drover.Offering) Verdict {
	there, coming := 0, 0
	for _, in := range e.fleet.All() {
		if in.Cloud == c.Name {
			there++
			if in.Coming() {
				coming++
			}
		}
	}
	text := "it has " + countOf(there, "instance")
	if most := e.limits(c.Name).MaxInstances; most > 0 {
		text = fmt.Sprintf("it has %d of at most %s", there, countOf(most, "instance"))
	}
	if coming > 0 {
		text += fmt.Sprintf(", %d starting", coming)
	}
	if len(free) == 0 {
		return Verdict{Cause: drover.ReasonOffered, Text: text}
	}
	said := "it has " + countOf(len(c.Offerings), "offering")
	if blocked := len(c.Offerings) - len(free); blocked > 0 {
		said += fmt.Sprintf(", %d blocked", blocked)
	}
	if dear := len(free) - len(paid); dear > 0 {
		said += fmt.Sprintf(", %d currently over the fleet's budget", dear)
	}
	if len(paid) > 0 {
		least := cheapestOf(paid)
		said += fmt.Sprintf("; the cheapest available one is %s at %v an hour", least.Name(), least.Price)
	}
	return Verdict{Cause: drover.ReasonOffered, Text: said + "; " + text}
}
