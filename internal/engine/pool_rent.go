package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
	"drover/internal/engine/pool"
	"drover/internal/engine/verdict"
)

// A pool's new instance is of the cheapest unblocked offering in its place that the pool may use; the other ones there
// are further candidates. All limits apply, and it must be affordable until the end of the next hour: each is committed
// for that long, and again when an hour ends.

// closings are the places that could not meet a pool's demand in this decision, and why.
type closings map[pool.Demand]Verdict

// closed reports whether this kind of demand cannot be met in a place. The empty place stands for all.
func (c closings) closed(d pool.Demand) bool {
	_, here := c[d]
	_, anywhere := c[pool.Demand{OnDemand: d.OnDemand}]
	return here || anywhere
}

// usable returns the offerings that the pool may use, blocked or not, in a place or, if that is empty, anywhere.
func (e *Engine) usable(p *poolOf, at pool.Place) (all []drover.Offering) {
	for _, o := range e.market.Offerings() {
		here := pool.Place{Cloud: o.Cloud, Zone: o.Zone}
		if (at == pool.Place{} || at == here) && p.spec.Allows(here) && p.spec.Uses(o) {
			all = append(all, o)
		}
	}
	return all
}

// zonesOf returns the places with offerings that the pool may use, by cloud and zone.
func (e *Engine) zonesOf(p *poolOf, closed closings) (all []pool.Zone) {
	for _, o := range e.usable(p, pool.Place{}) {
		here := pool.Place{Cloud: o.Cloud, Zone: o.Zone}
		at := slices.IndexFunc(all, func(z pool.Zone) bool { return z.Place == here })
		if at < 0 {
			all = append(all, pool.Zone{Place: here, Open: !closed.closed(pool.Demand{Place: here}), Spot: true, Price: o.Price})
			at = len(all) - 1
		}
		if o.Market == drover.OnDemand {
			all[at].Spot = closed.closed(pool.Demand{Place: here, OnDemand: true})
		}
		all[at].Price = min(all[at].Price, o.Price)
	}
	for i := range all {
		if x := p.exhaustion(all[i].Place); x != nil {
			all[i].Until = x.Until
		}
	}
	slices.SortFunc(all, func(a, b pool.Zone) int { return cmp.Compare(a.String(), b.String()) })
	return all
}

func (p *poolOf) exhaustion(at pool.Place) *Exhaustion {
	i := slices.IndexFunc(p.Exhausted, func(x Exhaustion) bool { return x.Place == at })
	if i < 0 {
		return nil
	}
	return &p.Exhausted[i]
}

// markExhausted records the places in which all usable offerings are blocked for lack of capacity, and fires a hook
// once for each. They are avoided for as long as the pool says, however long the blocks are; then one create request
// tests for capacity.
func (e *Engine) markExhausted(p *poolOf) {
	for _, z := range e.zonesOf(p, nil) {
		why, lack := e.lacksCapacity(p, z.Place)
		x := p.exhaustion(z.Place)
		switch {
		case !lack:
			continue
		case x == nil:
			p.Exhausted = append(p.Exhausted, Exhaustion{Place: z.Place})
			x = &p.Exhausted[len(p.Exhausted)-1]
			e.effect(Effect{Fire: &Fire{Hook: drover.HookExhausted, Cloud: z.Cloud, Zone: z.Place.Zone, Pool: p.Name, Reason: why.Reason()}})
		case x.Until <= e.s.Now && !x.Tried:
			e.blocksChanged(e.market.Free(verdict.Capacity, e.usable(p, x.Place)...))
			e.writeBlocks()
			x.Tried = true
			continue
		}
		if x.Until <= e.s.Now {
			x.Until, x.Tried = e.s.Now.Add(p.spec.Cooldown), false
		}
	}
	slices.SortFunc(p.Exhausted, func(a, b Exhaustion) int { return cmp.Compare(a.String(), b.String()) })
}

// lacksCapacity reports whether all usable offerings in a place are blocked for lack of capacity, and none is being
// probed.
func (e *Engine) lacksCapacity(p *poolOf, at pool.Place) (why Verdict, lack bool) {
	for _, o := range e.usable(p, at) {
		b := e.market.BlockOf(o)
		if b == nil || b.Over || !b.ForCapacity() {
			return why, false
		}
		why = b.Reason
	}
	return why, true
}

// hasCapacity records that a pool's instance was created: its zone is no longer exhausted.
func (e *Engine) hasCapacity(in *fleet.Member) {
	if p := e.pool(in.Pool); p != nil {
		p.Exhausted = slices.DeleteFunc(p.Exhausted, func(x Exhaustion) bool { return x.Place == pool.Place{Cloud: in.Cloud, Zone: in.Zone} })
	}
}

// rentFor records a new instance for a pool in a place, or returns why none can be rented there now.
func (e *Engine) rentFor(p *poolOf, d pool.Demand) *Verdict {
	candidates, why := e.rentable(p, d)
	if why != nil {
		return why
	}
	e.writeBlocks() // the choice depended on them
	in := e.draft(candidates, e.poolDisk(p, candidates[0]))
	if in.Pool, in.Prefix, in.Template = p.Name, p.spec.NamePrefix, p.spec.Template; e.life().Sharing == drover.ShareEveryone {
		in.Owner = drover.Everyones
	}
	e.ask(in, nil)
	return nil
}

// rentable returns the candidates for a pool's instance in a place, cheapest first, or why none can be rented there
// now.
func (e *Engine) rentable(p *poolOf, d pool.Demand) ([]drover.Offering, *Verdict) {
	all := e.usable(p, d.Place)
	if d.OnDemand {
		all = slices.DeleteFunc(all, func(o drover.Offering) bool { return o.Market != drover.OnDemand })
	}
	candidates := slices.DeleteFunc(slices.Clone(all), func(o drover.Offering) bool { return e.unavailable(p, o) })
	x := p.exhaustion(d.Place)
	switch {
	case len(all) == 0:
		return nil, new(e.whyNothingFits(p))
	case len(candidates) == 0 && x != nil && x.Until > e.s.Now:
		return nil, new(e.whyExhausted(x))
	case len(candidates) == 0:
		return nil, new(e.whyAllBlocked(all))
	}
	if why := e.whyNoneMore(candidates); why != nil {
		return nil, why
	}
	candidates = slices.DeleteFunc(candidates, func(o drover.Offering) bool { return e.cloudRoom(o.Cloud) == 0 })
	for i, o := range candidates {
		candidates[i] = e.pricedFor(p, o)
	}
	slices.SortStableFunc(candidates, func(a, b drover.Offering) int { return cmp.Compare(a.Price, b.Price) })
	left := e.limitsLeft()
	at := slices.IndexFunc(candidates, func(o drover.Offering) bool { return left.Passed(o) == nil })
	if at < 0 {
		why, _ := e.passedBy(left, candidates[0])
		return nil, &why
	}
	cloud := candidates[at].Cloud
	candidates = left.Within(slices.DeleteFunc(candidates, func(o drover.Offering) bool { return o.Cloud != cloud }))
	if why := e.beyondBudget(p, candidates[0]); why != nil {
		return nil, why
	}
	return slices.DeleteFunc(candidates, func(o drover.Offering) bool { return e.beyondBudget(p, o) != nil }), nil
}

// unavailable reports whether an offering cannot be rented for a pool now, whatever the limits allow.
func (e *Engine) unavailable(p *poolOf, o drover.Offering) bool {
	x := p.exhaustion(pool.Place{Cloud: o.Cloud, Zone: o.Zone})
	return e.market.BlockOf(o) != nil || e.usedUp(o) || x != nil && x.Until > e.s.Now
}

// pricedFor returns an offering with the price that a pool's next instance would have.
func (e *Engine) pricedFor(p *poolOf, o drover.Offering) drover.Offering {
	return e.withVolume(e.asPaid(o), e.poolDisk(p, o))
}

// beyondBudget returns the budget that one more of a pool's instances would exceed, its node group's or another; nil if
// none.
func (e *Engine) beyondBudget(p *poolOf, o drover.Offering) *Verdict {
	if most := p.spec.Budget; most > 0 {
		// An instance being created counts at the price of its most expensive candidate.
		hourly, use := drover.Money(0), "use"
		for _, in := range e.pools.members[p.Name] {
			dearest := slices.MaxFunc(in.Offerings(), func(a, b drover.Offering) int { return cmp.Compare(a.Price, b.Price) }).Price
			if hourly += dearest; dearest > in.Offerings()[0].Price {
				use = "may use up to"
			}
		}
		if hourly+o.Price > most {
			return new(e.verdict(drover.ReasonBudget, "the pool's instances %s %v of its hourly budget of %v, and the cheapest offering would add %v", use, hourly, most, o.Price))
		}
	}
	if a := e.refusesPool(o); a != nil {
		return new(e.why(a))
	}
	return nil
}

// whyNoneMore returns why neither the fleet nor any cloud of these offerings may have another instance; nil if one may.
func (e *Engine) whyNoneMore(offers []drover.Offering) *Verdict {
	if e.room() == 0 {
		return new(e.verdict(drover.ReasonLimit, "%s", fleetFull(e.s.Settings.MaxInstances)))
	}
	if slices.ContainsFunc(offers, func(o drover.Offering) bool { return e.cloudRoom(o.Cloud) > 0 }) {
		return nil
	}
	cloud := offers[0].Cloud
	return new(e.verdict(drover.ReasonLimit, "%s", cloudFull(cloud, e.limits(cloud).MaxInstances)))
}

// whyExhausted explains that a zone had no capacity, and until when it is avoided.
func (e *Engine) whyExhausted(x *Exhaustion) Verdict {
	why := e.verdict(drover.ReasonBlocked, "out of capacity")
	why.Until = x.Until
	return why
}

// whyAllBlocked explains that all of these offerings are blocked, until the first block ends.
func (e *Engine) whyAllBlocked(all []drover.Offering) Verdict {
	why := e.verdict(drover.ReasonBlocked, "every offering that it may use is blocked")
	for _, o := range all {
		if b := e.market.BlockOf(o); b != nil {
			if why.Until = sooner(why.Until, later(b.Until(), e.s.Now)); why.Until == later(b.Until(), e.s.Now) {
				why.Text = "every offering that it may use is blocked: " + blockText(*b)
			}
		}
	}
	return why
}

// poolDisk returns the disk of an instance of an offering in the pool.
func (e *Engine) poolDisk(p *poolOf, o drover.Offering) drover.Bytes {
	return cmp.Or(o.Type.Resources.Disk, max(p.spec.Disk, p.spec.Need.Disk, e.limits(o.Cloud).Disk))
}

// refusesPool returns the account that an instance of an offering, kept until the end of the next hour, would overdraw;
// nil if none.
func (e *Engine) refusesPool(o drover.Offering) *budget.Account {
	if !e.limited() {
		return nil
	}
	stays := budget.Load{CPU: o.Type.Resources.CPU, Horizon: budget.Renewed(e.s.Now).Sub(e.s.Now), Count: 1}
	return e.ledger.Refuses(nil, budget.Commitment{Offers: []drover.Offering{o}, Billing: e.limits(o.Cloud).Billing, Loads: []budget.Load{stays}})
}

// whyShort explains why instances of a pool are missing: what stops each of its places.
func (e *Engine) whyShort(p *poolOf, short string, closed closings) Verdict {
	zones := e.zonesOf(p, nil)
	if len(zones) == 0 {
		why := e.whyNothingFits(p)
		why.Text = fmt.Sprintf("%s missing; %s", short, why.Text)
		return why
	}
	why, texts, places := Verdict{}, []string{}, map[string][]string{}
	say := func(at string, r Verdict) {
		if why.Cause == "" {
			why = r
		}
		why.Until = sooner(why.Until, r.Until)
		if places[r.Text] == nil {
			texts = append(texts, r.Text)
		}
		places[r.Text] = append(places[r.Text], at)
	}
	for _, z := range zones {
		if x := p.exhaustion(z.Place); x != nil && x.Until > e.s.Now {
			say(z.String(), e.whyExhausted(x))
		} else if r, ok := closed[pool.Demand{Place: z.Place}]; ok {
			say(z.String(), r)
		}
	}
	if r, ok := closed[pool.Demand{}]; ok {
		say("anywhere", r)
	}
	said := []string{}
	for _, text := range texts {
		said = append(said, strings.Join(mostOf(places[text]), ", ")+": "+text)
	}
	why.Text = fmt.Sprintf("%s missing; %s", short, strings.Join(mostOf(said), "; "))
	return why
}

// mostOf shortens a list that would be too long to read.
func mostOf(list []string) []string {
	if len(list) > maxBlocks {
		return append(list[:maxBlocks:maxBlocks], fmt.Sprintf("and %d more", len(list)-maxBlocks))
	}
	return list
}

// whyNothingFits explains that no known offering may be used by the pool.
func (e *Engine) whyNothingFits(p *poolOf) Verdict {
	for _, name := range p.spec.Clouds {
		if c := e.cloud(name); c != nil && !c.Known && !e.limits(name).Leaving {
			return e.verdict(drover.ReasonCatalogue, "the instance types of cloud %s are not known yet", name)
		}
	}
	return e.verdict(drover.ReasonNoFit, "no offering in its clouds and zones matches its types and market and is large enough")
}
