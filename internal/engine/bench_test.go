package engine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

// busy is a fleet in which every instance runs one job that fills it, and more wait.
type busy struct {
	e    *engine.Engine
	now  drover.Time
	live []drover.AttemptID // by instance
}

var oneCPU = drover.Shape{Need: drover.Resources{CPU: 1000, Memory: drover.GiB, Disk: drover.GiB}, Spot: drover.SpotPrefer}

var offering = drover.Offering{Cloud: "c", Type: drover.InstanceType{Name: "one", Resources: size}, Market: drover.OnDemand}

// size is the resources of an instance: enough for one job, and a remainder that fits none.
var size = drover.Resources{CPU: 1500, Memory: 2 * drover.GiB, Disk: 8 * drover.GiB}

// newBusy returns a fleet with jobs of this many elements each; jobs with one element are not arrays.
func newBusy(t testing.TB, instances, jobs, elements int) *busy {
	t.Helper()
	b := &busy{now: drover.Time(1e18), live: make([]drover.AttemptID, instances)}
	s := engine.State{
		Version: engine.StateVersion, Fleet: "f", Nonce: "n", Now: b.now, Looking: b.now, LastInstance: int64(instances),
		Settings: engine.Settings{
			Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: instances, MaxCreating: 10, ListInterval: time.Hour}},
			Lifecycle: engine.Lifecycle{
				BootTimeout: time.Hour, ProbeInterval: time.Hour, ProbeTimeout: time.Hour, IdleTimeout: time.Hour, TermTimeout: time.Minute, ShutdownTimeout: time.Minute,
			},
		},
		Clouds: []engine.Cloud{{Catalogue: engine.Catalogue{Name: "c", Known: true, Offerings: []drover.Offering{offering}}, NextList: b.now.Add(24 * time.Hour), NextOffer: b.now.Add(24 * time.Hour)}},
	}
	for i := range instances {
		id := int64(i + 1)
		s.Instances = append(s.Instances, engine.Instance{
			ID: id, Name: fmt.Sprintf("f-n-%d", id), Cloud: "c", ProviderID: fmt.Sprint("p-", id), Type: offering.Type, Resources: size,
			Market: drover.OnDemand, State: drover.InstanceIdle,
			Idle: drover.IdleRun, Created: b.now, Ready: b.now, IdleSince: b.now, Observed: engine.Observed{Listed: true, Connected: true},
		})
	}
	for n := range jobs {
		s.Jobs = append(s.Jobs, waitingJob(int64(n+1), elements))
	}
	var err error
	if b.e, err = engine.New(s); err != nil {
		t.Fatal(err)
	}
	b.hear(engine.Ticked{})
	return b
}

func waitingJob(number int64, elements int) engine.Job {
	j := engine.Job{Number: number, Name: fmt.Sprint("job-", number), Shape: oneCPU, Priority: 1, Attempts: 3, Queued: engine.Ranges{{First: -1, Last: -1}}}
	if elements > 1 {
		j.Array = drover.Array{First: 0, Last: elements - 1, Set: true}
		j.Queued = engine.Ranges{{First: 0, Last: elements - 1}}
	}
	return j
}

// hear applies an event and then the answers to its effects: starts and collects succeed.
func (b *busy) hear(body engine.Body) (events int) {
	b.now++
	d := b.e.Apply(engine.Event{At: b.now, Body: body})
	events = 1
	for _, f := range d.Effects {
		switch {
		case f.Start != nil:
			b.live[f.Start.Instance-1] = f.Start.Attempt
			events += b.hear(engine.Started{Effect: f.ID, Attempt: f.Start.Attempt})
		case f.Collect != nil:
			events += b.hear(engine.Collected{Effect: f.ID, Attempt: f.Collect.Attempt})
		}
	}
	return events
}

// end ends the job on an instance, after which the next job runs there.
func (b *busy) end(t testing.TB, instance int) (events int) {
	was := b.live[instance]
	events = b.hear(engine.Exited{Attempt: was})
	if b.live[instance] == was {
		t.Fatalf("no job follows %v", was)
	}
	return events
}

// BenchmarkApply decides on the events of one job: its exit, its output stored, the next job started.
func BenchmarkApply(b *testing.B) {
	for _, instances := range []int{8, 1000, 10_000} {
		for _, jobs := range []int{1, 100_000} {
			b.Run(fmt.Sprintf("instances=%d/jobs=%d/waiting=100000", instances, jobs), func(b *testing.B) {
				benchmarkApply(b, instances, jobs, 100_000/jobs)
			})
		}
	}
}

func benchmarkApply(b *testing.B, instances, jobs, elements int) {
	fleet := newBusy(b, instances, jobs, elements)
	ended, events := 0, 0
	for b.Loop() {
		if ended++; ended == jobs*elements-instances {
			b.StopTimer()
			fleet, ended = newBusy(b, instances, jobs, elements), 1
			b.StartTimer()
		}
		events += fleet.end(b, ended%instances)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}

// The test measures allocated memory, since time varies between runs: anything copied or built per waiting job shows.
// covers L25
func TestCostOfAnEventIsIndependentOfWaitingJobs(t *testing.T) {
	cost := func(instances, jobs, elements int) uint64 {
		fleet := newBusy(t, instances, jobs, elements)
		const times = 50
		fleet.end(t, 0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			fleet.end(t, 0)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / times
	}
	few := cost(4, 100, 1)
	for name, many := range map[string]uint64{
		"a hundred times the jobs":                 cost(4, 10_000, 1),
		"ten thousand times the elements":          cost(4, 1, 1_000_000),
		"a hundred times the instances, all alike": cost(400, 10_000, 1),
		"an array on four hundred instances":       cost(400, 1, 1_000_000),
	} {
		if many > 2*few {
			t.Errorf("%s: the events of one job allocate %d bytes, but %d with 100 jobs on 4 instances", name, many, few)
		}
	}
}
