package engine

import (
	"fmt"
	"strings"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/pool"
)

// poolSubject prefixes a pool's name in an explanation.
const poolSubject = "pool/"

// groupSubject prefixes a node group's.
const groupSubject = "group/"

// Pools returns the configured pools by name, and others that still have instances. The values share no memory with the
// engine.
func (e *Engine) Pools() (list []drover.Pool) {
	for _, p := range e.pools.list {
		list = append(list, e.poolNow(p))
	}
	for _, name := range e.pools.names {
		if e.pool(name) == nil {
			list = append(list, e.removedPool(name))
		}
	}
	return list
}

// removedPool describes a pool that is no longer configured. Its held instances stay; the others are leaving.
func (e *Engine) removedPool(name string) drover.Pool {
	now := drover.Pool{Name: name, ByZone: map[string]int{}}
	for _, in := range e.pools.members[name] {
		if v := e.viewOf(in); v.Held && !v.Going {
			now.Instances++
			now.ByZone[v.String()]++
			if v.Ready {
				now.Ready++
			}
		} else {
			now.Leaving++
		}
	}
	text := "it is no longer configured, and its instances are being drained"
	if now.Instances > 0 {
		text = "it is no longer configured; its held instances stay until they are released or killed"
	}
	why := e.verdict(drover.ReasonPool, "%s", text)
	now.Reason = e.told(&why)
	return now
}

// poolNow describes a configured pool.
func (e *Engine) poolNow(p *poolOf) drover.Pool {
	now := drover.Pool{Name: p.Name, Kind: p.spec.Kind, Wanted: p.count, Keeps: p.spec.Stopped, ByZone: map[string]int{}}
	if p.grouped() {
		now.Min, now.Max = p.spec.Min, p.spec.Max
	}
	for _, in := range e.pools.members[p.Name] {
		v := e.viewOf(in)
		if v.Going || !v.Held && !p.spec.Allows(v.Place) {
			now.Leaving++
			continue
		}
		if v.Stopped {
			now.Stopped++
			continue
		}
		if v.UsedByJobs() {
			now.Lent++
			continue
		}
		now.Instances++
		now.ByZone[v.String()]++
		if v.Ready {
			now.Ready++
		}
		if v.Ready && v.Busy == 0 && !v.Held && !v.Taken {
			now.Idle++
		}
		if v.Template != "" && v.Template != p.spec.Template {
			now.Outdated++
		}
	}
	now.Reason = e.told(e.whyUnfilled(p))
	return now
}

// whyUnfilled returns why the pool differs from its size or, if a network failure is assumed, why its instances do not
// pass their health checks; nil otherwise.
func (e *Engine) whyUnfilled(p *poolOf) *Verdict {
	switch {
	case e.s.Closing:
		return new(e.verdict(drover.ReasonClosing, closingText))
	case e.s.Draining || !e.recordsCurrent():
		return new(e.whyNothingStarts())
	case len(p.failed) > 0:
		last := p.failed[len(p.failed)-1].Why
		last.Text = fmt.Sprintf("%s failed and must be deleted by the autoscaler; the last failure: %s", countOf(len(p.failed), "node"), last.Text)
		return &last
	case p.Reason.Cause != "":
		return new(p.Reason)
	}
	for _, in := range e.pools.members[p.Name] {
		if c := e.cloud(in.Cloud); c != nil && c.Checks.Since != 0 && in.State.Ready() && !e.passesCheck(in) && !e.leaving(in) {
			return new(e.whyUnchecked(c))
		}
	}
	return nil
}

// explainPool explains a pool's size, its instances, and what is missing.
func (e *Engine) explainPool(subject string) (x drover.Explanation, ok bool) {
	name, is := strings.CutPrefix(subject, poolSubject)
	if group, so := strings.CutPrefix(subject, groupSubject); so {
		name, is = group, e.pool(group) == nil || e.pool(group).grouped()
	}
	if !is {
		return x, false
	}
	for _, p := range e.Pools() {
		if p.Name == name {
			x = e.explainedPool(p)
			e.say(&x, e.whyLate(e.pools.members[name])...)
			if p.Reason != nil && p.Reason.Code == drover.ReasonBudget {
				e.say(&x, e.budgetUses(budget.Payer{})...)
			}
			e.say(&x, present(e.whyNoNext(name))...)
			x.Subject = subject
			return x, true
		}
	}
	return x, false
}

// whyNoNext returns why a node group would not get another node now; nil if it would, or is not a node group.
func (e *Engine) whyNoNext(name string) *Verdict {
	p := e.pool(name)
	switch {
	case p == nil || !p.grouped():
		return nil
	case p.count >= p.spec.Max:
		return new(e.verdict(drover.ReasonPool, "it has reached its max of %d, so its autoscaler requests no more nodes", p.spec.Max))
	}
	_, why := e.rentable(p, pool.Demand{Place: p.place()})
	if why != nil {
		why.Text = "it cannot get another node now: " + why.Text
	}
	return why
}

func (e *Engine) explainedPool(p drover.Pool) drover.Explanation {
	x := drover.Explanation{Subject: poolSubject + p.Name, Since: e.s.Configured}
	if p.Reason != nil {
		x.Since, x.Reasons = p.Reason.Since, append(x.Reasons, *p.Reason)
	}
	text := fmt.Sprintf("it has %s, %d ready", countOf(p.Instances, "instance"), p.Ready)
	if p.Kind != "" {
		size := string(p.Kind)
		if p.Kind == drover.PoolGroup {
			size = "target size"
		}
		ratio := ""
		q := e.pool(p.Name)
		inUse := e.inUse(q)
		if share := q.spec.Share(inUse); share > p.Wanted {
			ratio = fmt.Sprintf(", raised to %d by its ratio, with %s in use", share, countOf(inUse, "instance"))
		}
		text = fmt.Sprintf("its %s is %d%s; %s", size, p.Wanted, ratio, text)
	}
	if p.Keeps+p.Stopped > 0 {
		text += fmt.Sprintf(", %d of %d stopped", p.Stopped, p.Keeps)
	}
	if p.Lent > 0 {
		text += fmt.Sprintf(", %d more started for jobs", p.Lent)
	}
	if p.Outdated > 0 {
		text += fmt.Sprintf(", %d with an older template", p.Outdated)
	}
	if p.Leaving > 0 {
		text += fmt.Sprintf(", %d leaving", p.Leaving)
	}
	e.say(&x, Verdict{Cause: drover.ReasonPool, Text: text, Since: e.s.Configured})
	return x
}

// explainPools explains pools that differ from their size.
func (e *Engine) explainPools(all *explanations) {
	for _, p := range e.Pools() {
		if p.Reason != nil && all.room() {
			all.add(e.explainedPool(p))
		}
	}
}
