package engine

import (
	"fmt"
	"slices"

	"drover"
)

// What a budget refuses now it may allow when it begins anew. What costs more than a whole window of it has, it never allows: that waits until the
// configuration changes, or what is offered, and is told so. It is not cancelled, since a budget that is raised for a while is no reason to submit again.

// asked is what a group asks for at least: one job, or a gang of so many; on what is there, where there is something that can hold it.
type asked struct {
	key    GroupKey
	count  int
	hosted bool
}

// whyUnpaid says why an account refuses what a group asks for, and until when; or that none of its windows can ever pay that.
func (e *Engine) whyUnpaid(g *group, a *account) drover.Reason {
	if why := e.whyNeverPaid(g); why != nil {
		return e.reason(why.Code, "%s", why.Text)
	}
	return e.why(a)
}

// whyNeverPaid says that no budget's window can ever pay the least that a group asks for; nil if each can.
func (e *Engine) whyNeverPaid(g *group) *drover.Reason {
	if g.queued == 0 {
		return nil
	}
	ask := asked{g.key, 1, e.hosted(g)}
	if g.key.Gang > 0 {
		_, members := g.nextGang()
		ask.count = len(members)
	}
	why, known := e.unpayable[ask]
	if !known {
		if len(e.unpayable) >= singlesMost {
			clear(e.unpayable)
		}
		why = e.neverPaid(ask)
		e.unpayable[ask] = why
	}
	return why
}

// neverPaid is whyNeverPaid for what a group asks for. A job on an instance that is there may cost the fleet nothing more.
func (e *Engine) neverPaid(ask asked) *drover.Reason {
	for _, a := range e.windows() {
		if a.fleets() && ask.hosted {
			continue
		}
		if why := e.neverPaidBy(a, ask, e.rentable()); why != nil {
			return why
		}
	}
	return nil
}

// neverPaidBy says that no window of an account's kind can ever pay what is asked for on any of the offerings; nil if one can.
func (e *Engine) neverPaidBy(a *account, ask asked, offers []drover.Offering) *drover.Reason {
	least, of := e.leastOf(a, ask, offers)
	if least <= a.limit {
		return nil
	}
	what, timeout, boot := "it", "a shorter timeout", ""
	if ask.count > 1 {
		what = fmt.Sprintf("%d that begin together", ask.count)
	}
	if ask.key.Timeout == 0 {
		timeout = "a timeout, without which it counts as an hour"
	}
	if !ask.hosted {
		boot = fmt.Sprintf(", with a boot of up to %v", e.life().BootTimeout)
	}
	why := e.reason(drover.ReasonBudget, "%s can never pay %s: up to %v%s on %s%s; raise it to that, or give the job %s, or a cheaper offering",
		a.words(), what, least, a.spell(), of.Name(), boot, timeout)
	return &why
}

// leastOf is no more than what binds of an account's money what is asked for in a window that begins with it, on whichever of the offerings it binds least of
// it; 0 if none can hold it, or what it costs is not the account's.
func (e *Engine) leastOf(a *account, ask asked, offers []drover.Offering) (least drover.Money, of drover.Offering) {
	if !a.fleets() && !a.budget.covers(ask.key) {
		return 0, of
	}
	window, p := a.emptied(e.s.Now), pledge{loads: []wanted{{&group{key: ask.key}, 1}}}
	if !ask.hosted {
		p.boots = e.life().BootTimeout
	}
	for _, o := range offers {
		if !ask.key.Shape.Accepts(o) {
			continue
		}
		o.Price = e.leastPrice(o)
		p.offers = []drover.Offering{o}
		cost := e.adds(window, p) * drover.Money(ask.count)
		if a.fleets() && !e.life().UseOnce {
			cost /= drover.Money(max(1, o.Type.Resources.Times(ask.key.Shape.Need, ask.count)))
		}
		if of.Cloud == "" || cost < least {
			least, of = cost, o
		}
	}
	return least, of
}

// leastPrice is what an hour of an offering may come to cost: as reserved, if any of it may be.
func (e *Engine) leastPrice(o drover.Offering) drover.Money {
	least := o.Price
	for _, r := range e.limits(o.Cloud).Reserved {
		if r.Type == o.Type.Name && o.Market == drover.OnDemand {
			least = min(least, r.Price)
		}
	}
	return least
}

// windows is the present windows of the hard budgets, and the limit on all that the fleet costs.
func (e *Engine) windows() (all []*account) {
	b := e.book()
	for i := range b.accounts {
		if a := &b.accounts[i]; a.present && a.limit > 0 {
			all = append(all, a)
		}
	}
	return all
}

// emptied is a window as long as the account's that begins now.
func (a *account) emptied(now drover.Time) *account {
	empty := &account{budget: a.budget, window: a.window, from: now, to: never, limit: a.limit}
	if a.budget != nil {
		empty.to = now.Add(a.to.Sub(a.from))
	}
	return empty
}

// words names the account's budget.
func (a *account) words() string {
	if a.budget == nil {
		return fmt.Sprintf("the limit of %v on all that the fleet costs", a.limit)
	}
	return fmt.Sprintf("the %s budget of the %s, %v,", a.window, a.budget.Scope(), a.limit)
}

// spell is how long one of the account's windows is, in words that follow an amount.
func (a *account) spell() string {
	if a.budget == nil {
		return ""
	}
	return [windows]string{" in an hour", " in a day", " in a month"}[a.window]
}

// fullSince is since when as much of an account as now is spent or promised: since the last was begun that it counts, or was found to pass it.
func (e *Engine) fullSince(a *account) (since drover.Time) {
	if a.present && a.budget != nil {
		since = a.from
		if s := e.spending(a.budget.Scope()); s != nil {
			since = max(since, s.Spells[a.window].Told)
		}
	}
	for _, in := range e.instances {
		if a.fleets() || slices.ContainsFunc(in.Bound, func(b Binding) bool { return a.budget.covers(b.Group) }) {
			since = max(since, in.Asked)
		}
		for _, t := range in.load {
			if a.fleets() || a.budget.covers(e.keyOf(e.job(t.ID.Job.Number))) {
				since = max(since, t.Started)
			}
		}
	}
	if since == 0 {
		return e.s.Configured
	}
	return since
}
