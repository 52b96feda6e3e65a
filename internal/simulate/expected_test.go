package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"drover"
	"drover/internal/trace"
)

// guesses are how wrong expected run times may be: the standard deviation of the logarithm of the factor.
var guesses = []struct {
	name  string
	wrong float64
}{{"right", 0}, {"three times too long or too short", math.Log(3)}, {"ten times too long or too short", math.Log(10)}}

// batch returns jobs of six sizes, submitted at random times within a period. Half of them take between 4 and 28
// minutes, and one in twenty takes 2 hours or more.
func batch(seed uint64, count int, within time.Duration, wrong float64) *trace.Trace {
	dice := rand.New(rand.NewPCG(seed, 1))
	slips := rand.New(rand.NewPCG(seed, 2))
	t := &trace.Trace{Name: "batch"}
	for range count {
		j := trace.Job{Runtime: logNormal(dice, 10*time.Minute, 1.5), Count: 1}
		size := [][2]int{{1, 2}, {1, 2}, {1, 6}, {2, 4}, {4, 8}, {8, 16}}[dice.IntN(6)]
		j.Need = drover.Resources{CPU: drover.MilliCPU(size[0]) * 1000, Memory: drover.Bytes(size[1]) * drover.GiB}
		j.Expected = logNormal(slips, j.Runtime, wrong)
		if within > 0 {
			j.Submit = time.Duration(dice.Int64N(int64(within)))
		}
		t.Jobs = append(t.Jobs, j)
	}
	slices.SortFunc(t.Jobs, func(a, b trace.Job) int { return int(a.Submit/time.Millisecond) - int(b.Submit/time.Millisecond) })
	return t
}

func logNormal(dice *rand.Rand, median time.Duration, spread float64) time.Duration {
	d := float64(median) * math.Exp(spread*dice.NormFloat64())
	return time.Duration(min(d, float64(10_000*time.Hour))).Round(time.Millisecond) + time.Second
}

// costOfFirstBatches returns what batches of 300 jobs submitted at once cost, each the first that Drover ever gets.
func costOfFirstBatches(t testing.TB, seeds uint64, x Expected, wrong float64) (all float64) {
	for seed := range seeds {
		in := input(seed, 0)
		in.Trace, in.Expected = batch(seed, 300, 0, wrong), x
		in.Models.Interrupted = 0 // with so few jobs, luck would decide the cost
		all += whole(t, in, Drover).Cost
	}
	return all
}

func TestJobsLikelyToEndTogetherShareInstances(t *testing.T) {
	const seeds = 4
	unknown := costOfFirstBatches(t, seeds, ExpectNothing, 0)
	for _, c := range []struct {
		name  string
		wrong float64
		most  float64 // of the cost when nothing is known
	}{
		{"which costs less when estimates are right", 0, 0.999},
		{"which costs little more when the first estimates are three times too long or too short", math.Log(3), 1.03},
	} {
		t.Run(c.name, func(t *testing.T) {
			if known := costOfFirstBatches(t, seeds, AsRequested, c.wrong); known > c.most*unknown {
				t.Errorf("it costs $%.2f, and $%.2f when nothing is known", known, unknown)
			}
		})
	}
}

// BenchmarkFirstEstimates measures what the very first estimates save or cost, over sixteen batches.
func BenchmarkFirstEstimates(b *testing.B) {
	run := func(name string, x Expected, wrong float64) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(costOfFirstBatches(b, 16, x, wrong), "usd")
			}
		})
	}
	run("not known", ExpectNothing, 0)
	for _, factor := range []float64{1, 1.4, 2, 3} {
		run(fmt.Sprintf("off by %v", factor), AsRequested, math.Log(factor))
	}
}

// BenchmarkExpected measures what known run times save, for batches submitted at once and for work submitted over an
// hour or two days: the cost over twelve seeds each, on EC2's types. DATA names the folder of the price list.
func BenchmarkExpected(b *testing.B) {
	in, list := nasa(b), ec2(b)
	for _, w := range []struct {
		name   string
		jobs   int
		within time.Duration
	}{{"at once", 1500, 0}, {"in an hour", 1500, time.Hour}, {"in two days", 3000, 48 * time.Hour}} {
		run := func(name string, x Expected, wrong float64) {
			b.Run(w.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					cost, wait := 0.0, 0.0
					for seed := range uint64(12) {
						in := in
						in.Trace, in.Expected, in.Models.Seed = batch(seed, w.jobs, w.within, wrong), x, seed
						in.Offerings = in.Models.Offerings("cloud", []string{"a"}, list)
						r, err := Run(b.Context(), in, Drover)
						if err != nil {
							b.Fatal(err)
						}
						cost, wait = cost+r.Cost, wait+r.Wait.Mean/12
					}
					b.ReportMetric(cost, "usd")
					b.ReportMetric(wait, "wait-s")
				}
			})
		}
		run("not known", ExpectNothing, 0)
		for _, g := range guesses {
			run(g.name, AsRequested, g.wrong)
		}
	}
}
