package engine

import (
	"cmp"
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/market"
)

// The elements of a gang, which are consecutive in an array, start together or not at all. One decision starts a gang:
// it has a place for each element that is not final. If an element is to be retried, the others that still run are
// stopped and requeued like those of a job whose priority became 0: that does not count as an attempt. Until the last
// of them has ended, the gang's waiting elements are postponed. If an element fails or is cancelled, the others would
// wait for it at a cost, so they are cancelled.

// gangLive returns the live attempts of an element's gang.
func (e *Engine) gangLive(j *Job, index int) (live []*Attempt) {
	first, last := j.GangOf(index)
	for i := first; i <= last; i++ {
		if a := e.fleet.Attempt(drover.JobID{Number: j.Number, Index: i}); a != nil {
			live = append(live, a)
		}
	}
	return live
}

// GangAddresses returns where an element's gang runs, by index in the gang: each instance's private address if it has
// one and all are in one cloud, else its public one. That of an element without a live attempt is empty.
func (e *Engine) GangAddresses(id drover.JobID) (all []string) {
	j := e.job(id.Number)
	if j == nil {
		return nil
	}
	live := e.gangLive(j, id.Index)
	cloudOf := func(a *Attempt) string { return e.fleet.Member(a.Instance).Cloud }
	apart := slices.ContainsFunc(live, func(a *Attempt) bool { return cloudOf(a) != cloudOf(live[0]) })
	first, last := j.GangOf(id.Index)
	all = make([]string, last-first+1)
	for _, a := range live {
		at := e.fleet.Member(a.Instance).Addresses
		address := cmp.Or(at.Private, at.Public)
		if apart {
			address = cmp.Or(at.Public, at.Private)
		}
		all[a.ID.Job.Index-first] = address
	}
	return all
}

// markIncomplete postpones the waiting elements of gangs with live attempts, before the engine starts from a State.
func (s State) markIncomplete() {
	there := make(map[int64]bool, len(s.Instances))
	for _, in := range s.Instances {
		there[in.ID] = true
	}
	for _, a := range s.Attempts {
		at, ok := slices.BinarySearchFunc(s.Jobs, a.ID.Job.Number, func(j Job, number int64) int { return cmp.Compare(j.Number, number) })
		if !ok || s.Jobs[at].Gang == 0 || !there[a.Instance] {
			continue
		}
		j := &s.Jobs[at]
		for _, i := range j.Gangmates(a.ID.Job.Index) {
			j.Postponed.Add(i)
		}
	}
}

// stopSiblings stops the running attempts of the gang of an element that is to be retried. While the records may be
// stale, it is not known whether they started together.
func (e *Engine) stopSiblings(j *Job, index int, why Verdict) {
	if j.Gang == 0 || !e.recordsCurrent() {
		return
	}
	for _, a := range e.gangLive(j, index) {
		e.stopAttempt(a, e.verdict(drover.ReasonGang, "its gang must restart because of %s: %s", e.jobName(j, index), why.Text))
	}
}

// endGang cancels the rest of the gang of an element that is final without having succeeded. The caller writes the job.
func (e *Engine) endGang(j *Job, row ElementRow) {
	index := row.Element.Index
	why := e.verdict(drover.ReasonDependency, "its gang cannot continue: %s %s", e.jobName(j, index), row.State)
	for _, a := range e.gangLive(j, index) {
		e.stopAttempt(a, why)
	}
	for _, i := range j.Gangmates(index) {
		j.Unqueue(i)
		e.finishElement(j, ElementRow{Element: *j.Element(i), State: drover.JobCancelled, Reason: why.Reason()})
	}
	e.regroup(j)
}

// whyGang says how many elements of the group's next gang have places.
func (e *Engine) whyGang(g *group) []Verdict {
	if g.Key.Gang == 0 || g.Queued == 0 {
		return nil
	}
	n := g.Next()
	text := fmt.Sprintf("%d jobs start together or not at all; places so far: %d on ready instances, %d on booting ones", n, g.Standby, min(g.reserved, n-g.Standby))
	return []Verdict{{Cause: drover.ReasonGang, Text: text, Since: max(g.Reason.Since, g.Jobs[0].Since)}}
}

// Nothing of a plan is rented for an incomplete gang: gangs that cannot be rented for completely are dropped with those
// after them in their group, and the rest is planned again.

// admission filters a plan so that it contains only complete gangs.
type admission struct {
	s         *Solving
	purchases []drover.Purchase
	of        map[*group][]int // indices of the purchases for a gang's group
	taken     []purchaseCost   // cost of the purchases checked, in order
	sums      []drover.Money   // their sums per account
	room      int              // instances that may be added after them
	clouds    map[string]int   // their number per cloud
	left      market.Limits    // what they leave of the limits within clouds
}

// purchaseCost is what one purchase uses.
type purchaseCost struct {
	made bool // it is still wanted
	of   drover.Offering
	sums []drover.Money // per account; nil if it is not affordable
}

// admitGangs returns a plan's purchases without what would be rented for incomplete gangs.
func (e *Engine) admitGangs(s *Solving, plan drover.Plan) []drover.Purchase {
	if !slices.ContainsFunc(s.Groups, func(k GroupKey) bool { return k.Gang > 0 }) {
		return plan.Purchases
	}
	w := &admission{s: s, purchases: slices.Clone(plan.Purchases), of: map[*group][]int{}, sums: make([]drover.Money, len(e.ledger.Accounts())), room: e.room(), clouds: map[string]int{}, left: e.limitsLeft()}
	for i := range w.purchases {
		p := &w.purchases[i]
		p.Loads = slices.Clone(p.Loads)
		for _, l := range p.Loads {
			if g := s.demanded(l.Demand); g != nil && g.Key.Gang > 0 {
				w.of[g] = append(w.of[g], i)
			}
		}
	}
	for _, g := range s.groups {
		if g != nil && g.Key.Gang > 0 {
			e.trim(w, g)
		}
	}
	for len(w.taken) < len(w.purchases) {
		next := len(w.taken)
		if g, why := e.admitNext(w); g != nil {
			before := 0
			e.loadsOf(w, g, func(i int, l *drover.Load) {
				if i < next {
					before += l.Count
				}
			})
			e.drop(w, g, why, g.completes(before))
			w.rewind(w.of[g][0])
		}
	}
	return w.purchases
}

// trim cuts the plan for a gang's group to what completes whole gangs with the places it already has.
func (e *Engine) trim(w *admission, g *group) {
	served := 0
	e.loadsOf(w, g, func(_ int, l *drover.Load) { served += max(0, l.Count) })
	if served == 0 {
		return
	}
	if left := g.completes(min(served, g.netDemand())); left > 0 {
		e.cut(w, g, left)
		return
	}
	e.drop(w, g, e.verdict(drover.ReasonGang, "not all instances for the gang can be rented"), 0)
	g.PartlyPlanned = served
}

// completes returns how many of n more places complete whole gangs with the places that the group already has.
func (g *group) completes(n int) int {
	has := g.Standby + g.reserved
	return max(0, g.WholeWithin(has+n)-has)
}

// cut reduces the plan for a gang's group to its first places.
func (e *Engine) cut(w *admission, g *group, left int) {
	e.loadsOf(w, g, func(_ int, l *drover.Load) {
		l.Count = min(l.Count, left)
		left -= l.Count
	})
}

// loadsOf calls do for each load of a gang's group, with the number of its purchase.
func (e *Engine) loadsOf(w *admission, g *group, do func(purchase int, l *drover.Load)) {
	last := -1
	for _, i := range w.of[g] {
		if i == last { // a purchase is named once for each of its loads
			continue
		}
		last = i
		for k := range w.purchases[i].Loads {
			if l := &w.purchases[i].Loads[k]; w.s.demanded(l.Demand) == g {
				do(i, l)
			}
		}
	}
}

// drop removes a gang's group from the plan, except for its first places. Others may use what that leaves, so they are
// planned for again without it.
func (e *Engine) drop(w *admission, g *group, why Verdict, first int) {
	e.cut(w, g, first)
	if g.PartlyPlanned = 0; g.Queued == 0 {
		return
	}
	if !g.Unschedulable || why.Cause != drover.ReasonGang { // otherwise the plan has said why
		e.markUnschedulable([]*group{g}, why)
	}
	g.Deferred, e.pending.GangDropped, e.pending.Place = true, true, true
}

// admitNext checks the next purchase. If it is impossible and a gang's group needs it, it returns that group and why.
func (e *Engine) admitNext(w *admission) (*group, Verdict) {
	p := w.purchases[len(w.taken)]
	loads := e.stillWanted(w.s, p.Loads)
	if len(loads) == 0 {
		w.taken = append(w.taken, purchaseCost{})
		return nil, Verdict{}
	}
	gang := slices.IndexFunc(loads, func(l wanted) bool { return l.g.Key.Gang > 0 })
	o, ok := w.s.first(p)
	if ok && gang >= 0 && tooExpensive(e.withVolume(o, e.volume(o, loads)), loads[gang:gang+1]) {
		return loads[gang].g, e.whyVolumeExpensive(loads[gang].g, o, loads[gang].count)
	}
	t := purchaseCost{made: true, of: o}
	ok = ok && e.market.BlockOf(o) == nil && !e.usedUp(o) && w.room > 0 && w.clouds[o.Cloud] < e.cloudRoom(o.Cloud) && w.left.Passed(o) == nil
	var dear *budget.Account
	if ok && e.limited() {
		t.sums, dear = e.affords(w, o, loads, e.heldSlotCommitments(w, loads))
	}
	w.take(t, 1)
	w.taken = append(w.taken, t)
	switch {
	case gang < 0 || ok && dear == nil:
		return nil, Verdict{}
	case dear != nil:
		return loads[gang].g, e.whyUnpaid(loads[gang].g, dear)
	}
	return loads[gang].g, e.verdict(drover.ReasonGang, "the planned instances are no longer available")
}

// take adds what a purchase uses up, or with -1 subtracts it.
func (w *admission) take(t purchaseCost, n int) {
	if !t.made {
		return
	}
	w.room -= n
	w.clouds[t.of.Cloud] += n
	w.left.Take(n, t.of)
	for i, sum := range t.sums {
		w.sums[i] += sum * drover.Money(n)
	}
}

// rewind undoes the purchases from number to on, which are checked again: one of them has shrunk.
func (w *admission) rewind(to int) {
	for _, t := range w.taken[to:] {
		w.take(t, -1)
	}
	w.taken = w.taken[:to]
}

// heldSlotCommitments returns what gangs will commit on the ready slots they hold, if the next purchase is the first
// for the rest of them.
func (e *Engine) heldSlotCommitments(w *admission, loads []wanted) (all []budget.Commitment) {
	for _, l := range loads {
		if l.g.Key.Gang > 0 && l.g.Standby > 0 && w.of[l.g][0] == len(w.taken) {
			e.catchUp(l.g, e.fleet.Index()) // since the last placement, or for an engine that has had none
			slots := e.takeSlots(l.g, l.g.Standby, orders[0])
			returnSlots(l.g, slots)
			all = append(all, e.slotCommitments(l.g, slots)...)
		}
	}
	return all
}

// affords returns what a purchase, and what starts elsewhere together with it, adds to each account. If the budgets do
// not allow it after the earlier purchases, it returns the account that would be overdrawn.
func (e *Engine) affords(w *admission, o drover.Offering, loads []wanted, with []budget.Commitment) ([]drover.Money, *budget.Account) {
	o = e.withVolume(o, e.volume(o, loads))
	all, accounts := append(with, e.rental([]drover.Offering{o}, loads...)), e.ledger.Accounts()
	sums := make([]drover.Money, len(accounts))
	for i, a := range accounts {
		sums[i] = e.ledger.AddsAll(a, all)
	}
	if a := e.ledger.Worst(func(i int, _ *budget.Account) (more, less drover.Money) { return w.sums[i] + sums[i], 0 }); a != nil {
		return nil, a
	}
	return sums, nil
}
