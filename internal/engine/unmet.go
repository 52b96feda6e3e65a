package engine

import (
	"fmt"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine/verdict"
)

// unmet says why a group could not be served, and when that may change.
func (e *Engine) unmet(g *group, u drover.Unmet) {
	g.Unschedulable, g.Unmet, e.replace, e.yield = true, g.wants(), true, true
	why := e.verdict(Cause(u.Code), "%s", u.Text)
	limit, limited := Verdict{}, false
	if u.Code == drover.ReasonLimit {
		limit, limited = e.userLimited(g)
	}
	if limited {
		why = limit
	} else if u.Code != drover.ReasonBlocked {
		why = e.first(g, why)
	} else if a, cheapest := e.pricedOut(g); a != nil {
		why = e.whyPricedOut(g, a, cheapest)
	} else {
		why = e.whyBlocked(g)
	}
	g.wait(why)
	g.Refused = e.whyRefused(u)
}

// first is which of two causes is named for a group that cannot be served. If all that can hold its jobs is blocked, room alone would not help: the
// block is named, whether it came before a limit was reached or after. If a gang is too large for the limits, that is named before all.
func (e *Engine) first(g *group, why Verdict) Verdict {
	if why.Cause == verdict.Limit || why.Cause == verdict.Gang {
		if never := e.whyTooMany(g); never != nil {
			return *never
		}
	}
	if why.Cause == verdict.Limit && e.shutOut(g) {
		return e.whyBlocked(g)
	}
	return why
}

// shutOut reports whether there are offerings that can hold the group's jobs, and all of them are blocked.
func (e *Engine) shutOut(g *group) bool {
	if len(e.market.Blocks()) == 0 || e.alone(g.Key.Shape) > 0 || len(e.rentableFor(g)) > 0 {
		return false
	}
	return slices.ContainsFunc(e.market.Offerings(), g.Key.Shape.Accepts)
}

// nameBlocks has groups that wait for a limit say so if blocks that are new shut them out as well.
func (e *Engine) nameBlocks() {
	if !e.market.Changed() {
		return
	}
	for _, g := range e.groups {
		if g.Queued > 0 && g.Reason.Cause == verdict.Limit && e.shutOut(g) {
			g.wait(e.whyBlocked(g))
			e.yield = true
		}
	}
}

// whyBlocked names the block that keeps a group from what can hold it and ends first.
func (e *Engine) whyBlocked(g *group) Verdict {
	able := slices.DeleteFunc(slices.Clone(e.market.Offerings()), func(o drover.Offering) bool { return !g.Key.Shape.Accepts(o) })
	if len(able) == 0 {
		return e.whyNoneFits(g)
	}
	why := e.verdict(drover.ReasonBlocked, "every offering that can hold it is blocked")
	for _, o := range able {
		b := e.market.BlockOf(o)
		if b == nil || why.Until != 0 && b.Reason.Until >= why.Until {
			continue
		}
		why.Until = b.Reason.Until
		why.Text = fmt.Sprintf("the %d offerings that can hold it are all blocked; %s will be tried first: %s", len(able), o.Name(), blockText(*b))
		if len(able) == 1 {
			why.Text = fmt.Sprintf("%s, the only offering that can hold it, is blocked: %s", o.Name(), blockText(*b))
		}
	}
	why.Until = later(why.Until, e.s.Now)
	return why
}

// whyNoneFits says why a group waits although nothing that is known fits: what would costs more than its jobs let it, or is not known yet. Else it
// would have been refused.
func (e *Engine) whyNoneFits(g *group) Verdict {
	if slices.ContainsFunc(e.market.Offerings(), g.Key.Shape.AtAnyPrice().Accepts) {
		return e.verdict(drover.ReasonMaxPrice, "%s", g.Key.Shape.NearestMiss(e.market.Offerings()))
	}
	return e.whySilentCloud()
}

// whySilentCloud says that a group waits for the types of a cloud that fails to tell them, since none that is known can hold it.
func (e *Engine) whySilentCloud() Verdict {
	for _, c := range e.enabled() {
		if !c.Known {
			why := e.whyCatalogue(c)
			why.Text = "no known type can hold it, and " + why.Text
			return why
		}
	}
	return e.verdict(drover.ReasonCatalogue, "no known type can hold it, and the types of another cloud are unknown")
}

// whyCatalogue says that a cloud has not told its types yet, and when it is asked for them again.
func (e *Engine) whyCatalogue(c *Cloud) Verdict {
	why := e.verdict(drover.ReasonCatalogue, "the types of cloud %s are not known yet", c.Name)
	if c.Mute.Cause != "" {
		why.Text += ": " + c.Mute.Text
		why.Since, why.Until = c.Mute.Since, later(c.NextOffer, e.s.Now)
	}
	return why
}

// whyRefused says how many of the offerings that there are do not serve a demand, and which of them comes nearest; nil if nothing was said of that.
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
		others = "of the others, "
	}
	why := e.verdict(drover.ReasonRefused, "of %s, %s; %s%s comes nearest: %s", countOf(total, "offering"), strings.Join(said, ", "), others, nearest.Offering, nearest.Text)
	return &why
}

// refusalWords says for how many offerings a refusal speaks.
func refusalWords(r drover.Refusal) string {
	is, has := "are", "have"
	if r.Count == 1 {
		is, has = "is", "has"
	}
	words := map[string]string{
		"placement": is + " in the wrong place", "market": is + " in an unwanted market", "arch": is + " of another architecture",
		"vcpus": has + " too few vCPUs", "memory": has + " too little memory", "disk": has + " too little disk", "gpus": has + " too few GPUs",
		"price": is + " over max_price",
		"limit": is + " at a limit", "size": is + " of an unwanted size", "dear": is + " over the budget", "blocked": is + " blocked",
		"spread": has + " reached the share that one may have",
	}
	return fmt.Sprintf("%d %s", r.Count, words[r.Code])
}

// lasting is why something fails that may have failed before: since the first time, in the words of the last.
func (e *Engine) lasting(was Verdict, cause Cause, err *drover.Error) Verdict {
	why := e.verdict(cause, "%.1000s", err.Message)
	if was.Cause != "" {
		why.Since = was.Since
	}
	return why
}
