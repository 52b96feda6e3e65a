package simulate

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/trace"
)

var (
	long        = flag.Bool("long", false, "run for minutes, as make simtest does")
	streams     = flag.Bool("streams", false, "print what streams of jobs cost under each policy")
	streamSeeds = flag.Int("seeds", 5, "seeds for each stream")
	streamFirst = flag.Uint64("first-seed", 101, "the first of these seeds")
	streamJobs  = flag.Int("jobs", 4000, "jobs in each stream")
	streamKinds = flag.String("kinds", "", "only the kinds of stream that match this pattern")
	streamMarkt = flag.String("market", "", "only one market: on_demand or spot")
	streamKnown = flag.String("known", "", "only one kind of knowledge: nothing, truth or wrong")
	streamParts = flag.Bool("parts", false, "print what the money was for")
	streamIdle  = flag.Duration("idle", time.Minute, "the longest time for which instances are kept idle")
	streamTaken = flag.Float64("interrupted", DefaultModels.Interrupted, "the share of spot instances that is interrupted within an hour")
	streamWait  = flag.Duration("max-wait", 0, "how much longer than for a boot jobs may wait for room that is already paid for")
	streamShare = flag.String("sharing", "everyone", "whose jobs an instance runs")
	dataDir     = flag.String("data", "../pack/testdata", "folder with ec2-us-east-1.csv")
)

// stream is a kind of stream: this many jobs a day, one by one or, with the probability bursts, in bursts of 2 to 40.
// Run times are log-normal, half of them below ten minutes, and within a burst they differ by up to the share jitter.
type stream struct {
	name   string
	bursts float64
	jitter float64
	day    int
	daily  bool
	small  bool // nineteen of twenty jobs need one vCPU
}

var streamsOf = []stream{
	{"single", 0, 0.2, 5000, false, false},
	{"even", 0.1, 0, 5000, false, false},
	{"uneven", 0.1, 0.25, 5000, false, false},
	{"wild", 0.1, 0.8, 5000, false, false},
	{"daily", 0.1, 0.25, 5000, true, false},
	{"dense", 0, 0.2, 50_000, false, false},
	{"small", 0, 0.2, 5000, false, true},
}

// jobs generates a stream. The expected run times are log-normal around the actual ones, wrong by a factor.
func (s stream) jobs(seed uint64, jobs int, wrong float64) *trace.Trace {
	dice, slips := rand.New(rand.NewPCG(seed, 11)), rand.New(rand.NewPCG(seed, 12))
	t := &trace.Trace{Name: s.name}
	at, rate := 0.0, float64(s.day)/86_400/(1+s.bursts*20)
	for len(t.Jobs) < jobs {
		now := rate
		if s.daily {
			now *= 1 + 0.8*math.Sin(2*math.Pi*at/86_400)
		}
		at += dice.ExpFloat64() / max(now, rate/50)
		cpu, ratio := []int{1, 1, 1, 2, 2, 4, 4, 8, 16}[dice.IntN(9)], []int{1, 2, 2, 4, 4, 8}[dice.IntN(6)]
		seconds := min(86_400, math.Exp(math.Log(600)+1.4*dice.NormFloat64()))
		if s.small && dice.IntN(20) > 0 {
			cpu, ratio = 1, 2
		}
		user, count := fmt.Sprintf("u%d", dice.IntN(12)), 1
		if dice.Float64() < s.bursts {
			count = 2 + dice.IntN(39)
		}
		for range min(count, jobs-len(t.Jobs)) {
			took := time.Duration(max(5, seconds*(1+s.jitter*(2*dice.Float64()-1)))) * time.Second
			t.Jobs = append(t.Jobs, trace.Job{
				Submit: time.Duration(at) * time.Second, Runtime: took, Expected: logNormal(slips, took, math.Log(wrong)), Count: 1, User: user,
				Need: drover.Resources{CPU: drover.MilliCPU(1000 * cpu), Memory: drover.Bytes(cpu*ratio) * drover.GiB},
			})
		}
	}
	return t
}

// knowledge is what jobs state about their run times.
var knowledge = []struct {
	name     string
	expected Expected
}{{"nothing", ExpectNothing}, {"truth", AsItWas}, {"wrong by 3", AsRequested}}

// streamInput returns a stream on EC2's types, in the given zones.
func streamInput(tb testing.TB, t *trace.Trace, seed uint64, spot drover.SpotPolicy, zones ...string) Input {
	list, err := trace.OpenPrices(filepath.Join(*dataDir, "ec2-us-east-1.csv"))
	if err != nil {
		tb.Fatal(err)
	}
	m := DefaultModels
	m.Seed, m.Interrupted = seed, *streamTaken
	return Input{
		Trace: t, Models: m, Offerings: m.Offerings("cloud", zones, list), MemoryPerCPU: 2 * drover.GiB, Spot: spot,
		Settings: engine.Settings{
			Clouds: []engine.CloudSettings{{Name: "cloud", MaxCreating: 100, ListInterval: time.Minute, Billing: drover.Billing{Least: LeastBilled}}},
			Lifecycle: engine.Lifecycle{
				BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: *streamIdle,
				TermTimeout: 2 * time.Minute, ShutdownTimeout: 10 * time.Second,
			},
		},
	}
}

// compared is each policy's result over some seeds.
type compared struct {
	cost, wait map[Policy]float64
	slow       map[Policy]float64 // the cost if the other policies take as long as Drover to log in, start jobs and notice their ends
	bound      float64            // the cost of full instances with the fewest boots
}

func compare(tb testing.TB, s stream, seeds, jobs int, spot drover.SpotPolicy, x Expected) compared {
	c := compared{cost: map[Policy]float64{}, wait: map[Policy]float64{}, slow: map[Policy]float64{}}
	for seed := *streamFirst; seed < *streamFirst+uint64(seeds); seed++ {
		in := streamInput(tb, s.jobs(seed, jobs, 3), seed, spot, "a")
		in.Expected, in.MaxWait = x, *streamWait
		in.Settings.Lifecycle.Sharing = drover.Sharing(*streamShare)
		for _, p := range Policies {
			r, err := Run(tb.Context(), in, p)
			if err != nil {
				tb.Fatal(err)
			}
			if r.Done != r.Jobs {
				tb.Fatalf("%s, seed %d, %s: %d of %d jobs done", s.name, seed, p, r.Done, r.Jobs)
			}
			c.cost[p] += r.Cost
			if *streamParts {
				fmt.Printf("    %-12s %+v instances %d\n", p, r.Parts, r.Instances)
			}
			c.wait[p] += r.Wait.Mean / float64(seeds)
			if p == Drover {
				c.bound += r.Prompt
				continue
			}
			as := in
			as.AsSlow = true
			if r, err = Run(tb.Context(), as, p); err != nil {
				tb.Fatal(err)
			}
			c.slow[p] += r.Cost
		}
	}
	return c
}

// best returns the cost of the cheapest other policy.
func best(cost map[Policy]float64) float64 {
	return min(cost[OnePerJob], cost[Reuse], cost[FirstFit])
}

// TestStreams prints the table of make bench-streams.
func TestStreams(t *testing.T) {
	if !*streams {
		t.Skip("run by make bench-streams")
	}
	fmt.Printf("%-34s %9s %9s %9s %9s %9s  %7s %7s %7s  %6s %6s %6s\n", "stream", "bound", "first-fit", "one/job", "reuse", "drover", "of best", "as slow", "of one", "wait", "of one", "reuse")
	for _, s := range streamsOf {
		if ok, err := filepath.Match(*streamKinds, s.name); *streamKinds != "" && (!ok || err != nil) {
			continue
		}
		for _, spot := range []drover.SpotPolicy{drover.SpotNever, drover.SpotPrefer} {
			if market := map[string]drover.SpotPolicy{"on_demand": drover.SpotNever, "spot": drover.SpotPrefer}[*streamMarkt]; market != "" && market != spot {
				continue
			}
			for _, k := range knowledge {
				if !strings.HasPrefix(k.name, *streamKnown) {
					continue
				}
				c := compare(t, s, *streamSeeds, *streamJobs, spot, k.expected)
				market := map[drover.SpotPolicy]string{drover.SpotNever: "on demand", drover.SpotPrefer: "spot"}[spot]
				fmt.Printf("%-34s %9.2f %9.2f %9.2f %9.2f %9.2f  %7.4f %7.4f %7.4f  %6.2f %+6.2f %+6.2f\n", s.name+", "+market+", "+k.name, c.bound, c.cost[FirstFit], c.cost[OnePerJob],
					c.cost[Reuse], c.cost[Drover], c.cost[Drover]/best(c.cost), c.cost[Drover]/best(c.slow), c.cost[Drover]/c.cost[OnePerJob], c.wait[Drover], c.wait[Drover]-c.wait[OnePerJob], c.wait[Reuse]-c.wait[OnePerJob])
			}
		}
	}
}

// TestStreamsCostNoMoreThanTheCheapestPolicy checks a small part of that table.
func TestStreamsCostNoMoreThanTheCheapestPolicy(t *testing.T) {
	for _, s := range streamsOf {
		if s.name == "even" || s.name == "daily" {
			continue
		}
		jobs := 1000
		if s.name == "dense" {
			jobs = 3000 // enough to learn that the expected run times are right
		}
		for _, k := range knowledge {
			if !*long && (k.name != "nothing" || s.name == "dense" || testing.Short() && s.name == "uneven") { // uneven is between the others
				continue
			}
			t.Run(s.name+" with stated run times: "+k.name, func(t *testing.T) {
				c := compare(t, s, 1, jobs, drover.SpotNever, k.expected)
				if ratio := c.cost[Drover] / best(c.cost); ratio > 1.005 {
					t.Errorf("it costs $%.2f, %.4f times the cheapest policy: %v", c.cost[Drover], ratio, c.cost)
				}
				if longer := c.wait[Drover] - c.wait[OnePerJob]; longer > 1 {
					t.Errorf("jobs wait %.2f s longer than with one instance for every job", longer)
				}
			})
		}
	}
}
