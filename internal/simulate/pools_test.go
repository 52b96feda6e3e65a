package simulate

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
	"drover/internal/trace"
)

// keeping returns a pool of 30 spot instances in three zones for two days. A tenth are interrupted within an hour.
func keeping() Input {
	m := DefaultModels
	m.Interrupted = 0.1
	kind := drover.InstanceType{Name: "small", ProviderType: "small", Resources: drover.Resources{CPU: 2000, Memory: 4 << 30, Disk: 20 << 30}}
	in := Input{Models: m, Trace: &trace.Trace{Name: "pools"}, For: 48 * time.Hour}
	in.Offerings = m.Offerings("c", []string{"a", "b", "c"}, []trace.Price{{Type: kind, OnDemand: drover.Dollar / 20}})
	in.Settings = engine.Settings{
		Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 100, MaxCreating: 10, ListInterval: time.Minute}},
		Lifecycle: engine.Lifecycle{
			BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: time.Minute, TermTimeout: time.Minute, ShutdownTimeout: 10 * time.Second,
		},
		Pools: []pool.Spec{{
			Name: "web", Kind: drover.PoolSize, Count: 30, Clouds: []string{"c"}, Market: drover.Spot, Spread: drover.SpreadBalanced, Login: drover.LoginSSH, Cooldown: 5 * time.Minute,
			Template: "t", MaxUnavailable: 1, MaxSurge: 1,
		}},
	}
	return in
}

// covers P1 P2 P3
func TestSimulatedPoolIsMaintained(t *testing.T) {
	for name, exhausted := range map[string]float64{"with capacity everywhere": 0, "with zones that sometimes have none": 0.2} {
		t.Run(name, func(t *testing.T) {
			in := keeping()
			in.Models.Exhausted = exhausted
			r, err := Run(t.Context(), in, Drover)
			if err != nil {
				t.Fatal(err)
			}
			p := r.Pools[0]
			if p.Ready < 0.995 || p.Unbalanced != 0 || p.Beyond != 0 {
				t.Errorf("%.3f%% of the wanted instances were ready, %d were added or removed against the balance, %.2f surplus instance-hours were paid", p.Ready*100, p.Unbalanced, p.Beyond)
			}
			if p.Interrupted < 100 || p.Instances < 30+p.Interrupted || exhausted > 0 && p.Refused == 0 {
				t.Errorf("too little happened: %+v", p)
			}
			if p.Replaced.P50 > 90 {
				t.Errorf("the median replacement took %v s", p.Replaced.P50)
			}
			again, err := Run(t.Context(), in, Drover)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.Pools, again.Pools); diff != "" {
				t.Errorf("equal inputs had different results (-one +other):\n%s", diff)
			}
		})
	}
}

func TestPoolsThatAreNotMaintainedCostNothing(t *testing.T) {
	in := keeping()
	in.For, in.Trace = 0, &trace.Trace{Jobs: []trace.Job{{Runtime: time.Hour, Count: 1, Need: drover.Resources{CPU: 2000, Memory: drover.GiB}}}}
	if r := whole(t, in, Drover); r.Instances != 1 || r.Pools != nil {
		t.Errorf("%d instances were rented for one job, and pools have results: %+v", r.Instances, r.Pools)
	}
}

// covers P6
func TestSimulatedPoolFollowsItsSchedule(t *testing.T) {
	in := keeping()
	in.Models.Interrupted, in.For = 0, 24*time.Hour
	noon := in.Begin().Add(12 * time.Hour)
	in.Scheduled = func(now drover.Time) ([]pool.Spec, drover.Time) {
		specs, next := slices.Clone(in.Settings.Pools), noon
		if now >= noon {
			specs[0].Count, next = 10, 0
		}
		return specs, next
	}
	r, err := Run(t.Context(), in, Drover)
	if err != nil {
		t.Fatal(err)
	}
	p := r.Pools[0]
	if p.Hours != 12*30+12*10 || p.Instances != 30 || p.Wanted != 10 || p.Ready < 0.99 {
		t.Errorf("%+v", p)
	}
	if r.Hours > 1.02*p.Hours {
		t.Errorf("%.1f instance-hours were paid, and %.1f wanted", r.Hours, p.Hours)
	}
}

// covers D2
func TestSimulatedPoolStartsItsStoppedInstances(t *testing.T) {
	became := func(stopped int) (Pool, *Result) {
		in := keeping()
		in.Models.Interrupted, in.For = 0, 24*time.Hour
		s := &in.Settings.Pools[0]
		s.Count, s.Market, s.Stopped = 10, drover.OnDemand, stopped
		noon := in.Begin().Add(12 * time.Hour)
		in.Scheduled = func(now drover.Time) ([]pool.Spec, drover.Time) {
			specs, next := slices.Clone(in.Settings.Pools), noon
			if now >= noon {
				specs[0].Count, next = 15, 0
			}
			return specs, next
		}
		r, err := Run(t.Context(), in, Drover)
		if err != nil {
			t.Fatal(err)
		}
		return r.Pools[0], r
	}
	with, paid := became(5)
	without, _ := became(0)
	if with.Instances != 20 || without.Instances != 15 {
		t.Errorf("%d instances were created, five of them to replace started ones, and %d without stopped instances", with.Instances, without.Instances)
	}
	if with.Ready <= without.Ready {
		t.Errorf("%.4f%% were ready with stopped instances to start, %.4f%% without", with.Ready*100, without.Ready*100)
	}
	if paid.Hours > 1.02*with.Hours {
		t.Errorf("%.1f instance-hours were paid, want %.1f, since stopped instances cost nothing", paid.Hours, with.Hours)
	}
}

func TestMissingInstancesOfAPoolAreMeasured(t *testing.T) {
	in := keeping()
	in.For = time.Hour
	in.Settings.MaxInstances = 15
	r, err := Run(t.Context(), in, Drover)
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Pools[0]; p.Ready < 0.4 || p.Ready > 0.5 {
		t.Errorf("with half of the instances, the ready share is %.3f", p.Ready)
	}
}
