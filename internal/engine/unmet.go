package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drover"
	"drover/internal/engine/verdict"
)

// markUnmet marks a group for which the plan found nothing, and records why and until when.
func (e *Engine) markUnmet(g *group, u drover.Unmet) {
	g.Unschedulable, g.Unmet, e.pending.Place, e.pending.Preempt = true, g.netDemand(), true, true
	g.setReason(e.whyUnmet(g, u))
	g.Refused = e.whyRefused(u)
}

// whyUnmet explains why the plan found nothing for a group.
func (e *Engine) whyUnmet(g *group, u drover.Unmet) Verdict {
	why := e.verdict(Cause(u.Code), "%s", u.Text)
	switch u.Code {
	case drover.ReasonBlocked:
		if dear, a := e.whyPricedOut(g); a != nil {
			return dear
		}
		return e.whyBlocked(g)
	case drover.ReasonLimit:
		if limit, limited := e.userLimited(g); limited {
			return limit
		}
		if g.Key.Gang > 0 {
			why.Text = fmt.Sprintf("the %d jobs of its gang start together, and there is no room for all of them: %s", g.Key.Gang, u.Text)
		}
	}
	return e.chooseReason(g, why)
}

// chooseReason returns which of two causes to show for an unschedulable group. If every fitting offering is blocked,
// raising a limit would not help, so the block is shown. A gang too large for the limits comes before everything.
func (e *Engine) chooseReason(g *group, why Verdict) Verdict {
	if why.Cause == verdict.Limit || why.Cause == verdict.Gang {
		if never := e.whyTooMany(g); never != nil {
			return *never
		}
	}
	if why.Cause == verdict.Limit && e.allBlocked(g) {
		return e.whyBlocked(g)
	}
	return why
}

// allBlocked reports whether offerings fit the group's jobs and all of them are blocked.
func (e *Engine) allBlocked(g *group) bool {
	if len(e.market.Blocks()) == 0 || e.soloPrice(g.Key.Shape) > 0 {
		return false
	}
	for range e.rentableFor(g) {
		return false
	}
	return slices.ContainsFunc(e.market.Offerings(), g.Key.Shape.Accepts)
}

// updateBlockReasons changes the reason of groups that wait for a limit and whose offerings are all blocked now.
func (e *Engine) updateBlockReasons() {
	if !e.market.Changed() {
		return
	}
	for _, g := range e.groups {
		if g.Queued > 0 && g.Reason.Cause == verdict.Limit && e.allBlocked(g) {
			g.setReason(e.whyBlocked(g))
			e.pending.Preempt = true
		}
	}
}

// whyBlocked names, of the blocks on the group's fitting offerings, the one that ends first.
func (e *Engine) whyBlocked(g *group) Verdict {
	able := slices.DeleteFunc(slices.Clone(e.market.Offerings()), func(o drover.Offering) bool { return !g.Key.Shape.Accepts(o) })
	if len(able) == 0 {
		return e.whyNoneFits(g)
	}
	why := e.verdict(drover.ReasonBlocked, "every offering that fits is blocked")
	for _, o := range able {
		b := e.market.BlockOf(o)
		if b == nil || why.Until != 0 && b.Reason.Until >= why.Until {
			continue
		}
		why.Until = b.Reason.Until
		why.Text = fmt.Sprintf("%d offerings fit, but all are blocked; %s will be tried first (%s)", len(able), o.Name(), blockText(*b))
		if len(able) == 1 {
			why.Text = fmt.Sprintf("%s, the only offering that fits, is blocked: %s", o.Name(), blockText(*b))
		}
	}
	why.Until = later(why.Until, e.s.Now)
	return why
}

// whyNoneFits explains why a group waits although no known offering fits: fitting ones exceed its max_price, a
// catalogue is missing, or the types are missing from a cloud's last answer. Otherwise the jobs would have been refused.
func (e *Engine) whyNoneFits(g *group) Verdict {
	if slices.ContainsFunc(e.market.Offerings(), g.Key.Shape.AtAnyPrice().Accepts) {
		return e.verdict(drover.ReasonMaxPrice, "%s", g.Key.Shape.NearestMiss(e.market.Offerings()))
	}
	if c := e.missedBy(g.Key.Shape); c != nil && e.market.Complete() {
		why := e.verdict(drover.ReasonCatalogue, "cloud %s no longer lists a type that can run it; the job will be cancelled if the next answer lacks it too", c.Name)
		why.Until = later(c.NextOffer, e.s.Now)
		return why
	}
	return e.whyTypesUnknown()
}

// whyTypesUnknown explains that no known type fits and a cloud's catalogue is missing.
func (e *Engine) whyTypesUnknown() Verdict {
	for _, c := range e.enabled() {
		if !c.Known {
			why := e.whyCatalogue(c)
			why.Text = "no known type can run it, and " + why.Text
			return why
		}
	}
	return e.verdict(drover.ReasonCatalogue, "no known type can run it, but the types of at least one cloud are not known yet")
}

// whyCatalogue says that a cloud's types are not known yet, and when it is asked again.
func (e *Engine) whyCatalogue(c *Cloud) Verdict {
	why := e.verdict(drover.ReasonCatalogue, "the instance types of cloud %s are not known yet", c.Name)
	if c.Mute.Cause != "" {
		why.Text += ": " + c.Mute.Text
		why.Since, why.Until = c.Mute.Since, c.NextOffer
	}
	return why
}

// whyRefused counts the offerings that do not fit a demand, by cause, and names the nearest; nil without refusals.
func (e *Engine) whyRefused(u drover.Unmet) *Verdict {
	nearest, any := u.Nearest()
	if !any {
		return nil
	}
	var said []string
	total := 0
	for _, r := range u.Refusals {
		said = append(said, refusalWords(r))
		total += r.Count
	}
	blocked, dear := e.leftOut(len(e.market.Offerings()) - total)
	if blocked > 0 {
		said = append(said, refusalWords(drover.Refusal{Code: "blocked", Count: blocked}))
	}
	if dear > 0 {
		said = append(said, refusalWords(drover.Refusal{Code: "dear", Count: dear}))
	}
	others := ""
	if total += blocked + dear; blocked+dear > 0 {
		others = "of the available ones, "
	}
	if last := len(said) - 1; last > 0 {
		said = append(said[:last-1], said[last-1]+" and "+said[last])
	}
	text := "of " + countOf(total, "offering") + ", " + strings.Join(said, ", ") + "; " + others + nearest.Offering + " comes closest: " + nearest.Text
	return &Verdict{Cause: drover.ReasonRefused, Text: text, Since: e.s.Now}
}

// refusalWords renders a refusal and its number of offerings.
func refusalWords(r drover.Refusal) string {
	words := refusals[r.Code]
	if r.Count == 1 {
		return "1 " + words.one
	}
	return strconv.Itoa(r.Count) + " " + words.many
}

// refusals says of one offering, and of many, why they do not fit.
var refusals = map[string]struct{ one, many string }{
	"placement": {"is outside the requested placement", "are outside the requested placement"},
	"market":    {"is in another market", "are in another market"},
	"arch":      {"has another architecture", "have another architecture"},
	"vcpus":     {"has too few vCPUs", "have too few vCPUs"},
	"memory":    {"has too little memory", "have too little memory"},
	"disk":      {"has too little disk", "have too little disk"},
	"gpus":      {"has too few GPUs", "have too few GPUs"},
	"price":     {"is over max_price", "are over max_price"},
	"limit":     {"is at a limit", "are at a limit"},
	"size":      {"has another size", "have another size"},
	"dear":      {"is over the budget", "are over the budget"},
	"blocked":   {"is blocked", "are blocked"},
	"spread":    {"has reached the share allowed for one offering", "have reached the share allowed for one offering"},
}

// repeatedFailure returns the reason of a failure that may have occurred before: since the first time, with the latest
// message.
func (e *Engine) repeatedFailure(was Verdict, cause Cause, err *drover.Error) Verdict {
	why := e.verdict(cause, "%.1000s", err.Explained())
	why.Since = cmp.Or(was.Since, why.Since)
	return why
}
