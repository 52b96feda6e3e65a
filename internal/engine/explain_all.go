package engine

import (
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/verdict"
)

// ExplainAll explains what waits, is held up or is blocked: stale records, groups of jobs in order of service, jobs
// that may not start, instances, blocks, budgets. It returns at most most explanations and counts the rest; jobs that
// may not start are then counted one by one.
func (e *Engine) ExplainAll(most int) (all []drover.Explanation, left int) {
	x := explanations{most: most}
	e.explainRecords(&x)
	e.explainClouds(&x)
	e.explainGroups(&x)
	e.explainPools(&x)
	e.explainHeld(&x)
	e.explainPostponed(&x)
	e.explainInstances(&x)
	e.explainBlocks(&x)
	e.explainBudgets(&x)
	return x.all, x.left
}

// explanations collects explanations up to a maximum.
type explanations struct {
	most int
	all  []drover.Explanation
	left int
}

// room reports whether one more may be added; if not, it counts it as left.
func (x *explanations) room() bool {
	if len(x.all) < x.most {
		return true
	}
	x.left++
	return false
}

func (x *explanations) add(one drover.Explanation) { x.all = append(x.all, one) }

// explainRecords explains why nothing starts while the records may be stale.
func (e *Engine) explainRecords(x *explanations) {
	if !e.recordsCurrent() && x.room() {
		x.add(e.explained("records", e.whyStale()))
	}
}

// explainClouds explains what does not work in a cloud, whether something waits for it or not.
func (e *Engine) explainClouds(x *explanations) {
	for _, c := range e.clouds {
		if why := e.cloudProblems(c); len(why) > 0 && x.room() {
			x.add(e.explained(c.Name, why...))
		}
	}
}

func (e *Engine) explainGroups(x *explanations) {
	var groups []*group
	for _, g := range e.groups {
		switch {
		case g.Queued == 0:
		case len(groups) < x.most:
			groups = append(groups, g)
		default:
			x.left++
		}
	}
	coming := e.arrivalsOf(groups...)
	for _, g := range groups {
		x.add(e.explainGroup(g, coming[g.Key]))
	}
}

func (e *Engine) explainGroup(g *group, coming *arrivals) drover.Explanation {
	first := g.Jobs[0]
	one := drover.Explanation{Subject: jobSubject(first), Waiting: true, Count: g.Queued, Since: first.Since}
	if n := len(g.Jobs); n > 1 {
		one.Jobs = n
	}
	if g.booting() > 0 {
		e.say(&one, e.whyBooting(coming)...)
	}
	if g.booting() < g.Queued {
		e.say(&one, e.whyUnreserved(g, first)...)
	}
	return one
}

func jobSubject(j *Job) string { return drover.JobID{Number: j.Number, Index: -1}.String() }

// cause is what a held job waits for: a priority, a number of jobs to succeed or to end, or a single job.
type cause struct {
	succeed, end int
	one          int64
}

func causeOf(j *Job) cause {
	c := cause{succeed: len(j.After), end: len(j.AfterAny)}
	if c.succeed+c.end == 1 {
		c.one = slices.Concat(j.After, j.AfterAny)[0]
	}
	return c
}

// explainHeld explains jobs that may not start at all, grouped by cause.
func (e *Engine) explainHeld(x *explanations) {
	at := map[cause]int{}
	for j := range e.queue.All() {
		if !j.Held() {
			continue
		}
		i, seen := at[causeOf(j)]
		if !seen {
			if !x.room() {
				continue
			}
			i, at[causeOf(j)] = len(x.all), len(x.all)
			why, _ := e.whyHeld(j)
			x.add(drover.Explanation{Subject: jobSubject(j), Waiting: true, Since: why.Since, Reasons: verdict.Reasons(e.s.Now, why)})
		}
		x.all[i].Count += j.Queued.Count()
	}
}

// explainPostponed explains elements that may not start yet.
func (e *Engine) explainPostponed(x *explanations) {
	for j := range e.queue.All() {
		if len(j.Postponed) > 0 && !j.Held() && x.room() {
			id := drover.JobID{Number: j.Number, Index: -1}
			x.add(drover.Explanation{Subject: id.String(), Waiting: true, Count: j.Postponed.Count(), Since: j.Since, Reasons: verdict.Reasons(e.s.Now, e.whyPostponed(j, id)...)})
		}
	}
}

// explainInstances explains instances that do not run as usual.
func (e *Engine) explainInstances(x *explanations) {
	for _, in := range e.fleet.All() {
		coming := !in.State.Ready() && (in.State != drover.InstanceUnknown || in.Reason == nil)
		usual := in.TakesWork() && !e.s.Draining && (in.Connected || in.NoLogin || coming)
		if !usual && x.room() {
			x.add(e.explainInstance(in))
		}
	}
}

func (e *Engine) explainBlocks(x *explanations) {
	for _, b := range e.market.Blocks() {
		if x.room() {
			x.add(e.explainBlock(b))
		}
	}
}

// explainBudgets explains exceeded limits.
func (e *Engine) explainBudgets(x *explanations) {
	for _, b := range e.Budgets() {
		text := ""
		switch {
		case b.Hard > 0 && b.Spent+b.Committed > b.Hard:
			text = fmt.Sprintf("spending and commitments exceed its hard limit of %v: %v has been spent, and %v is committed to running work; nothing more is rented or started under this budget", b.Hard, b.Spent, b.Committed)
		case b.Soft > 0 && b.Spent > b.Soft:
			text = fmt.Sprintf("its soft limit of %v is exceeded: %v has been spent; this is only a warning", b.Soft, b.Spent)
		default:
			continue
		}
		if x.room() {
			x.add(drover.Explanation{Subject: fmt.Sprintf("%s budget of %s", b.Window, budget.Whose(b.Scope)), Reasons: verdict.Reasons(e.s.Now, Verdict{Cause: drover.ReasonBudget, Text: text, Since: b.Since, Until: b.Until})})
		}
	}
}

// ExplainBlock explains the block with a subject, written as CLOUD/ZONE/TYPE/MARKET, if there is one.
func (e *Engine) ExplainBlock(subject string) (drover.Explanation, bool) {
	for _, b := range e.market.Blocks() {
		if b.Subject() == subject {
			return e.explainBlock(b), true
		}
	}
	return drover.Explanation{}, false
}

// blockReason explains a block, and what ends it.
func (e *Engine) blockReason(b Block) Verdict {
	why := b.Reason
	why.Text = blockText(b) + cureOf(b)
	return why
}

func (e *Engine) explainBlock(b Block) drover.Explanation {
	return e.explained(b.Subject(), e.blockReason(b))
}

// blockText says why the block exists and, if its time is over, what it waits for.
func blockText(b Block) string {
	switch {
	case b.Over && b.ForInterruptions():
		return b.Reason.Text + "; Drover will test it with a single instance"
	case b.Probe != 0:
		return b.Reason.Text + "; Drover will test it with a single create request"
	case b.Over:
		return b.Reason.Text + "; the next create request will test it"
	}
	return b.Reason.Text
}

// cureOf says what an operator can do about the block besides waiting.
func cureOf(b Block) string {
	switch drover.ErrorKind(b.Reason.Cause) {
	case drover.KindQuota:
		return "; request a higher quota, or wait until an instance is gone"
	case drover.KindCapacity:
		return "; other types, zones or markets may be available"
	case drover.KindAuthentication, drover.KindForbidden:
		return "; fix this cloud's credentials or their permissions"
	case drover.KindUnsupported, drover.KindInvalid, drover.KindNotFound:
		return "; it will be refused again until the cloud's configuration changes"
	}
	return ""
}
