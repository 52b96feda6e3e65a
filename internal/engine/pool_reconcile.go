package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/pool"
	"drover/internal/engine/verdict"
)

// reconcilePools brings each pool to its size, and releases instances of pools that are no longer configured. After the
// first time in a decision, it visits only what has changed since.
func (e *Engine) reconcilePools(first bool) {
	if len(e.pools.list)+len(e.pools.members) == 0 || e.s.Draining || e.s.Closing || !e.recordsCurrent() {
		return
	}
	over := e.ledger.Overspent()
	for _, p := range e.pools.list {
		if p.seen != e.pools.revision || p.inUse != e.inUse(p) || first && (!p.settled || over || e.due(p.next)) {
			e.reconcilePool(p)
		}
	}
	for _, name := range slices.Clone(e.pools.names) {
		if e.pool(name) == nil {
			e.releaseAll(name)
		}
	}
}

// releaseAll releases the instances of a pool that is no longer configured.
func (e *Engine) releaseAll(name string) {
	for _, in := range slices.Clone(e.pools.members[name]) {
		if !e.leaving(in) && !in.Held() {
			e.removeInstance(in, e.verdict(drover.ReasonPool, "pool %s is no longer configured", name))
		}
	}
}

// mostRounds is far more plans than one decision needs.
const mostRounds = 100

// reconcilePool carries out plans until nothing is left to do now. A place that cannot meet a demand is closed for the
// remaining plans.
func (e *Engine) reconcilePool(p *poolOf) {
	p.settled, p.seen, p.next, p.inUse = false, e.pools.revision, 0, e.inUse(p)
	if why := e.unknownTo(p); why != nil {
		e.setPoolReason(p, *why)
		return
	}
	closed, marked, limited := closings{}, false, false
	for range mostRounds {
		in := e.poolInput(p, closed)
		plan := pool.Reconcile(in)
		over := e.shrinkOverspent(p, &in)
		if !plan.Settled && !marked { // irrelevant to a settled pool
			marked = true
			e.markExhausted(p)
			continue
		}
		if over {
			plan = pool.Reconcile(in)
			plan.Demands, plan.Starts = nil, nil
		}
		for _, id := range plan.Stops {
			e.beginStop(e.fleet.Member(id))
		}
		for _, id := range plan.Starts {
			e.startFor(p, e.fleet.Member(id))
		}
		for _, r := range plan.Releases {
			e.removeInstance(e.fleet.Member(r.ID), e.whyReleased(p, r.Why, plan.Wanted))
		}
		for _, d := range plan.Demands {
			if why := e.rentFor(p, d); why != nil {
				closed[d] = *why
				limited = limited || why.Cause == verdict.Limit
				break
			}
		}
		if plan.Asks() || e.meetTarget(p, in, plan, closed) {
			continue
		}
		p.settled, p.seen, p.next = plan.Settled && !over, e.pools.revision, plan.Next
		if over {
			e.setPoolReason(p, e.whyOverspent(p))
			return
		}
		if e.recordPoolState(p, in, plan, closed); plan.Short > 0 && limited && !p.grouped() {
			e.makeRoom(p, plan.Short)
		}
		return
	}
}

// unknownTo returns what a cloud of the pool must still report before anything is done; nil if nothing. Unknown is not
// empty: each must have been listed, and have returned its types unless that keeps failing.
func (e *Engine) unknownTo(p *poolOf) *Verdict {
	for _, name := range p.spec.Clouds {
		switch c := e.cloud(name); {
		case c == nil || e.limits(name).Leaving:
		case c.Listed == 0:
			return new(e.verdict(drover.ReasonUnlisted, "cloud %s has not listed its instances yet", name))
		case !c.Known && c.Fails < 2:
			return new(e.verdict(drover.ReasonCatalogue, "the instance types of cloud %s are not known yet", name))
		}
	}
	return nil
}

// shrinkOverspent lowers the pool's size by one if more is committed than the budget allows, and reports whether it
// did. The pool's min is not undercut. Each instance that goes releases its commitment.
func (e *Engine) shrinkOverspent(p *poolOf, in *pool.Input) bool {
	if p.spec.Kind == drover.PoolFloor || p.grouped() || !e.ledger.Overspent() {
		return false
	}
	if e.watchBudgets(); !e.ledger.Overspent() { // since some were released
		return false
	}
	counted := 0
	for _, v := range in.Views {
		inUse := v.Busy > 0 || v.Held
		if !v.Going && !v.Stopped && !v.UsedByJobs() && !(inUse && p.spec.Kind == drover.PoolSpare) {
			counted++
		}
	}
	in.Count = min(in.Count, max(0, counted-1))
	return true
}

// whyOverspent explains which budget keeps the pool from renting.
func (e *Engine) whyOverspent(p *poolOf) Verdict {
	for _, o := range e.usable(p, pool.Place{}) {
		if a := e.refusesPool(o); a != nil {
			return e.why(a)
		}
	}
	return e.verdict(drover.ReasonBudget, "the budget is used up")
}

// poolInput returns the pool as its reconciler sees it.
func (e *Engine) poolInput(p *poolOf, closed closings) pool.Input {
	in := pool.Input{Spec: *p.spec, Now: e.s.Now, Count: p.count - len(p.failed), InUse: e.inUse(p), Stuck: p.failing()}
	for _, one := range e.pools.members[p.Name] {
		in.Views = append(in.Views, e.viewOf(one))
	}
	if p.CannotStop.Cause != "" {
		in.Spec.Stopped = min(in.Spec.Stopped, countStopped(in.Views))
	}
	in.Zones = e.zonesOf(p, closed)
	return in
}

// inUse returns how many of the fleet's instances run jobs, for a pool with a ratio.
func (e *Engine) inUse(p *poolOf) int {
	if p.spec.Ratio == 0 {
		return 0
	}
	if e.pools.inUseAt != e.fleet.Revision() {
		e.pools.inUseAt, e.pools.inUse = e.fleet.Revision(), 0
		for _, in := range e.fleet.All() {
			if in.State == drover.InstanceRunning {
				e.pools.inUse++
			}
		}
	}
	return e.pools.inUse
}

// failing reports whether instances of the current template do not become ready.
func (p *poolOf) failing() bool { return p.Template == p.spec.Template && p.Failed >= replacesLeast }

// viewOf returns an instance as its pool's reconciler sees it.
func (e *Engine) viewOf(in *fleet.Member) pool.View {
	busy := len(in.Load)
	for _, b := range in.Reservations {
		busy += b.Count
	}
	price := in.Price
	if in.Rests() {
		price = in.RunPrice
	}
	spec := e.poolSpec(in)
	return pool.View{
		Stopped: in.State == drover.InstanceStopped && !in.Waking, Stoppable: e.stoppable(in), Startable: e.startable(in), Retry: in.Retry, Lent: in.Lent && (busy > 0 || !in.State.Ready()),
		Place: pool.Place{Cloud: in.Cloud, Zone: in.Zone}, ID: in.ID, Template: in.Template, Asked: cmp.Or(in.Created, in.Asked), Price: price,
		OnDemand: in.Market == drover.OnDemand, Ready: in.State.Ready() && e.passesCheck(in) && (in.Joined != 0 || !e.inGroup(in)), Busy: busy, Held: in.Held(), Going: e.leaving(in), Keep: cmp.Or(in.IdleSince, in.Asked).Add(e.life().IdleTimeout),
		Taken: spec != nil && spec.Kind == drover.PoolSpare && in.Owner != "" && !in.Isolated(), Useless: e.jobless(in),
	}
}

// jobless reports whether an instance of a pool for jobs runs none any more, for the way that users share it.
func (e *Engine) jobless(in *fleet.Member) bool {
	spec := e.poolSpec(in)
	return spec != nil && spec.Jobs && in.Mismatched()
}

func countStopped(views []pool.View) (n int) {
	for _, v := range views {
		if v.Stopped && !v.Going {
			n++
		}
	}
	return n
}

// startFor starts a stopped instance of a pool that has too few, if affordable; otherwise it is not considered for a
// while.
func (e *Engine) startFor(p *poolOf, in *fleet.Member) {
	if e.beyondBudget(p, asRunning(in).Offering()) != nil {
		in.Retry = e.s.Now.Add(startPause)
		return
	}
	e.wake(in, false, e.verdict(drover.ReasonPool, "pool %s has too few instances", p.Name))
}

// leaving reports whether an instance is leaving, so that it does not count in its pool.
func (e *Engine) leaving(in *fleet.Member) bool {
	_, departs := e.departs(in)
	return departs || in.State == drover.InstanceStopping || in.Broken || in.Reclaimed != nil || in.Unhealthy != nil
}

// removeInstance removes a pool's instance: immediately if nothing can be running there, otherwise by draining.
func (e *Engine) removeInstance(in *fleet.Member, why Verdict) {
	begun := in.State == drover.InstanceCreating || in.State == drover.InstanceStopped || in.State == drover.InstanceBooting && in.Ready == 0
	e.forgetDrain(in)
	known := in.NoLogin && e.nodeDrained(in) || begun || in.State == drover.InstanceIdle && in.Connected && len(in.Orphans) == 0 && e.s.Now >= in.KeepUntil && e.nodeDrained(in)
	if known && len(in.Load) == 0 {
		e.stop(in, why)
		return
	}
	e.note(Note{Level: Info, Text: fmt.Sprintf("draining instance %s: %s", in.Name, why.Text), Instance: in.Name, Reason: new(why.Reason())})
	e.setIdleBehavior(in, drover.IdleDrain, &why)
}

func (e *Engine) whyReleased(p *poolOf, why pool.Why, wanted int) Verdict {
	switch why {
	case pool.Outdated:
		return e.verdict(drover.ReasonPool, "pool %s has a new template", p.Name)
	case pool.Aged:
		return e.verdict(drover.ReasonAge, "it is older than the %v that pool %s allows", p.spec.MaxAge, p.Name)
	case pool.Unusable:
		return e.verdict(drover.ReasonPool, "it runs no more jobs for pool %s, since instances.sharing or the records have changed", p.Name)
	case pool.Misplaced:
		return e.verdict(drover.ReasonPool, "its zone no longer belongs to pool %s", p.Name)
	case pool.Unkept:
		return e.verdict(drover.ReasonPool, "pool %s keeps %s stopped", p.Name, countOf(p.spec.Stopped, "instance"))
	case pool.Unbalance:
		return e.verdict(drover.ReasonPool, "its zone has more instances of pool %s than another zone", p.Name)
	}
	if e.ledger.Overspent() {
		return e.verdict(drover.ReasonBudget, "it belongs to pool %s, and the budget is used up", p.Name)
	}
	return e.verdict(drover.ReasonPool, "pool %s needs only %s", p.Name, countOf(wanted, "instance"))
}

// recordPoolState records why a pool differs from its size, and reports when it stops replacing outdated instances.
func (e *Engine) recordPoolState(p *poolOf, in pool.Input, plan pool.Plan, closed closings) {
	outdated := slices.ContainsFunc(in.Views, func(v pool.View) bool { return !v.Going && v.Template != "" && v.Template != p.spec.Template })
	switch {
	case plan.Short > 0:
		e.setPoolReason(p, e.whyShort(p, countOf(plan.Short, "instance"), closed))
	case plan.ShortStopped > 0:
		e.setPoolReason(p, e.whyShort(p, countOf(plan.ShortStopped, "stopped instance"), closed))
	case plan.ShortSurge > 0:
		e.setPoolReason(p, e.whyShort(p, countOf(plan.ShortSurge, "replacement"), closed))
	case plan.Denied > 0:
		e.setPoolReason(p, e.verdict(drover.ReasonLimit, "%s missing; the pool's max is %d", countOf(plan.Denied, "instance"), p.spec.Max))
	case p.CannotStop.Cause != "":
		e.setPoolReason(p, p.CannotStop)
	case in.Stuck && outdated:
		was := p.Reason.Cause
		e.setPoolReason(p, e.verdict(drover.ReasonReplace, "%s with its current template did not become ready, so no more instances are replaced: fix the template", countOf(p.Failed, "instance")))
		if was != verdict.Replace {
			e.note(Note{Level: Warn, Text: fmt.Sprintf("pool %s: %s", p.Name, p.Reason.Text), Reason: new(p.Reason.Reason())})
		}
	case in.Stuck && slices.ContainsFunc(in.Views, func(v pool.View) bool { return !v.Going && !v.Stopped && !v.Ready }):
		e.setPoolReason(p, e.verdict(drover.ReasonBootTimeout, "the last %s did not become ready: fix the image, template, boot probe or health check; drover events shows each failure", countOf(p.Failed, "instance")))
	default:
		e.setPoolReason(p, Verdict{})
	}
}

// setPoolReason records what a pool waits for, and since when.
func (e *Engine) setPoolReason(p *poolOf, why Verdict) {
	if why.Cause == p.Reason.Cause {
		why.Since = p.Reason.Since
	}
	if p.Reason != why {
		p.Reason = why
		e.pools.reasons++
	}
}

// countTemplate records whether instances of the pool's template become ready.
func (e *Engine) countTemplate(in *fleet.Member, ready bool) {
	p := e.pool(in.Pool)
	if p == nil || in.Template != p.spec.Template {
		return
	}
	if p.Template != in.Template {
		p.Template, p.Failed = in.Template, 0
	}
	if p.Failed++; ready {
		p.Failed = 0
	}
	e.pools.revision++
}

// nextPools returns when time alone causes work for a pool; 0: never.
func (e *Engine) nextPools() (at drover.Time) {
	if e.s.Draining || e.s.Closing || !e.recordsCurrent() {
		return 0
	}
	for _, p := range e.pools.list {
		at = sooner(at, later(p.next, e.s.Now))
	}
	return at
}
