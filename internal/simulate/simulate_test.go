package simulate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine"
	"drover/internal/trace"
)

// whole simulates, and checks that every job finishes.
func whole(t testing.TB, in Input, p Policy) *Result {
	t.Helper()
	r, err := Run(t.Context(), in, p)
	if err != nil {
		t.Fatal(err)
	}
	if r.Done != r.Jobs || r.Failed+r.Refused+r.Unfinished != 0 {
		t.Errorf("%s: %+v", p, r)
	}
	return r
}

// one returns a single job, on a cloud that never fails.
func one() Input {
	in := input(1, 0)
	in.Models.Interrupted = 0
	in.Trace = &trace.Trace{Jobs: []trace.Job{{Submit: 10 * time.Second, Runtime: time.Hour, Count: 1, Need: drover.Resources{CPU: 4000}}}}
	return in
}

func TestDrover(t *testing.T) {
	t.Run("rents the cheapest instance that holds a job, for its boot, its run and as long as keeping it may pay off", func(t *testing.T) {
		in := one()
		r := whole(t, in, Drover)
		boot := in.Models.boot(1)
		paid := boot + time.Hour + boot
		if hours := time.Duration(r.Hours * float64(time.Hour)); r.Instances != 1 || hours < paid || hours > paid+5*time.Second {
			t.Errorf("%d instances were paid for %v, want one for %v and a few calls: %+v", r.Instances, hours, paid, r)
		}
		if wait := time.Duration(r.Wait.Mean * float64(time.Second)); wait < boot || wait > boot+5*time.Second {
			t.Errorf("the job waited %v, and the boot took %v", wait, boot)
		}
		if r.Bound > r.Cost || r.Bound < r.Cost/2 || len(r.Markets) != 1 || r.Markets[0].Market != drover.Spot {
			t.Errorf("%+v", r)
		}
	})
	t.Run("rents on demand if spot is not wanted", func(t *testing.T) {
		in := one()
		in.Spot = drover.SpotNever
		if r := whole(t, in, Drover); len(r.Markets) != 1 || r.Markets[0].Market != drover.OnDemand {
			t.Errorf("%+v", r)
		}
	})
	t.Run("restarts interrupted jobs", func(t *testing.T) {
		lost, taken := 0, 0
		for seed := range uint64(4) {
			in := input(seed, 0)
			in.Models.Interrupted = 0.5
			r := whole(t, in, Drover)
			lost += r.Lost
			for _, m := range r.Markets {
				taken += m.Interrupted
			}
		}
		if lost == 0 || taken == 0 {
			t.Errorf("%d attempts were lost, and %d instances interrupted", lost, taken)
		}
	})
	t.Run("runs a job that is submitted months after the others", func(t *testing.T) {
		in := one()
		late := in.Trace.Jobs[0]
		late.Submit += 100 * 24 * time.Hour
		in.Trace.Jobs = append(in.Trace.Jobs, late)
		whole(t, in, Drover)
	})
	t.Run("respects limits by making jobs wait", func(t *testing.T) {
		free, limited := whole(t, input(1, 0), Drover), whole(t, input(1, 1), Drover)
		if limited.Peak != 1 || free.Peak <= 1 || limited.Wait.Mean <= free.Wait.Mean {
			t.Errorf("%+v, without a limit %+v", limited, free)
		}
	})
	t.Run("refuses jobs that fit nowhere", func(t *testing.T) {
		in := one()
		in.Trace.Jobs = append(in.Trace.Jobs, trace.Job{Submit: time.Minute, Runtime: time.Hour, Count: 7, Need: drover.Resources{CPU: 400_000}})
		for _, p := range Policies {
			r, err := Run(t.Context(), in, p)
			if err != nil || r.Refused != 7 || r.Done != 1 || !strings.Contains(r.WhyRefused, "job 2 of the trace, submitted 1m0s after the trace begins: it needs 400 vCPUs, but type ") {
				t.Errorf("%s: %v: %+v", p, err, r)
			}
		}
	})
	t.Run("gives up jobs that will never start", func(t *testing.T) {
		in := one()
		in.Settings.MaxCost = 1 // nano-dollar
		in.Settings.Clouds[0].MaxCreating = 0
		r, err := Run(t.Context(), in, Drover)
		if err != nil || r.Done != 0 || r.Refused+r.Unfinished != 1 {
			t.Errorf("%v: %+v", err, r)
		}
		if r.Bound != 0 || r.Ratio != 0 || r.Prompt != 0 || r.Makespan != 0 {
			t.Errorf("jobs that did not run have a minimum cost or a makespan: %+v", r)
		}
	})
}

func TestAJobWaitsOnlyForRoomThatItsUserMayHave(t *testing.T) {
	in := one()
	in.Settings.Clouds[0].MaxInstances, in.Settings.Lifecycle.Sharing, in.Settings.Lifecycle.IdleTimeout = 2, drover.ShareUser, 10*time.Hour
	job := func(submit, runtime time.Duration, user string) trace.Job {
		return trace.Job{Submit: submit, Runtime: runtime, Count: 1, Need: drover.Resources{CPU: 4000}, User: user}
	}
	in.Trace.Jobs = []trace.Job{job(0, 2*time.Hour, "ada"), job(0, 10*time.Minute, "bob"), job(time.Second, time.Minute, "ada"), job(2*time.Second, 100*time.Minute, "bob")}
	r := whole(t, in, FirstFit)
	if most := 150 * time.Minute; r.Instances != 2 || r.Makespan > most.Seconds() {
		t.Errorf("bob's second job did not start when his first ended: %d instances, a makespan of %v s", r.Instances, r.Makespan)
	}
}

func TestEveryPolicy(t *testing.T) {
	for _, p := range Policies {
		t.Run(string(p)+" is cut off before times overflow", func(t *testing.T) {
			in := one()
			in.Trace.Start = drover.TimeOf(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
			in.Trace.Jobs[0].Submit = 60 * 365 * 24 * time.Hour
			in.Offerings = in.Offerings[:1] // so that 60 years take little time
			in.Settings.Clouds[0].ListInterval = 365 * 24 * time.Hour
			if _, err := Run(t.Context(), in, p); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), "more than 50 years") {
				t.Errorf("the error is %v", err)
			}
		})
		t.Run(string(p)+" has equal results for equal inputs, and different ones for other seeds", func(t *testing.T) {
			first, again := whole(t, input(3, 0), p), whole(t, input(3, 0), p)
			if diff := cmp.Diff(first, again); diff != "" {
				t.Error(diff)
			}
			in := input(3, 0)
			in.Models.Seed = 77
			if other := whole(t, in, p); other.Money == first.Money {
				t.Errorf("the seed does not change the cost: %v", first.Money)
			}
		})
		t.Run(string(p)+" costs at least the bound, and its series adds up to the cost", func(t *testing.T) {
			for seed := range uint64(5) {
				r := whole(t, input(seed, 0), p)
				last := r.Points[len(r.Points)-1]
				if r.Cost < r.Bound || r.Bound <= 0 || r.Utilisation <= 0 || r.Utilisation > 1 {
					t.Errorf("%+v", r)
				}
				if off := last.Spent - r.Cost; off > 1e-6 || off < -1e-6 {
					t.Errorf("the series ends at %v, and the bills add up to %v", last.Spent, r.Cost)
				}
			}
		})
		t.Run(string(p)+" ends when its context does", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := Run(ctx, input(1, 0), p); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSeries(t *testing.T) {
	t.Run("the total does not depend on how often periods are joined", rapid.MakeCheck(func(t *rapid.T) {
		s := series{width: time.Second}
		from, want := time.Duration(0), 0.0
		for _, d := range rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Hour)), 1, 50).Draw(t, "durations") {
			to := from + time.Duration(d)
			s.add(from, to, sample{instances: 2, hourly: 3600})
			from, want = to, want+time.Duration(d).Seconds()
		}
		points := s.points(from)
		if len(s.bins) > maxBins {
			t.Errorf("there are %d periods", len(s.bins))
		}
		if len(points) == 0 {
			return
		}
		last := points[len(points)-1]
		if off := last.Spent - want; off > 1e-3 || off < -1e-3 || last.To != from {
			t.Errorf("%v was spent until %v, want %v until %v", last.Spent, last.To, want, from)
		}
		for _, p := range points {
			if p.Instances > 2.000001 || p.Instances < 1.999999 {
				t.Errorf("%+v", p)
			}
		}
	}))
}

func TestModels(t *testing.T) {
	m := Models{Seed: 5, Boot: 40 * time.Second, Interrupted: 0.1}
	const many = 4000
	var boots []time.Duration
	within := 0
	for n := range many {
		boots = append(boots, m.boot(n))
		if life, ends := m.life(n); ends && life-noticeTime < time.Hour {
			within++
		}
	}
	slices.Sort(boots)
	if median := boots[many/2]; median < 39*time.Second || median > 41*time.Second {
		t.Errorf("the median boot takes %v", median)
	}
	if share := float64(within) / many; share < 0.085 || share > 0.115 {
		t.Errorf("a share of %v is interrupted within an hour, want 0.1", share)
	}
	if _, ends := (Models{}).life(1); ends {
		t.Error("an instance is interrupted, although none should be")
	}
	k := newMarket(m, input(1, 0).Offerings)
	base := k.offerings
	for range 2000 {
		k.step()
		for i, o := range k.offerings {
			if r := float64(o.Price) / float64(base[i].Price); o.Market == drover.OnDemand && r != 1 || r < 0.6 || r > 1.4 {
				t.Fatalf("%v costs %v times its initial price", o, r)
			}
		}
	}
}

func TestBound(t *testing.T) {
	offering := func(cpu drover.MilliCPU, memory drover.Bytes, price drover.Money) drover.Offering {
		return drover.Offering{Market: drover.OnDemand, Price: price, Type: drover.InstanceType{Resources: drover.Resources{CPU: cpu, Memory: memory}}}
	}
	shape := func(cpu drover.MilliCPU, memory drover.Bytes) drover.Shape {
		return drover.Shape{Need: drover.Resources{CPU: cpu, Memory: memory}}
	}
	hour := 3600.0
	t.Run("is the cost of full instances", func(t *testing.T) {
		got, _ := bound([]chunk{{shape(1000, 4*drover.GiB), 8 * hour}}, []drover.Offering{offering(4000, 16*drover.GiB, drover.Dollar), offering(4000, 16*drover.GiB, 2*drover.Dollar)})
		if got < 1.9999 || got > 2.0001 {
			t.Errorf("the bound is %v, want 2", got)
		}
	})
	t.Run("counts only offerings that a job fits", func(t *testing.T) {
		small, large := offering(2000, 8*drover.GiB, drover.Dollar/10), offering(64_000, 256*drover.GiB, 32*drover.Dollar)
		got, _ := bound([]chunk{{shape(32_000, 128*drover.GiB), hour}}, []drover.Offering{small, large})
		if got < 15.999 || got > 16.001 {
			t.Errorf("the bound is %v, want 16", got)
		}
	})
}

// TestBoundOfALongJob simulates a job that runs for days after the last submission, while spot prices move.
func TestBoundOfALongJob(t *testing.T) {
	for seed := range uint64(8) {
		in := one()
		in.Models.Seed, in.Spot, in.Trace.Jobs[0].Runtime = seed, drover.SpotRequire, 240*time.Hour
		in.Offerings = slices.DeleteFunc(in.Offerings, func(o drover.Offering) bool { return o.Type.Name != "t2" || o.Zone != "a" })
		in.Trace.Jobs[0].Need = in.Offerings[0].Type.Resources
		if r := whole(t, in, Drover); r.Bound > r.Cost {
			t.Errorf("seed %d: the cost of $%v is less than the minimum of $%v", seed, r.Cost, r.Bound)
		}
	}
}

// TestTurnsCountUnavoidableBoots submits a second job while the first runs, soon after it ends, and long after.
func TestTurnsCountUnavoidableBoots(t *testing.T) {
	const boot, patience = 30 * time.Second, time.Minute
	for _, x := range []struct {
		name   string
		second time.Duration
		boots  float64
	}{
		{"long after the first has ended", 70 * time.Minute, 2},
		{"soon enough that the instance may have idled", 61*time.Minute + boot/3, 1 + 1.0/3},
		{"soon enough that the first may have started late", time.Hour, 1},
		{"while the first runs", 30 * time.Minute, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			need := drover.Resources{CPU: 1000, Memory: drover.GiB}
			in := Input{Trace: &trace.Trace{Jobs: []trace.Job{
				{Runtime: time.Hour, Need: need, Count: 1},
				{Submit: x.second, Runtime: time.Hour, Need: need, Count: 1},
			}}}
			rates := map[drover.Shape]float64{in.shape(in.Trace.Jobs[0]): 1}
			if got, want := in.turns(rates, patience, boot), x.boots*boot.Seconds(); math.Abs(got-want) > 1e-6 {
				t.Errorf("%v boots, want %v", got/boot.Seconds(), x.boots)
			}
		})
	}
}

// TestReservations simulates four concurrent jobs, which need an instance each, with two reserved instances.
func TestReservations(t *testing.T) {
	reserved := func() Input {
		in := one()
		in.Spot, in.Trace.Jobs[0].Count = drover.SpotNever, 4
		in.Settings.Clouds[0].Reserved = []engine.Reservation{{Type: "t2", Count: 2, Price: drover.Dollar / 1000}}
		in.Settings.Clouds[0].MaxInstances = 10
		in.Offerings = slices.DeleteFunc(in.Offerings, func(o drover.Offering) bool { return o.Type.Name != "t2" })
		return in
	}
	for _, p := range Policies {
		t.Run(string(p)+" pays their price for as many instances as there are, and the list price for the others", func(t *testing.T) {
			in := reserved()
			r := whole(t, in, p)
			each, list := r.Hours/4, in.Offerings[0].Price.USD()
			if want := 2 * each * (list + .001); r.Instances != 4 || r.Cost < want*.97 || r.Cost > want*1.03 {
				t.Errorf("%d instances for %.3f hours cost $%.4f, want about $%.4f", r.Instances, r.Hours, r.Cost, want)
			}
			if sum := r.Parts.Jobs + r.Parts.Boot + r.Parts.Idle + r.Parts.Waste; math.Abs(sum-r.Cost) > 1e-6 {
				t.Errorf("the parts add up to $%v, and the cost is $%v", sum, r.Cost)
			}
			if spent := r.Points[len(r.Points)-1].Spent; math.Abs(spent-r.Cost) > 1e-6 {
				t.Errorf("the series ends at $%v, and the cost is $%v", spent, r.Cost)
			}
			if r.Bound > r.Cost {
				t.Errorf("the cost of $%v is less than the minimum of $%v", r.Cost, r.Bound)
			}
		})
		t.Run(string(p)+" lets a later instance use the reservation of one that is gone", func(t *testing.T) {
			in := reserved()
			in.Trace.Jobs[0].Count = 2
			in.Trace.Jobs = append(in.Trace.Jobs, trace.Job{Submit: 5 * time.Hour, Runtime: time.Hour, Count: 2, Need: in.Trace.Jobs[0].Need})
			if r := whole(t, in, p); r.Instances != 4 || math.Abs(r.Cost-r.Hours*.001) > 1e-6 {
				t.Errorf("%d instances for %.3f hours cost $%.4f, want $%.4f", r.Instances, r.Hours, r.Cost, r.Hours*.001)
			}
		})
	}
}
