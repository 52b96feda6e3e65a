package engine

import (
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/market"
	"drover/internal/engine/verdict"
	"drover/internal/runtimes"
)

// plan requests a solve for work that has neither a place nor a reservation and for which the last solve did not
// already find nothing.
func (e *Engine) plan() {
	if e.nothingStarts() {
		e.allWait(e.groups, e.whyNothingStarts())
		return
	}
	if e.s.Solving != nil {
		e.planAgain()
		return
	}
	if e.s.Closing {
		e.allWait(e.groups, e.verdict(drover.ReasonClosing, closingText))
		return
	}
	saved := e.lookForSaver()
	e.forgetUnmet()
	e.growVolumes()
	var demands []*group
	e.pending.Await = 0
	rooms, patient := map[*Attempt]runtimes.Points{}, false
	for _, g := range e.groups {
		left := g.netDemand()
		if g.awaitingEnds = 0; left > g.Unmet && !g.Deferred {
			g.awaitingEnds = e.countAwaitedEnds(g, left, rooms)
			patient = patient || g.awaitingEnds > 0 && g.Key.MaxWait > 0
		}
		if left -= g.awaitingEnds; g.awaitingEnds > 0 && left == 0 {
			g.setReason(e.whyEnding(g))
		} else if left > g.Unmet && !g.Deferred && g.Key.Gang == 0 && e.awaitsAnswer(g) {
			g.setReason(e.verdict(drover.ReasonEnding, answerText))
		} else if left > g.Unmet && !g.Deferred {
			demands = append(demands, g)
		} else if left == 0 && g.reserved > 0 {
			g.setReason(e.verdict(drover.ReasonBooting, bootingText))
		}
	}
	if patient && e.pending.Patience <= e.s.Now {
		e.pending.Patience = e.s.Now.Add(lookEvery)
		e.pending.Await = sooner(e.pending.Await, e.pending.Patience)
	}
	if demands = e.startLendable(demands); len(demands) == 0 {
		return
	}
	if len(e.enabled()) == 0 {
		e.markUnschedulable(demands, e.verdict(drover.ReasonCatalogue, "no cloud is configured: name one under clouds in the configuration"))
		return
	}
	if missing := e.pendingCatalogue(); missing != nil {
		e.allWait(demands, e.whyCatalogue(missing))
		return
	}
	if e.totalRoom() == 0 {
		e.markUnschedulable(demands, e.whyNoRoom(e.useNow))
		return
	}
	if demands = e.withoutLimitedUsers(demands); len(demands) == 0 {
		return
	}
	e.askFor(e.firstServed(demands, saved))
}

// planAgain tells groups whose coming instances failed or gave way that the next plan is for them.
func (e *Engine) planAgain() {
	for _, g := range e.groups {
		if g.Reason.Cause == verdict.Booting && g.reserved == 0 && g.netDemand() > 0 {
			g.setReason(e.verdict(drover.ReasonPlanning, planningText))
		}
	}
}

// askFor requests a solve for groups for which something can be rented within the budgets and besides what is saved.
func (e *Engine) askFor(groups []*group, saved *saving) {
	offers := e.affordableOfferings(e.unblocked(), groups)
	if e.limited() && len(offers) == 0 {
		for _, g := range groups {
			e.markUnmet(g, drover.Unmet{Code: drover.ReasonBlocked})
		}
		return
	}
	e.allWait(groups, e.verdict(drover.ReasonPlanning, planningText))
	demands, groups := e.affordableDemands(groups, offers)
	if len(demands) == 0 {
		return
	}
	demands, groups = e.ofOneUser(demands, groups)
	p := e.problem(demands, offers)
	if saved != nil {
		e.save(&p, saved)
	}
	if e.limitsUsers() {
		p.Limits = append(p.Limits, e.userLimit(groups[0].demand.Owner))
	}
	groups = e.splitMix(&p, groups)
	s := &Solving{Effect: e.effect(Effect{Solve: &p}), Problem: p}
	for _, g := range groups {
		g.solving, s.Groups = s.Effect, append(s.Groups, g.Key)
	}
	e.s.Solving = s
}

// forgetUnmet lets groups for which the last solve found nothing be planned for again, if something has changed since.
// Until the next solve finds nothing either, ready room is held for them. Dropped gangs are planned for again only if
// more has changed than that others were dropped: two gangs that cannot be rented would otherwise take turns forever.
func (e *Engine) forgetUnmet() {
	if !e.pending.Plan && !e.pending.GangDropped {
		return
	}
	for _, g := range e.groups {
		if g.Key.Gang > 0 {
			e.pending.Place = true // the slots it holds depend on what may be rented
		}
		if e.hasChance(g) {
			g.Unmet = 0
		}
		g.Deferred = g.Deferred && !e.pending.Plan
	}
	e.pending.Plan, e.pending.GangDropped = false, false
}

// hasChance reports whether the next plan includes the group.
func (e *Engine) hasChance(g *group) bool {
	return e.pending.Plan || e.pending.GangDropped && !g.Deferred
}

func (e *Engine) allWait(groups []*group, why Verdict) {
	for _, g := range groups {
		g.setReason(why)
	}
}

// markUnschedulable marks groups that cannot get new instances now, so that ready room is held for them.
func (e *Engine) markUnschedulable(groups []*group, why Verdict) {
	for _, g := range groups {
		g.Unschedulable, g.Unmet, g.PartlyPlanned, e.pending.Place, e.pending.Preempt = true, g.netDemand(), 0, true, true
		g.setReason(e.chooseReason(g, why))
	}
}

// pendingCatalogue returns a cloud whose types are not known yet, nil if there is none. A cloud that keeps failing is
// not waited for.
func (e *Engine) pendingCatalogue() *Cloud {
	for _, c := range e.enabled() {
		if !c.Known && c.Fails < 2 {
			return c
		}
	}
	return nil
}

// problem describes the demands and what may be rented.
func (e *Engine) problem(demands []drover.Demand, offers []drover.Offering) drover.Problem {
	p := drover.Problem{ID: e.s.LastEffect + 1, Demands: demands, Offerings: offers, Room: e.totalRoom(), UseOnce: e.life().UseOnce, Steps: drover.PlanSteps}
	for _, c := range e.clouds {
		p.Clouds = append(p.Clouds, drover.CloudRoom{Cloud: c.Name, Room: e.cloudRoom(c.Name), Disk: e.limits(c.Name).Disk})
	}
	for _, l := range e.limitsLeft() {
		p.Limits = append(p.Limits, notNegative(l))
	}
	boots := e.forecast.BootTimes()
	p.Boot, p.Boots = boots.Usual, boots.Other
	e.spread(&p)
	return p
}

// notNegative returns a limit that admits nothing instead of less.
func notNegative(l drover.Limit) drover.Limit {
	if l.Instances != nil {
		l.Instances = new(max(0, *l.Instances))
	}
	if l.CPU != nil {
		l.CPU = new(max(0, *l.CPU))
	}
	return l
}

// unblocked returns the offerings that may be rented now, at the price paid for them. The caller must not change the
// slice: usually it is the whole catalogue.
func (e *Engine) unblocked() []drover.Offering {
	all := e.market.Offerings()
	if e.asListed() {
		return all
	}
	free := make([]drover.Offering, 0, len(all))
	for _, o := range all {
		if e.market.BlockOf(o) == nil {
			free = append(free, e.asPaid(o))
		}
	}
	return free
}

// asListed reports whether every offering may be rented at its list price.
func (e *Engine) asListed() bool {
	return len(e.market.Blocks()) == 0 && !slices.ContainsFunc(e.s.Settings.Clouds, func(c CloudSettings) bool { return len(c.Reserved) > 0 })
}

// solved rents the part of a plan that is still valid.
func (e *Engine) solved(b Solved) {
	s := e.s.Solving
	if s == nil || !answers(b.Effect, s.Effect) {
		return
	}
	e.s.Solving = nil
	for _, key := range s.Groups {
		s.groups = append(s.groups, e.byKey[key])
	}
	for _, g := range s.groups {
		if g != nil {
			g.Unschedulable, g.PartlyPlanned = false, 0
		}
	}
	for _, u := range b.Plan.Unmet {
		if u.Code == drover.ReasonPlanning && len(b.Plan.Purchases) > 0 {
			continue // the plan was cut off; the next one continues from here
		}
		switch g := s.demanded(u.Demand); {
		case g == nil || g.netDemand() == 0:
		case s.Problem.Demands[u.Demand].Shape.Spot != g.Key.Shape.Spot: // the mix's part: any market will do
			g.Unschedulable, e.pending.Place, e.pending.Plan = true, true, true
		default:
			e.markUnmet(g, u)
		}
	}
	last, left := e.s.LastInstance, e.limitsLeft()
	if first := s.demanded(0); first != nil && e.limitsUsers() {
		left = append(left, e.userLimit(first.demand.Owner))
	}
	purchases := e.admitGangs(s, b.Plan)
	for _, p := range purchases {
		first, _ := s.first(p)
		left.Take(1, first)
	}
	for _, p := range purchases {
		first, _ := s.first(p)
		left.Take(-1, first)
		e.rent(s, p, left)
	}
	e.planRest(s, last)
	full, noRoom := e.totalRoom() == 0, Verdict{}
	if full {
		noRoom = e.whyNoRoom(e.useNow)
	}
	saved := e.saver()
	for _, u := range b.Plan.Unmet {
		g := s.demanded(u.Demand)
		switch {
		case g == nil || g.netDemand() == 0 || g.Reason.Cause != verdict.Limit && g.Reason.Cause != verdict.UserLimit:
		case full:
			g.setReason(e.chooseReason(g, noRoom))
		case saved != nil && e.below(g, saved):
			g.setReason(e.whySaved(saved))
		default:
			if why, limited := e.userLimited(g); limited {
				g.setReason(why)
			}
		}
	}
	for _, g := range s.groups {
		if g != nil && g.Queued > 0 && g.netDemand() == 0 {
			g.setReason(e.verdict(drover.ReasonBooting, bootingText))
		}
	}
}

// demanded returns the group of a demand, nil if it no longer exists or there is no such demand.
func (s *Solving) demanded(demand int) *group {
	if demand < 0 || demand >= len(s.groups) {
		return nil
	}
	return s.groups[demand]
}

// first returns a purchase's first offering, if it is in the problem.
func (s *Solving) first(p drover.Purchase) (o drover.Offering, ok bool) {
	if len(p.Candidates) == 0 || p.Candidates[0] < 0 || p.Candidates[0] >= len(s.Problem.Offerings) {
		return o, false
	}
	return s.Problem.Offerings[p.Candidates[0]], true
}

// rent records one instance of a plan, if there still is room, money and work for it, and deducts it from the limits.
func (e *Engine) rent(s *Solving, p drover.Purchase, left market.Limits) {
	loads := e.stillWanted(s, p.Loads)
	if e.nothingStarts() || len(loads) == 0 || len(p.Candidates) == 0 || e.s.Closing {
		return
	}
	if first, ok := s.first(p); ok && e.usedUp(first) {
		e.pending.Plan = true // at the list price, another may be cheaper
		return
	}
	candidates := make([]drover.Offering, 0, len(p.Candidates))
	for _, c := range p.Candidates {
		if c < 0 || c >= len(s.Problem.Offerings) {
			continue
		}
		o := s.Problem.Offerings[c]
		if e.market.BlockOf(o) == nil && !e.usedUp(o) && e.cloudRoom(o.Cloud) > 0 && (len(candidates) == 0 || o.Cloud == candidates[0].Cloud) {
			candidates = append(candidates, o)
		}
	}
	if candidates = left.Within(candidates); len(candidates) == 0 || e.room() == 0 {
		e.pending.Plan = true
		return
	}
	loads, cut := e.withinMaxPrices(candidates[0], loads)
	if len(loads) == 0 {
		return
	}
	for i, o := range candidates {
		candidates[i] = e.withVolume(o, e.volume(o, loads))
	}
	candidates = slices.DeleteFunc(candidates, func(o drover.Offering) bool { return tooExpensive(o, loads) })
	if candidates, loads = e.affordable(candidates, loads); len(candidates) > 0 {
		in := e.draft(candidates, e.volume(candidates[0], loads))
		e.setOwner(in, loads[0].g.Key.User)
		e.ask(in, loads)
		left.Take(1, candidates...)
		e.pending.Plan = e.pending.Plan || cut
	}
}

// wanted is a number of a group's jobs.
type wanted struct {
	g     *group
	count int
}

// stillWanted cuts a purchase's loads to what still waits.
func (e *Engine) stillWanted(s *Solving, loads []drover.Load) (still []wanted) {
	for _, l := range loads {
		g := s.demanded(l.Demand)
		if g == nil {
			continue
		}
		if n := min(l.Count, g.netDemand()); n > 0 {
			still = append(still, wanted{g, n})
		}
	}
	return still
}

// draft makes the record of a planned instance: of the first candidate, until the cloud reports which one it chose.
func (e *Engine) draft(candidates []drover.Offering, disk drover.Bytes) *fleet.Member {
	first, id := candidates[0], e.s.LastInstance+1
	in := &fleet.Member{Instance: Instance{
		ID: id, Name: e.instanceName(id), Cloud: first.Cloud, Zone: first.Zone, Type: first.Type, Market: first.Market,
		Price: first.Price, Resources: first.Type.Resources, Candidates: candidates, State: drover.InstanceCreating, Idle: drover.IdleRun, Asked: e.s.Now,
	}}
	in.Resources.Disk = disk
	return in
}

// volume returns the disk that an instance of an offering has with these loads: its type's, or a volume of the cloud's
// usual size or larger.
func (e *Engine) volume(o drover.Offering, loads []wanted) (disk drover.Bytes) {
	if o.Type.Resources.Disk != 0 {
		return o.Type.Resources.Disk
	}
	for _, l := range loads {
		disk += l.g.Key.Shape.Need.Disk * drover.Bytes(l.count)
	}
	return max(disk, e.limits(o.Cloud).Disk)
}

// withinMaxPrices returns the jobs whose max_price allows an instance with a volume for all of them, and whether others
// are to be planned for again. A job that needs too large a volume waits: the plan has chosen the offering that costs
// least with its volume.
func (e *Engine) withinMaxPrices(o drover.Offering, loads []wanted) (allowed []wanted, cut bool) {
	for _, w := range loads {
		n := w.count
		for ; n > 0; n-- {
			some := append(slices.Clone(allowed), wanted{w.g, n})
			if !tooExpensive(e.withVolume(o, e.volume(o, some)), some) {
				allowed = some
				break
			}
		}
		if cut = cut || n < w.count; len(allowed) == 0 {
			e.markUnschedulable([]*group{w.g}, e.whyVolumeExpensive(w.g, o, 1))
		}
	}
	return allowed, cut
}

// tooExpensive reports whether an offering costs more than the max_price of one of these jobs.
func tooExpensive(o drover.Offering, loads []wanted) bool {
	return slices.ContainsFunc(loads, func(w wanted) bool { return !w.g.Key.Shape.Placement.Pays(o.Price) })
}

// whyVolumeExpensive explains that an offering with a volume for n of the group's jobs costs more than their max_price.
func (e *Engine) whyVolumeExpensive(g *group, o drover.Offering, n int) Verdict {
	disk := e.volume(o, []wanted{{g, n}})
	return e.verdict(drover.ReasonMaxPrice, "with a volume of %s, %s costs %v an hour, more than the job's max_price, %v",
		disk.Rounded(), o.Name(), e.withVolume(o, disk).Price, g.Key.Shape.Placement.MaxPrice)
}

// affordable returns the candidates and the jobs that all budgets allow, if the instance boots as slowly as it may and
// the longest job runs as long as it may. It marks the groups that it leaves out.
func (e *Engine) affordable(candidates []drover.Offering, loads []wanted) ([]drover.Offering, []wanted) {
	if !e.limited() {
		return candidates, loads
	}
	p := e.rental(candidates[:1], loads...)
	allowed, worst := e.withinBudgets(p, loads)
	e.markUnaffordable(loads, allowed, worst)
	if p.Loads = loadsOf(allowed...); len(allowed) == 0 {
		return nil, nil
	}
	refuses := func(o drover.Offering) *budget.Account {
		p.Offers = []drover.Offering{o}
		return e.ledger.Refuses(nil, p)
	}
	if a := refuses(candidates[0]); a != nil {
		e.markUnaffordable(allowed, nil, a)
		return nil, nil
	}
	return slices.DeleteFunc(candidates, func(o drover.Offering) bool { return refuses(o) != nil }), allowed
}

// markUnaffordable marks the groups whose loads are not allowed in full.
func (e *Engine) markUnaffordable(loads, allowed []wanted, a *budget.Account) {
	for _, w := range loads {
		if !slices.Contains(allowed, w) {
			e.markUnschedulable([]*group{w.g}, e.whyUnpaid(w.g, a))
		}
	}
}

// ask records the instance and reserves it for its work. The create call follows when the instance is checked.
func (e *Engine) ask(in *fleet.Member, loads []wanted) {
	e.s.LastInstance = in.ID
	e.addInstance(in)
	for _, l := range loads {
		e.reserveFor(l.g, in, l.count)
	}
	e.blocksChanged(e.market.Probe(in.ID, in.Candidates))
	e.writeInstance(in)
	e.pending.Place = true // work that began to wait meanwhile may fit as well
}

// cancelUnaffordable cancels jobs that wait for money that will never come: the fleet is empty, nothing may be rented,
// and max_cost is never replenished.
func (e *Engine) cancelUnaffordable() {
	if e.s.Settings.MaxCost == 0 || e.fleet.Len() > 0 || e.s.Solving != nil {
		return
	}
	for _, g := range slices.Clone(e.groups) {
		if g.Queued == 0 || g.Reason.Cause != verdict.Budget || g.Reason.Until != 0 { // a budget's next window brings money
			continue
		}
		for _, j := range slices.Clone(g.Jobs) {
			e.dismiss(g, j, drover.JobCancelled, g.Reason)
		}
	}
}
