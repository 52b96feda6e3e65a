package pack

import (
	"cmp"
	"math"
	"time"

	"drover"
	"drover/internal/runtimes"
)

// An instance is paid for until the last of its jobs ends. If run times are uncertain, that is later with more jobs, so
// the same jobs cost more on large instances than on small ones at the same prices. The rest of the solver assumes that
// an instance runs as long as its longest class of jobs. So a problem is solved several times: with any number of jobs
// on an instance, and with at most one, two, four and so on, as long as that is less, each assumed to last as long as
// the longest of that many. Of the plans that serve most, the one with the lowest expected cost is returned.

// mostEach is the highest limit of jobs per instance that is tried.
const mostEach = 64

// solveUncertain solves a problem whose run times are uncertain.
func solveUncertain(p drover.Problem) drover.Plan {
	r := newEstimator(p)
	if !r.uneven {
		return withVolumes(p)
	}
	p.Steps /= 3
	best := withVolumes(p)
	best.Cost = r.cost(best)
	most := min(mostEach+1, mostJobs(best))
	for each, worse := 1, 0; each < most && worse < 2; each *= 2 {
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

// mostJobs returns the most jobs that a plan puts on one instance.
func mostJobs(plan drover.Plan) (most int) {
	for _, b := range plan.Purchases {
		n := 0
		for _, l := range b.Loads {
			n += l.Count
		}
		most = max(most, n)
	}
	return most
}

// estimator computes the expected cost of plans for a problem.
type estimator struct {
	p      drover.Problem
	m      *model
	uneven bool
	last   map[load]runtimes.Points // by demand and number of jobs
}

func newEstimator(p drover.Problem) *estimator {
	r := &estimator{p: p, m: &model{p: p}, last: map[load]runtimes.Points{}}
	jobs := 0
	for _, d := range p.Demands {
		r.uneven = r.uneven || d.Spread > 0 && d.Count > 0
		jobs += d.Count
	}
	r.uneven = r.uneven && jobs > 1 && !p.UseOnce
	return r
}

// dist returns the run time distribution of a demand's jobs.
func dist(d drover.Demand) runtimes.Dist {
	return runtimes.OfMean(running(d, false), min(d.Spread, 8*runtimes.Octave))
}

// lastEnd returns when the last of a number of a demand's jobs ends.
func (r *estimator) lastEnd(l load) runtimes.Points {
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

// longest returns the demands with each job assumed to last as long as the longest of a number of them.
func (r *estimator) longest(of int) []drover.Demand {
	demands := append([]drover.Demand{}, r.p.Demands...)
	for i := range demands {
		if d := &demands[i]; d.Spread > 0 {
			p := r.lastEnd(load{i, of})
			d.Time, d.Spread = max(1, p.Mean()), 0
		}
	}
	return demands
}

// cost returns a plan's expected cost, including volumes.
func (r *estimator) cost(plan drover.Plan) (sum drover.Money) {
	for _, b := range plan.Purchases {
		o, asked, last := r.p.Offerings[b.Candidates[0]], drover.Bytes(0), runtimes.Points{}
		for _, l := range b.Loads {
			p := r.lastEnd(load{l.Demand, l.Count})
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
