package engine_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine"
)

// sharers is a fleet with one full instance, shared by users with weights.
type sharers struct {
	e    *engine.Engine
	now  drover.Time
	live []drover.AttemptID // in the order of their starts
	cpu  map[int64]drover.MilliCPU
	user map[int64]string
}

func newSharers(t *rapid.T, s drover.Shares) *sharers {
	begin := drover.Time(1e18)
	room := drover.Resources{CPU: 8000, Memory: 64 * drover.GiB, Disk: 64 * drover.GiB}
	eight := drover.InstanceType{Name: "eight", Resources: room}
	state := engine.State{
		Version: engine.StateVersion, Fleet: "f", Nonce: "n", Now: begin, Looking: begin, LastInstance: 1,
		Settings: engine.Settings{
			Shares: s,
			Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 1, MaxCreating: 1, ListInterval: time.Hour}},
			Lifecycle: engine.Lifecycle{
				BootTimeout: time.Hour, ProbeInterval: time.Hour, ProbeTimeout: time.Hour, IdleTimeout: time.Hour, TermTimeout: time.Minute, ShutdownTimeout: time.Minute,
			},
		},
		Clouds: []engine.Cloud{{
			Catalogue: engine.Catalogue{Name: "c", Known: true, Offerings: []drover.Offering{{Cloud: "c", Type: eight, Market: drover.OnDemand}}},
			NextList:  begin.Add(24 * time.Hour), NextOffer: begin.Add(24 * time.Hour),
		}},
		Instances: []engine.Instance{{
			ID: 1, Name: "f-n-1", Cloud: "c", ProviderID: "p", Type: eight, Resources: room, Market: drover.OnDemand, State: drover.InstanceIdle,
			Idle: drover.IdleRun, Created: begin, Ready: begin, IdleSince: begin, Observed: engine.Observed{Listed: true, Connected: true},
		}},
	}
	e, err := engine.New(state)
	if err != nil {
		t.Fatal(err)
	}
	f := &sharers{e: e, now: begin, cpu: map[int64]drover.MilliCPU{}, user: map[int64]string{}}
	f.hear(engine.Ticked{})
	return f
}

func (f *sharers) hear(body engine.Body) {
	f.now++
	d := f.e.Apply(engine.Event{At: f.now, Body: body})
	for _, effect := range d.Effects {
		switch {
		case effect.Start != nil:
			f.live = append(f.live, effect.Start.Attempt)
			f.hear(engine.Started{Effect: effect.ID, Attempt: effect.Start.Attempt})
		case effect.Collect != nil:
			f.hear(engine.Collected{Effect: effect.ID, Attempt: effect.Collect.Attempt})
		case effect.Solve != nil:
			f.hear(engine.Solved{Effect: effect.ID, Plan: drover.Plan{Problem: effect.Solve.ID}})
		}
	}
}

func (f *sharers) submit(number int64, user string, cpu drover.MilliCPU, elements int) {
	j := waitingJob(number, elements)
	j.User, j.Shape.Need.CPU = user, cpu
	f.cpu[number], f.user[number] = cpu, user
	f.hear(engine.Submitted{Jobs: []engine.Job{j}})
}

// ends ends a running attempt.
func (f *sharers) ends(at int) {
	id := f.live[at]
	f.live = append(f.live[:at:at], f.live[at+1:]...)
	f.hear(engine.Exited{Attempt: id})
}

func (f *sharers) uses(user string) (sum drover.MilliCPU) {
	for _, id := range f.live {
		if f.user[id.Job.Number] == user {
			sum += f.cpu[id.Job.Number]
		}
	}
	return sum
}

// covers D18
func TestSharesFollowWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.IntRange(1, 5).Draw(t, "weight of a"), rapid.IntRange(1, 5).Draw(t, "weight of b")
		f := newSharers(t, drover.Shares{By: drover.ShareByUser, Weights: map[string]int{"a": a, "b": b}})
		f.submit(1, "a", 1000, 500)
		f.submit(2, "b", 1000, 500)
		for range rapid.IntRange(8, 200).Draw(t, "jobs that end") {
			f.ends(rapid.IntRange(0, len(f.live)-1).Draw(t, "which"))
			if len(f.live) != 8 {
				t.Fatalf("%d of 8 vCPUs work", len(f.live))
			}
		}
		// Once the earlier starts are compensated for, each step approaches the shares or keeps them: nobody is ahead
		// by more than one job.
		for range 16 {
			most := 0
			if f.uses("a")*drover.MilliCPU(b) < f.uses("b")*drover.MilliCPU(a) {
				most = 1
			}
			for i, id := range f.live {
				if f.user[id.Job.Number] == []string{"a", "b"}[most] {
					f.ends(i)
					break
				}
			}
		}
		ahead := f.uses("a")*drover.MilliCPU(b) - f.uses("b")*drover.MilliCPU(a)
		if slack := drover.MilliCPU(1000 * (a + b)); ahead > slack || -ahead > slack {
			t.Fatalf("a uses %v with weight %d, b uses %v with weight %d", f.uses("a"), a, f.uses("b"), b)
		}
	})
}

// covers D18
func TestNobodyWithAShareWaitsForever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newSharers(t, drover.Shares{By: drover.ShareByUser, Weights: map[string]int{"a": rapid.IntRange(1, 9).Draw(t, "weight of a")}})
		number := int64(0)
		submit := func(user string, cpu drover.MilliCPU, n int) {
			number++
			f.submit(number, user, cpu, n)
		}
		submit("large", 1000, 1) // never ends, so its user is not always the one who uses least
		for i := range rapid.IntRange(1, 4).Draw(t, "users with small jobs") {
			for range 3 {
				submit(string(rune('a'+i)), drover.MilliCPU(500*rapid.IntRange(1, 6).Draw(t, "vCPUs")), 1000)
			}
		}
		submit("large", 7000, 1)
		large := drover.JobID{Number: number, Index: -1}
		for steps := 0; ; steps++ {
			for _, id := range f.live {
				if id.Job == large {
					return
				}
			}
			if steps == 400 {
				x, _ := f.e.Explain(large)
				t.Fatalf("the large job still waits after %d ends: %v", steps, x.Reasons)
			}
			f.ends(rapid.IntRange(1, len(f.live)-1).Draw(t, "which ends"))
		}
	})
}
