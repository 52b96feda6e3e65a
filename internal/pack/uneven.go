package pack

import (
	"cmp"
	"math"
	"time"

	"drover"
	"drover/internal/runtimes"
)

// An instance is paid until the last of its jobs ends. Where run times are uncertain, that is the later the more jobs it has, so the same jobs cost more on
// large instances than on small ones at the same prices. What is clever here counts an instance as long as its longest class of jobs takes. So a problem is
// answered several times: with any number of jobs on an instance, and with at most one, two, four and so on, each taken to last as long as the
// longest of so many. Of the plans that serve most, the one is taken that is expected to cost least until its instances are gone.

// mostEach is the most jobs on an instance that are tried as a limit.
const mostEach = 64

// evened answers a problem whose run times are uncertain.
func evened(p drover.Problem) drover.Plan {
	r := newReckoning(p)
	if !r.uneven {
		return withVolumes(p)
	}
	p.Steps /= 3
	best := withVolumes(p)
	best.Cost = r.cost(best)
	for each, worse := 1, 0; each <= min(mostEach, r.jobs) && worse < 2 && (p.JobsEach == 0 || each < p.JobsEach); each *= 2 {
		q := p
		q.JobsEach = each
		q.Demands = r.longest(each)
		plan := withVolumes(q)
		plan.Cost, plan.Bound = r.cost(plan), best.Bound
		if cmp.Or(cmp.Compare(jobsUnmet(plan), jobsUnmet(best)), cmp.Compare(plan.Cost, best.Cost)) < 0 {
			best, worse = plan, 0
		} else {
			worse++
		}
	}
	return best
}

// reckoning is what plans of a problem are expected to cost.
type reckoning struct {
	p      drover.Problem
	m      *model
	uneven bool
	jobs   int
	last   map[load]runtimes.Points // of so many jobs of a demand
}

func newReckoning(p drover.Problem) *reckoning {
	r := &reckoning{p: p, m: &model{p: p}, last: map[load]runtimes.Points{}}
	for _, d := range p.Demands {
		r.uneven = r.uneven || d.Spread > 0 && d.Count > 0
		r.jobs += d.Count
	}
	r.uneven = r.uneven && r.jobs > 1 && !p.UseOnce
	return r
}

// dist is how long a demand's jobs take.
func dist(d drover.Demand) runtimes.Dist {
	return runtimes.OfMean(running(d, false), min(d.Spread, 8*runtimes.Octave))
}

// lasts is when the last of so many jobs of a demand ends.
func (r *reckoning) lasts(l load) runtimes.Points {
	p, known := r.last[l]
	if !known {
		d := r.p.Demands[l.item]
		if d.Spread == 0 {
			p = runtimes.At(running(d, false))
		} else {
			p = runtimes.LongestOf(dist(d), l.count)
		}
		r.last[l] = p
	}
	return p
}

// longest is the demands with each job taken to last as long as the longest of so many.
func (r *reckoning) longest(of int) []drover.Demand {
	demands := append([]drover.Demand{}, r.p.Demands...)
	for i := range demands {
		if d := &demands[i]; d.Spread > 0 {
			p := r.lasts(load{i, of})
			d.Time, d.Spread = max(1, p.Mean()), 0
		}
	}
	return demands
}

// cost is what a plan is expected to cost, the disks of its instances and all.
func (r *reckoning) cost(plan drover.Plan) (sum drover.Money) {
	for _, b := range plan.Purchases {
		o, asked, last := r.p.Offerings[b.Candidates[0]], drover.Bytes(0), runtimes.Points{}
		for _, l := range b.Loads {
			p := r.lasts(load{l.Demand, l.Count})
			last = runtimes.Longest(&last, &p)
			asked += r.p.Demands[l.Demand].Shape.Need.Disk * drover.Bytes(l.Count)
		}
		if o.Type.Resources.Disk == 0 && !o.Reserved {
			o = o.WithVolume(asked - r.p.UsualDisk(o.Cloud))
		}
		span := min(last.Mean(), math.MaxInt64/4*time.Nanosecond)
		sum += drover.Money(r.m.costFor(&o, r.m.boot(&o)+span))
	}
	return sum
}
