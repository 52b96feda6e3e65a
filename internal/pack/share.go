package pack

import (
	"slices"

	"drover"
)

// spread solves a problem in which no spot offering may have more than a share of all vCPUs, including those already
// rented. The shares become limits on vCPUs, relative to the total of a plan without them. While the resulting plan has
// fewer vCPUs, it is made again, and instances that still exceed a share are dropped. One instance of each offering is
// always allowed.
//
// Jobs that only the shares leave without a place are placed nevertheless: a second plan is made for them, with shares
// relaxed as far as needed. If later demands have taken their room, those are planned for afterwards instead. This is
// tried up to turns times.
func spread(p drover.Problem, turns int) drover.Plan {
	whole := p
	s := sharesOf(&p)
	free := solve(p, 1)
	plan, total := free, s.sum+vcpus(p, free)
	for range 3 {
		plan = solve(s.limited(p, total, asWanted), s.rivals())
		now := s.sum + vcpus(p, plan)
		if now >= total {
			break
		}
		total = now
	}
	plan = s.trimmed(p, plan)
	s.add(p, plan)
	plan = s.relaxed(p, plan)
	for _, d := range overtaken(plan) {
		if turns == 0 {
			break
		}
		turns--
		if other := inTurn(whole, d+1, turns); left(other, d) < left(plan, d) {
			return other
		}
	}
	if plan.Bound = 0; len(plan.Unmet) == 0 {
		plan.Bound = free.Bound // the bound of a plan with limits does not hold if they change, nor this one for other jobs
	}
	return plan
}

// left returns how many of a demand's jobs a plan leaves without a place.
func left(plan drover.Plan, demand int) (n int) {
	for _, u := range plan.Unmet {
		if u.Demand == demand {
			n += u.Count
		}
	}
	return n
}

// overtaken returns the demands of which jobs have no place although the plan rents for later demands alone.
func overtaken(plan drover.Plan) (demands []int) {
	last := -1
	for _, b := range plan.Purchases {
		last = max(last, b.Loads[0].Demand) // loads are in the order of their demands
	}
	for _, u := range plan.Unmet {
		if u.Demand < last {
			demands = append(demands, u.Demand)
		}
	}
	slices.Sort(demands)
	return slices.Compact(demands)
}

// inTurn solves a problem for the first demands, and then for the others with what is left.
func inTurn(p drover.Problem, first, turns int) drover.Plan {
	early, late := p, p
	early.Demands, late.Demands = slices.Clone(p.Demands), slices.Clone(p.Demands)
	for x := range p.Demands {
		if x < first {
			late.Demands[x].Count = 0
		} else {
			early.Demands[x].Count = 0
		}
	}
	plan := spread(early, 0)
	late.Clouds, late.Limits, late.Rented = slices.Clone(p.Clouds), slices.Clone(p.Limits), slices.Clone(p.Rented)
	for _, b := range plan.Purchases {
		o := &p.Offerings[b.Candidates[0]]
		take(&late, o)
		late.Rented = append(late.Rented, oneOf(o))
	}
	rest := spread(late, turns)
	return drover.Plan{Problem: p.ID, Purchases: slices.Concat(plan.Purchases, rest.Purchases), Unmet: slices.Concat(plan.Unmet, rest.Unmet), Cost: plan.Cost + rest.Cost}
}

// spotKey identifies what has a share.
type spotKey struct{ cloud, zone, spot string }

func spotKeyOf(o *drover.Offering) spotKey { return spotKey{o.Cloud, o.Zone, o.Type.Name} }

// shares are a problem's shares, and the vCPUs of each spot offering.
type shares struct {
	spot   int64 // in hundredths of a percent
	rented []drover.Rented
	has    map[spotKey]int64 // vCPUs of rented ones
	sum    int64             // of all vCPUs
}

// maxTurns is how often a plan is tried anew because later demands have taken the room of an earlier one.
const maxTurns = 2

// asWanted and relaxations are the sizes of shares in hundredths of what they should be, each tried when the one before
// leaves jobs without a place.
const asWanted = 100

var relaxations = []int64{asWanted, 150, 225, 340, 500, 750}

// sharesOf removes the shares from a problem and returns them.
func sharesOf(p *drover.Problem) *shares {
	s := &shares{spot: int64(p.SpotShare), has: map[spotKey]int64{}}
	s.count(p.Rented...)
	p.SpotShare, p.Rented = 0, nil
	return s
}

func (s *shares) count(all ...drover.Rented) {
	for _, r := range all {
		s.sum += int64(r.CPU)
		if r.Market == drover.Spot {
			s.has[spotKey{r.Cloud, r.Zone, r.Type}] += int64(r.CPU)
		}
	}
	s.rented = append(s.rented, all...)
}

// oneOf returns an instance of an offering.
func oneOf(o *drover.Offering) drover.Rented {
	return drover.Rented{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: o.Market, CPU: o.Type.Resources.CPU}
}

// add counts what a plan rents.
func (s *shares) add(p drover.Problem, plan drover.Plan) {
	for _, b := range plan.Purchases {
		s.count(oneOf(&p.Offerings[b.Candidates[0]]))
	}
}

// rivals returns how many better offerings make another unnecessary when each may have only a share.
func (s *shares) rivals() int {
	return int(1 + (drover.WholeShare-1+s.spot)/s.spot)
}

// limited returns the problem with limits for the shares of total vCPUs, scaled by larger.
func (s *shares) limited(p drover.Problem, total, larger int64) drover.Problem {
	at := map[spotKey]int{}
	limits := slices.Clone(p.Limits)
	limit := func(key spotKey, l drover.Limit, least int64) {
		most := drover.MilliCPU(max(0, least, total*s.spot/drover.WholeShare*larger/asWanted-s.has[key]))
		if x, known := at[key]; known {
			*limits[x].CPU = max(*limits[x].CPU, most)
			return
		}
		l.CPU, l.Share = &most, true
		at[key] = len(limits)
		limits = append(limits, l)
	}
	for _, o := range p.Offerings {
		if o.Market != drover.Spot {
			continue
		}
		own, least := spotKeyOf(&o), int64(o.Type.Resources.CPU)
		if s.has[own] > 0 {
			least = 0
		}
		limit(own, drover.Limit{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: o.Market}, least)
	}
	p.Limits = limits
	return p
}

// trimmed returns the plan without the instances that exceed a share, the last of each first. Their jobs then wait for
// the shares alone.
func (s *shares) trimmed(p drover.Problem, plan drover.Plan) drover.Plan {
	m := &model{p: p}
	m.sortTimes()
	for {
		now := &shares{spot: s.spot, has: map[spotKey]int64{}}
		now.count(s.rented...)
		now.add(p, plan)
		total, left := now.sum, len(plan.Purchases)
		for x := len(plan.Purchases) - 1; x >= 0; x-- {
			o := &p.Offerings[plan.Purchases[x].Candidates[0]]
			if now.exceeds(o, total) {
				less := oneOf(o)
				less.CPU = -less.CPU
				now.count(less)
				plan = m.dropped(plan, x)
			}
		}
		if len(plan.Purchases) == left {
			return plan
		}
	}
}

// exceeds reports whether one instance of an offering, already counted, is more than its share of total vCPUs allows.
func (s *shares) exceeds(o *drover.Offering, total int64) bool {
	own := s.has[spotKeyOf(o)]
	alone := own == int64(o.Type.Resources.CPU)
	return o.Market == drover.Spot && !alone && own*drover.WholeShare > total*s.spot
}

// dropped returns the plan without one of its purchases.
func (m *model) dropped(plan drover.Plan, x int) drover.Plan {
	b, class := plan.Purchases[x], len(m.classes)
	o := &m.p.Offerings[b.Candidates[0]]
	why := drover.Refusal{Code: shareCode, Count: 1, Offering: o.Name(), Text: shareText}
	plan.Purchases = slices.Delete(slices.Clone(plan.Purchases), x, x+1)
	for _, l := range b.Loads {
		class = min(class, m.class(m.p.Demands[l.Demand]))
		plan.Unmet = append(plan.Unmet, drover.Unmet{Demand: l.Demand, Count: l.Count, Code: drover.ReasonLimit, Text: shareText, Refusals: []drover.Refusal{why}})
	}
	plan.Cost -= drover.Money(m.cost(o, class))
	return plan
}

// relaxed returns the plan with instances added for jobs that only the shares leave without a place.
func (s *shares) relaxed(p drover.Problem, plan drover.Plan) drover.Plan {
	rest, waits := without(p, &plan)
	if !waits {
		return plan
	}
	total := s.sum + vcpus(rest, solve(rest, 1))
	for x := 0; waits; x++ {
		some := rest
		if x < len(relaxations) {
			some = s.limited(rest, total, relaxations[x])
		}
		more := solve(some, 1<<30)
		s.add(rest, more)
		plan.Purchases, plan.Cost = slices.Concat(plan.Purchases, more.Purchases), plan.Cost+more.Cost
		rest, waits = without(rest, &more)
		plan.Unmet = slices.Concat(plan.Unmet, more.Unmet)
	}
	return plan
}

// without returns what remains of a problem after a plan: the demands whose jobs wait for a share alone, which it
// removes from the plan's Unmet.
func without(p drover.Problem, plan *drover.Plan) (rest drover.Problem, waits bool) {
	rest = p
	rest.Demands, rest.Clouds, rest.Limits = slices.Clone(p.Demands), slices.Clone(p.Clouds), slices.Clone(p.Limits)
	for x := range rest.Demands {
		rest.Demands[x].Count = 0
	}
	var others []drover.Unmet
	for _, u := range plan.Unmet {
		if slices.ContainsFunc(u.Refusals, func(r drover.Refusal) bool { return r.Code == shareCode }) {
			rest.Demands[u.Demand].Count += u.Count
			waits = true
		} else {
			others = append(others, u)
		}
	}
	plan.Unmet = others
	for _, b := range plan.Purchases {
		take(&rest, &p.Offerings[b.Candidates[0]])
	}
	return rest, waits
}

// take counts an instance of an offering against a problem's limits.
func take(p *drover.Problem, o *drover.Offering) {
	p.Room--
	for x, c := range p.Clouds {
		if c.Cloud == o.Cloud {
			p.Clouds[x].Room--
		}
	}
	for x, l := range p.Limits {
		if l.Covers(*o) {
			p.Limits[x] = l.Less(1, o.Type.Resources.CPU)
		}
	}
}

// vcpus returns a plan's total vCPUs.
func vcpus(p drover.Problem, plan drover.Plan) (sum int64) {
	for _, b := range plan.Purchases {
		sum += int64(p.Offerings[b.Candidates[0]].Type.Resources.CPU)
	}
	return sum
}
