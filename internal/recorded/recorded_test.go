package recorded_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/recorded"
	"drover/internal/simulate"
	"drover/internal/trace"
)

var begin = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

func at(minutes int) *time.Time { return new(begin.Add(time.Duration(minutes) * time.Minute)) }

// past is a Service that has jobs and instances, two to a page.
type past struct {
	jobs      []drover.Job
	instances []drover.Instance
}

func (p past) Jobs(_ context.Context, f drover.JobFilter) (page drover.Page[drover.Job], err error) {
	for _, j := range p.jobs {
		if j.ID.Number > f.After.Number && len(page.Items) < 2 {
			page.Items = append(page.Items, j)
		}
	}
	if n := len(page.Items); n == 2 {
		page.Next = page.Items[1].ID.String()
	}
	return page, nil
}

func (p past) Instances(_ context.Context, f drover.InstanceFilter) (drover.Page[drover.Instance], error) {
	return drover.Page[drover.Instance]{Items: p.instances}, nil
}

func (p past) Costs(_ context.Context, f drover.CostFilter) (c drover.Costs, err error) {
	c.Total = drover.CostLine{Jobs: 3, Boot: 1, Idle: .5, Waste: .5, Cost: 5}
	for t := f.Since; t < f.Until; t = t.Add(f.Step) {
		c.Steps = append(c.Steps, drover.CostStep{Since: t, Until: min(f.Until, t.Add(f.Step)), Cost: []float64{0}, Other: 5. / 200})
	}
	return c, nil
}

// job returns a job that was submitted, started and ended at these minutes.
func job(number int64, name string, submitted, began, ended int, state drover.JobState, after ...string) drover.Job {
	j := drover.Job{ID: drover.JobID{Number: number, Index: -1}, Name: name, Batch: "b", User: "ada", State: state, Priority: 2, Submitted: *at(submitted),
		Resources: drover.Resources{CPU: 1000, Memory: drover.GiB}, Spot: drover.SpotNever, After: after}
	if began >= 0 {
		j.Started = at(began)
		j.Attempts = []drover.Attempt{{Number: 1, State: drover.AttemptSucceeded, Started: *at(began), Ended: at(ended)}}
		j.Ended = at(ended)
	}
	return j
}

func TestRead(t *testing.T) {
	lost := job(3, "lost", 10, 12, 30, drover.JobFailed)
	lost.Attempts = []drover.Attempt{{Number: 1, State: drover.AttemptInterrupted, Started: *at(12), Ended: at(20)}, {Number: 2, State: drover.AttemptFailed, Started: *at(21), Ended: at(30)}}
	cancelled := job(6, "c", 5, -1, 0, drover.JobCancelled)
	cancelled.Ended = at(6)
	p := past{
		jobs: []drover.Job{
			job(1, "a", 0, 5, 25, drover.JobSucceeded), job(2, "b", 0, 27, 37, drover.JobSucceeded, "a"), lost,
			job(4, "before", -5, 1, 9, drover.JobSucceeded), job(5, "waits", 7, -1, 0, drover.JobQueued), cancelled, job(7, "later", 300, 301, 302, drover.JobSucceeded),
		},
		instances: []drover.Instance{
			{ID: 1, Market: drover.Spot, Price: 2, Created: at(1), Ready: at(3), Gone: at(61)}, {ID: 2, Market: drover.OnDemand, Price: 1, Created: at(61), Gone: at(91)},
			{ID: 3, Market: drover.OnDemand, Price: 1, Created: at(90)}, {ID: 4}, {ID: 5, Market: drover.Spot, Created: at(-60), Gone: at(-10)},
		},
	}
	got, err := recorded.Read(t.Context(), p, drover.TimeOf(begin), drover.TimeOf(*at(100)), 10)
	if err != nil {
		t.Fatal(err)
	}
	need := drover.Resources{CPU: 1000, Memory: drover.GiB}
	line := func(submit, runtime int) trace.Job {
		return trace.Job{Submit: time.Duration(submit) * time.Minute, Runtime: time.Duration(runtime) * time.Minute, Need: need, Count: 1, User: "ada", Priority: 2, Spot: drover.SpotNever}
	}
	want := &trace.Trace{Name: "recorded", Start: drover.TimeOf(begin), Jobs: []trace.Job{line(0, 20), line(10, 9), line(25, 10)},
		Left: []trace.Left{{Why: "that were submitted earlier", Jobs: 1}, {Why: "that were submitted later", Jobs: 1}, {Why: "that have not ended", Jobs: 1}, {Why: "that were cancelled, or never ran", Jobs: 1}}}
	if diff := cmp.Diff(want, got.Trace); diff != "" {
		t.Error(diff)
	}
	if got.Boot != 2*time.Minute {
		t.Errorf("instances booted for %v", got.Boot)
	}
	r := got.Result
	points := r.Points
	r.Points = nil
	if diff := cmp.Diff(&simulate.Result{
		Configuration: "what happened", Policy: recorded.Really, Jobs: 3, Done: 2, Failed: 1, LeftOut: want.Left, Lost: 1,
		Wait: simulate.Waits{Mean: 180, P50: 120, P95: 300, P99: 300, Max: 300}, Makespan: 37 * 60, Instances: 3, Peak: 2, Hours: 1 + .5 + 1./6,
		Markets: []simulate.Market{{Market: drover.OnDemand, Instances: 2, Hours: .5 + 1./6, Cost: .5 + 1./6}, {Market: drover.Spot, Instances: 1, Hours: 1, Cost: 2}},
		Cost:    5, Parts: simulate.Parts{Jobs: 3, Boot: 1, Idle: .5, Waste: .5}, Begin: drover.TimeOf(begin),
	}, r); diff != "" {
		t.Error(diff)
	}
	hours, queued := 0.0, 0.0
	for _, p := range points {
		hours += p.Instances * (p.To - p.From).Hours()
		queued += p.Queued * (p.To - p.From).Seconds()
	}
	if hours < r.Hours-1e-9 || hours > r.Hours+1e-9 || queued < 539.9 || queued > 540.1 || points[len(points)-1].Spent < 4.9 {
		t.Errorf("%v instance-hours, %v job-seconds of waiting, %v spent", hours, queued, points[len(points)-1].Spent)
	}

	t.Run("begins at the first record", func(t *testing.T) {
		for want, p := range map[int]past{
			-60: {jobs: []drover.Job{job(1, "a", 0, 5, 25, drover.JobSucceeded)}, instances: p.instances[4:]},
			0:   {jobs: []drover.Job{job(1, "a", 0, 5, 25, drover.JobSucceeded)}, instances: p.instances[:1]},
		} {
			got, err := recorded.Read(t.Context(), p, drover.TimeOf(*at(-1000)), drover.TimeOf(*at(100)), 10)
			if err != nil {
				t.Fatal(err)
			}
			if begin := drover.TimeOf(*at(want)); got.Trace.Start != begin || got.Result.Begin != begin {
				t.Errorf("%v and %v, want %v", got.Trace.Start, got.Result.Begin, begin)
			}
		}
	})
	t.Run("refuses too many jobs, and none", func(t *testing.T) {
		for most, p := range map[int]past{1: p, 10: {}} {
			if _, err := recorded.Read(t.Context(), p, drover.TimeOf(begin), drover.TimeOf(*at(100)), most); drover.KindOf(err) != drover.KindInvalid {
				t.Error(err)
			}
		}
	})
}
