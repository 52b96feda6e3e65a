package pack

import (
	"slices"

	"drover"
)

// spread answers a problem that wants no spot offering, or no zone, to have more than a share of the vCPUs. The shares become limits, of the
// vCPUs that a plan without them has; while those of the plan that comes out are fewer, it is made again. One instance may always be rented
// of each. Where shares would leave jobs without a place they give way, as far as they must.
func spread(p drover.Problem) drover.Plan {
	spotShare, zoneShare := p.SpotShare, p.ZoneShare
	p.SpotShare, p.ZoneShare = 0, 0
	free := solve(p, 1)
	total := vcpus(p, free)
	for _, looser := range []int64{100, 100, 100, 110, 130, 200} {
		some := p
		some.Limits = slices.Concat(p.Limits, spotLimits(p, total*looser/100, spotShare), zoneLimits(p, total*looser/100, zoneShare))
		plan := solve(some, rivalsFor(spotShare, zoneShare))
		plan.Bound = max(plan.Bound, free.Bound)
		now := vcpus(p, plan)
		switch {
		case jobsUnmet(plan) > jobsUnmet(free):
			continue
		case now >= total || looser > 100:
			return plan
		}
		total = now
	}
	return free
}

// rivalsFor is how many offerings better than another make it needless, when each may only have a share.
func rivalsFor(shares ...int) int {
	n := 1
	for _, s := range shares {
		if s > 0 {
			n *= 1 + (99+s)/s
		}
	}
	return n
}

// spotLimits limits each spot offering to its share.
func spotLimits(p drover.Problem, total int64, share int) (limits []drover.Limit) {
	for _, o := range p.Offerings {
		if share > 0 && o.Market == drover.Spot {
			most := max(o.Type.Resources.CPU, drover.MilliCPU(total*int64(share)/100))
			limits = append(limits, drover.Limit{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: o.Market, CPU: &most})
		}
	}
	return limits
}

// zoneLimits limits each zone to its share.
func zoneLimits(p drover.Problem, total int64, share int) (limits []drover.Limit) {
	for _, o := range p.Offerings {
		at := slices.IndexFunc(limits, func(l drover.Limit) bool { return l.Cloud == o.Cloud && l.Zone == o.Zone })
		if share > 0 && at < 0 {
			most := drover.MilliCPU(total * int64(share) / 100)
			limits = append(limits, drover.Limit{Cloud: o.Cloud, Zone: o.Zone, CPU: &most})
		}
	}
	return limits
}

// vcpus is the sum of a plan's.
func vcpus(p drover.Problem, plan drover.Plan) (sum int64) {
	for _, b := range plan.Purchases {
		sum += int64(p.Offerings[b.Candidates[0]].Type.Resources.CPU)
	}
	return sum
}

func jobsUnmet(plan drover.Plan) (n int) {
	for _, u := range plan.Unmet {
		n += u.Count
	}
	return n
}
