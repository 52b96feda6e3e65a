package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/fleet"
)

// allocated returns how many bytes f allocates: unlike time, that reliably shows anything built per item.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// jobPairs returns pairs of jobs: the first has priority 0, the second runs after it.
func jobPairs(n int) (jobs []engine.Job) {
	for i := range n {
		first, second := waitingJob(int64(1000+2*i), 1), waitingJob(int64(1001+2*i), 1)
		first.Priority, second.After = 0, []int64{first.Number}
		jobs = append(jobs, first, second)
	}
	return jobs
}

// separateJobs returns jobs that each form a group.
func separateJobs(n int) (jobs []engine.Job) {
	for i := range n {
		j := waitingJob(int64(1000+i), 1)
		j.Timeout = time.Duration(i+1) * time.Second
		jobs = append(jobs, j)
	}
	return jobs
}

// covers D22
func TestStatusOfManyWaitingJobs(t *testing.T) {
	fleet := newBusy(t, 1, 2, 1)
	fleet.hear(engine.Submitted{Jobs: jobPairs(5000)})
	t.Run("all jobs that wait for other jobs share one entry", func(t *testing.T) {
		var said []string
		queued := fleet.e.Status().Queued
		for _, w := range fleet.e.Status().Waiting {
			said = append(said, fmt.Sprintf("%d %s: %s", w.Count, w.Reason.Code, w.Reason.Text))
			queued -= w.Count
		}
		if want := []string{"5000 dependency: waiting for other jobs", "5000 held: waiting at priority 0; raise it with drover priority"}; !slices.Equal(said[1:], want) {
			t.Errorf("waiting are %q", said)
		}
		if queued != 0 {
			t.Errorf("%d queued jobs are in no entry", queued)
		}
	})
	t.Run("allocates nothing per job", func(t *testing.T) {
		few := newBusy(t, 1, 2, 1)
		few.hear(engine.Submitted{Jobs: jobPairs(1)})
		least, most := allocated(func() { few.e.Status() }), allocated(func() { fleet.e.Status() })
		if most > least+1000 {
			t.Errorf("10,000 jobs cost %d bytes, but 2 jobs %d", most, least)
		}
	})
}

// refused returns a fleet in which this many groups wait, each for its own reason.
func refused(t *testing.T, groups int) *engine.Engine {
	t.Helper()
	fleet := newBusy(t, 1, 1, 1)
	settings := fleet.e.State().Settings
	settings.Clouds[0].MaxInstances = 2
	fleet.hear(engine.Configured{Settings: settings})
	fleet.hear(engine.Submitted{Jobs: separateJobs(groups)})
	answer := engine.Solved{Effect: fleet.e.State().Solving.Effect}
	for i := range groups {
		answer.Plan.Unmet = append(answer.Plan.Unmet, drover.Unmet{Demand: i, Count: 1, Code: drover.ReasonLimit, Text: fmt.Sprint("reason ", i)})
	}
	fleet.hear(answer)
	return fleet.e
}

func TestStatusShowsAtMostFiftyKinds(t *testing.T) {
	s := refused(t, 100).Status()
	if len(s.Waiting) != 49 || s.Waiting[0].Reason.Text != "reason 0" {
		t.Fatalf("%d kinds, the first is %+v", len(s.Waiting), s.Waiting[0])
	}
	if last := s.Waiting[48]; last.Count != 52 || last.Reason.Code != drover.ReasonOther || s.Queued != 100 {
		t.Errorf("the last kind is %+v, and %d are queued", last, s.Queued)
	}
}

func TestExplainAll(t *testing.T) {
	t.Run("counts what exceeds the maximum", func(t *testing.T) {
		e := refused(t, 10)
		all, left := e.ExplainAll(4)
		if len(all) != 4 || left != 6 || all[3].Reasons[0].Text != "reason 3" {
			t.Errorf("%d left after %+v", left, all)
		}
		if all, left := e.ExplainAll(1000); len(all) != 10 || left != 0 {
			t.Errorf("%d left after %d", left, len(all))
		}
	})
	t.Run("explains jobs that wait for the same job together, and counts the rest one by one", func(t *testing.T) {
		fleet := newBusy(t, 1, 1, 1)
		jobs := jobPairs(3)
		third := waitingJob(2000, 1)
		third.After = []int64{1000}
		fleet.hear(engine.Submitted{Jobs: append(jobs, third)})
		all, left := fleet.e.ExplainAll(2)
		if len(all) != 2 || left != 2 || all[0].Count != 3 || all[1].Count != 2 || all[1].Reasons[0].Text != "waiting for job 1000 (job-1000) to succeed" {
			t.Errorf("%d left after %+v", left, all)
		}
	})
	t.Run("allocates only for what it returns", func(t *testing.T) {
		few, many := booting(t, 10), booting(t, 5000)
		least, most := allocated(func() { few.ExplainAll(10) }), allocated(func() { many.ExplainAll(10) })
		if most > least+2000 {
			t.Errorf("ten of 5000 groups cost %d bytes, but ten of ten %d", most, least)
		}
	})
	t.Run("each group is explained by its own instance", func(t *testing.T) {
		all, left := booting(t, 300).ExplainAll(1000)
		if len(all) != 300 || left != 0 {
			t.Fatalf("%d left after %d", left, len(all))
		}
		for i, x := range all {
			if want := fmt.Sprintf("waiting for instances to boot: f-n-%d", i+1); x.Reasons[0].Text != want {
				t.Fatalf("group %d: %s", i, x.Reasons[0].Text)
			}
		}
	})
}

// booting returns a fleet in which this many instances boot, each for its own group.
func booting(t testing.TB, groups int) *engine.Engine {
	t.Helper()
	b := newBusy(t, 1, 1, 1)
	s := b.e.State()
	s.Settings.Clouds[0].MaxInstances = 2 * groups
	s.Jobs, s.Attempts, s.Instances = separateJobs(groups), nil, nil
	for i, j := range s.Jobs {
		s.Instances = append(s.Instances, engine.Instance{
			ID: int64(i + 1), Name: fmt.Sprintf("f-n-%d", i+1), Cloud: "c", ProviderID: fmt.Sprint("p-", i), Type: offering.Type, Resources: size,
			Market: drover.OnDemand, State: drover.InstanceBooting, Idle: drover.IdleRun, Asked: b.now, Created: b.now, Begun: true, Observed: engine.Observed{Listed: true},
			Reservations: []fleet.Reservation{{Group: engine.GroupKey{Shape: j.Shape, Priority: j.Priority, Timeout: j.Timeout}, Count: 1}},
		})
	}
	e, err := engine.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// BenchmarkGlance makes the calls behind drover watch. The cost per group should not depend on their number.
func BenchmarkGlance(b *testing.B) {
	for _, groups := range []int{100, 1000, 10_000} {
		e := booting(b, groups)
		b.Run(fmt.Sprintf("ExplainAll/groups=%d", groups), func(b *testing.B) {
			for b.Loop() {
				e.ExplainAll(groups)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*groups), "ns/group")
		})
		b.Run(fmt.Sprintf("Status/groups=%d", groups), func(b *testing.B) {
			for b.Loop() {
				e.Status()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*groups), "ns/group")
		})
		b.Run(fmt.Sprintf("Census/instances=%d", groups), func(b *testing.B) {
			for b.Loop() {
				e.Census()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*groups), "ns/instance")
		})
	}
}
