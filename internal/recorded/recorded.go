// Package recorded turns a controller's records into a workload to simulate, and measures what really happened, for
// comparison.
//
// The model: a job that ended by itself runs as long as its last attempt did, from when it could first have started:
// its submission or, if it runs after others of its batch, the end of the last of these. Jobs that were submitted
// before the period, never ran, or have not ended are left out and counted. What really happened is measured as a
// simulation is: waits, instances, and the money that the records show as paid in the period.
package recorded

import (
	"context"
	"slices"
	"strconv"
	"time"

	"drover"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// Really is the policy of what happened.
const Really simulate.Policy = "recorded"

// Past is what happened in a period.
type Past struct {
	Trace  *trace.Trace
	Result *simulate.Result
	Boot   time.Duration // median boot time of the instances; 0: none booted
}

// Service has the queries that Read makes.
type Service interface {
	Jobs(ctx context.Context, f drover.JobFilter) (drover.Page[drover.Job], error)
	Instances(ctx context.Context, f drover.InstanceFilter) (drover.Page[drover.Instance], error)
	Costs(ctx context.Context, f drover.CostFilter) (drover.Costs, error)
}

// Read reads what happened from one time to another, for at most this many jobs, counting array elements. It begins at
// the first record if that is later: a simulation would otherwise pay for pools before there was a fleet. KindInvalid:
// there were more jobs, or none.
func Read(ctx context.Context, svc Service, since, until drover.Time, most int) (*Past, error) {
	first, err := firstRecord(ctx, svc, until)
	if err != nil {
		return nil, err
	}
	r := &reader{since: max(since, first), until: until, ends: map[group]drover.Time{}, left: map[string]int{}}
	if err := r.readJobs(ctx, svc, most); err != nil {
		return nil, err
	}
	t, waits := r.trace()
	if len(t.Jobs) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "no job submitted since %v has run and ended", since).WithHint("use an earlier start time")
	}
	since = r.since
	result := &simulate.Result{Configuration: "what happened", Policy: Really, Begin: since, Jobs: len(t.Jobs), LeftOut: t.Left, Markets: []simulate.Market{}, Wait: simulate.Summarize(waits)}
	for _, j := range r.jobs {
		if j.State == drover.JobFailed {
			result.Failed++
		} else {
			result.Done++
		}
		for _, a := range j.Attempts {
			if a.State == drover.AttemptInterrupted || a.State == drover.AttemptLost {
				result.Lost++
			}
		}
		result.Makespan = max(result.Makespan, drover.TimeOf(*j.Ended).Sub(since.Add(t.Jobs[0].Submit)).Seconds())
	}
	costs, err := svc.Costs(ctx, drover.CostFilter{By: drover.CostByType, Since: since, Until: until, Limit: 1, Step: stepOf(until.Sub(since))})
	if err != nil {
		return nil, err
	}
	result.Cost = costs.Total.Cost
	result.Parts = simulate.Parts{Jobs: costs.Total.Jobs, Boot: costs.Total.Boot, Idle: costs.Total.Idle, Waste: costs.Total.Waste}
	lives, err := r.readInstances(ctx, svc, result)
	if err != nil {
		return nil, err
	}
	result.Points = r.points(costs.Steps, lives)
	return &Past{t, result, r.boot()}, nil
}

// firstRecord returns when the first job was submitted or the first instance created; at the latest, until.
func firstRecord(ctx context.Context, svc Service, until drover.Time) (drover.Time, error) {
	jobs, err := svc.Jobs(ctx, drover.JobFilter{Limit: 1})
	if err != nil {
		return 0, err
	}
	for _, j := range jobs.Items {
		until = min(until, drover.TimeOf(j.Submitted))
	}
	instances, err := svc.Instances(ctx, drover.InstanceFilter{Gone: true, Limit: 1})
	for _, in := range instances.Items {
		if in.Created != nil {
			until = min(until, drover.TimeOf(*in.Created))
		}
	}
	return until, err
}

// reader gathers what happened.
type reader struct {
	since, until drover.Time
	jobs         []drover.Job
	ends         map[group]drover.Time
	left         map[string]int
	boots        []time.Duration
}

func (r *reader) boot() time.Duration {
	if len(r.boots) == 0 {
		return 0
	}
	slices.Sort(r.boots)
	return r.boots[len(r.boots)/2]
}

// group is the elements of a job, as identified by the jobs that run after it.
type group struct {
	batch, name string
	submitted   time.Time
}

// readJobs reads the jobs that ended in the period.
func (r *reader) readJobs(ctx context.Context, svc Service, most int) error {
	f := drover.JobFilter{Elements: true, Since: r.since}
	for {
		page, err := svc.Jobs(ctx, f)
		if err != nil {
			return err
		}
		for _, j := range page.Items {
			r.take(j)
		}
		if len(r.jobs) > most {
			return drover.Errorf(drover.KindInvalid, "more than %d jobs have run since %v", most, r.since).WithHint("use a later start time, or drover simulate --recorded")
		}
		if page.Next == "" {
			return nil
		}
		if f.After, err = drover.ParseJobID(page.Next); err != nil {
			return err
		}
	}
}

func (r *reader) take(j drover.Job) {
	submitted := drover.TimeOf(j.Submitted)
	switch n := len(j.Attempts); {
	case submitted < r.since:
		r.left["were submitted earlier"]++
	case submitted >= r.until:
		r.left["were submitted later"]++
	case !j.State.Final():
		r.left["have not ended"]++
	case n == 0 || j.Attempts[n-1].Ended == nil || j.State == drover.JobCancelled:
		r.left["were cancelled, or never ran"]++
	default:
		r.jobs = append(r.jobs, j)
	}
	if j.Ended != nil {
		key := group{j.Batch, j.Name, j.Submitted}
		r.ends[key] = max(r.ends[key], drover.TimeOf(*j.Ended))
	}
}

// ready returns when a job could first have started.
func (r *reader) ready(j drover.Job) drover.Time {
	at := drover.TimeOf(j.Submitted)
	for _, name := range slices.Concat(j.After, j.AfterAny) {
		at = max(at, r.ends[group{j.Batch, name, j.Submitted}])
	}
	return min(at, drover.TimeOf(j.Attempts[0].Started))
}

// trace returns the workload, and how long each of its jobs waited.
func (r *reader) trace() (*trace.Trace, []time.Duration) {
	t := &trace.Trace{Name: "recorded", Start: r.since, Left: []trace.Left{}}
	var waits []time.Duration
	for _, j := range r.jobs {
		last := j.Attempts[len(j.Attempts)-1]
		ready := r.ready(j)
		waits = append(waits, drover.TimeOf(j.Attempts[0].Started).Sub(ready))
		t.Jobs = append(t.Jobs, trace.Job{
			Submit: ready.Sub(r.since), Runtime: max(time.Millisecond, last.Ended.Sub(last.Started)), Expected: time.Duration(j.Expected),
			Need: j.Resources, Count: 1, User: j.User, Priority: max(1, j.Priority), Spot: j.Spot,
		})
	}
	slices.SortStableFunc(t.Jobs, func(a, b trace.Job) int { return int(a.Submit - b.Submit) })
	for _, why := range []string{"were submitted earlier", "were submitted later", "have not ended", "were cancelled, or never ran"} {
		if n := r.left[why]; n > 0 {
			t.Left = append(t.Left, trace.Left{Why: "that " + why, Jobs: n})
		}
	}
	return t, waits
}

// lifetime is when an instance existed.
type lifetime struct{ from, to drover.Time }

// readInstances counts the instances that existed.
func (r *reader) readInstances(ctx context.Context, svc Service, into *simulate.Result) (all []lifetime, err error) {
	markets := map[drover.Market]*simulate.Market{}
	f := drover.InstanceFilter{Since: r.since}
	for {
		page, err := svc.Instances(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, in := range page.Items {
			life, was := r.lifetime(in)
			if !was {
				continue
			}
			if all = append(all, life); in.Ready != nil {
				r.boots = append(r.boots, in.Ready.Sub(*in.Created))
			}
			m := markets[in.Market]
			if m == nil {
				m = &simulate.Market{Market: in.Market}
				markets[in.Market] = m
			}
			hours := life.to.Sub(life.from).Hours()
			m.Instances++
			m.Hours += hours
			m.Cost += hours * in.Price
			into.Hours += hours
		}
		if page.Next == "" {
			break
		}
		if f.After, err = strconv.ParseInt(page.Next, 10, 64); err != nil {
			return nil, err
		}
	}
	for _, market := range []drover.Market{drover.OnDemand, drover.Spot} {
		if m := markets[market]; m != nil {
			into.Markets = append(into.Markets, *m)
		}
	}
	into.Instances, into.Peak = len(all), peak(all)
	return all, nil
}

func (r *reader) lifetime(in drover.Instance) (life lifetime, was bool) {
	if in.Created == nil {
		return life, false
	}
	life = lifetime{max(r.since, drover.TimeOf(*in.Created)), r.until}
	if in.Gone != nil {
		life.to = min(r.until, drover.TimeOf(*in.Gone))
	}
	return life, life.to > life.from
}

// peak returns the largest number of instances at one time.
func peak(all []lifetime) (most int) {
	type change struct {
		at drover.Time
		by int
	}
	var changes []change
	for _, l := range all {
		changes = append(changes, change{l.from, 1}, change{l.to, -1})
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(min(1, max(-1, a.at-b.at)))
		}
		return a.by - b.by
	})
	now := 0
	for _, c := range changes {
		now += c.by
		most = max(most, now)
	}
	return most
}

// stepOf divides a period into about two hundred steps of whole seconds.
func stepOf(d time.Duration) time.Duration { return max(time.Second, (d / 200).Truncate(time.Second)) }

// points returns the average instances and queued jobs in each step of time, and what had been spent by its end.
func (r *reader) points(steps []drover.CostStep, lives []lifetime) (all []simulate.Point) {
	spent := 0.0
	for _, s := range steps {
		for _, cost := range s.Cost {
			spent += cost
		}
		spent += s.Other
		all = append(all, simulate.Point{From: s.Since.Sub(r.since), To: s.Until.Sub(r.since), Spent: spent})
	}
	if len(all) == 0 {
		return nil
	}
	add := func(from, to drover.Time, of func(*simulate.Point) *float64) {
		width := all[0].To - all[0].From
		for i := max(0, int(from.Sub(r.since)/width)); i < len(all) && all[i].From < to.Sub(r.since); i++ {
			p := &all[i]
			within := min(p.To, to.Sub(r.since)) - max(p.From, from.Sub(r.since))
			*of(p) += max(0, float64(within)) / float64(p.To-p.From)
		}
	}
	for _, l := range lives {
		add(l.from, l.to, func(p *simulate.Point) *float64 { return &p.Instances })
	}
	for _, j := range r.jobs {
		add(r.ready(j), drover.TimeOf(j.Attempts[0].Started), func(p *simulate.Point) *float64 { return &p.Queued })
	}
	return all
}
