package preview

import (
	"cmp"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/pack"
)

// The solver gives a bound for a plan that is made in one step and serves all jobs. For any other plan, the solver
// plans once more for the jobs with places, as if there were no limits, shares or budgets and unlimited reservations.
// The bound of that plan holds for every plan for these jobs.

// above returns by how many percent the rented instances may cost more than the cheapest possible ones for the same
// jobs, while waiting other jobs wait; nil if nothing is rented, or nothing is known.
func (f *Preview) above(waiting int) *float64 {
	cost, bound := drover.Money(0), drover.Money(0)
	switch {
	case len(f.plans) == 0:
		return nil
	case len(f.plans) == 1 && len(f.plans[0].Unmet) == 0 && waiting == 0:
		cost, bound = f.plans[0].Cost, f.plans[0].Bound
	default:
		cost, bound = f.cost(), pack.Solve(f.freely()).Bound
	}
	if bound <= 0 {
		return nil
	}
	return new(max(0, 100*(cost.USD()/bound.USD()-1)))
}

// cost returns the cost of the rented instances' work, as problems count it.
func (f *Preview) cost() (sum drover.Money) {
	p := &f.problems[0]
	for _, in := range f.engine.Instances() {
		longest := time.Duration(0)
		for _, b := range in.Reservations {
			longest = max(longest, cmp.Or(b.Group.Expected, AssumedTime))
		}
		sum += in.Price.For(drover.BootOf(p.Boot, p.Boots, in.Cloud, in.Type.Name) + longest)
	}
	return sum
}

// freely returns the problem of the jobs that have places, without limits on the choice.
func (f *Preview) freely() drover.Problem {
	first := f.problems[0]
	p := drover.Problem{UseOnce: first.UseOnce, Boot: first.Boot, Boots: first.Boots, Steps: first.Steps, Room: unlimitedRoom}
	for _, c := range first.Clouds {
		c.Room = unlimitedRoom
		p.Clouds = append(p.Clouds, c)
	}
	for _, o := range f.may { // at the reserved price, if there is one
		p.Offerings = append(p.Offerings, o.Offering)
	}
	demand := map[engine.GroupKey]int{}
	for _, in := range f.engine.Instances() {
		for _, b := range in.Reservations {
			at, known := demand[b.Group]
			if !known {
				at = len(p.Demands)
				demand[b.Group] = at
				p.Demands = append(p.Demands, drover.Demand{Shape: b.Group.Shape, Time: b.Group.Expected})
			}
			p.Demands[at].Count += b.Count
		}
	}
	return p
}

// unlimitedRoom is more instances than any plan has.
const unlimitedRoom = 1 << 20
