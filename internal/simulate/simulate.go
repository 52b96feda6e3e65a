// Package simulate tries a configuration on a recorded workload: which instances it would have rented, what they would
// have cost, and how long jobs would have waited.
//
// The model: time jumps from one event to the next. The real engine decides, in the real loop, with the real solver.
// Clouds, instances and jobs are modelled (world.go); boots, interruptions and prices follow from a seed (models.go).
// For comparison, simpler policies (older.go) run the same workload under the same models. One meter measures all of
// them.
//
// The invariants: equal inputs give equal results. The n-th instances of two simulations with the same seed have the
// same boot time and the same interruption. Money is what the modelled clouds bill, exact to the nano-dollar.
package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
	"drover/internal/trace"
)

// Policy is what makes the decisions.
type Policy string

// The policies: Drover's engine, and simpler schedulers.
const (
	Drover    Policy = "drover"
	OnePerJob Policy = "one-per-job" // an instance for every job, destroyed when the job ends
	Reuse     Policy = "reuse"       // the same, but a job waits for an instance that will be free before a new one would have booted
	FirstFit  Policy = "first-fit"   // the oldest instance with room, otherwise the cheapest one for the job alone
)

// Policies lists all policies.
var Policies = []Policy{Drover, OnePerJob, Reuse, FirstFit}

// Input is everything that determines a simulation.
type Input struct {
	Settings     engine.Settings
	Offerings    []drover.Offering // the clouds' offerings at the beginning
	Trace        *trace.Trace
	MemoryPerCPU drover.Bytes      // for jobs whose trace does not state their memory
	Spot         drover.SpotPolicy // of every job; empty: as in the trace, otherwise prefer
	Expected     Expected          // which expected run time each job states
	MaxWait      time.Duration     // of every job: how much longer than a boot takes it may wait for room that is already paid for
	Models       Models
	AsSlow       bool          // simpler policies take as long as Drover to log in, to start jobs and to notice their ends
	For          time.Duration // how long pools are maintained, even without jobs; 0: none, and the simulation ends with the last job

	Scheduled func(now drover.Time) (pools []pool.Spec, next drover.Time) // the pools at a time, and when a schedule next changes them (0: never); nil: no pool has a schedule

	Jobs []engine.Job // the jobs of Trace, in its order, as the engine gets them; nil: as in the trace. They are numbered from 1
}

// Expected is the source of jobs' expected run times.
type Expected string

// The sources.
const (
	ExpectNothing Expected = "none"
	AsRequested   Expected = "requested" // the submitter's estimate in the trace
	AsItWas       Expected = "actual"    // the actual run time, which is the best possible estimate
)

// Expectations lists all sources.
var Expectations = []Expected{ExpectNothing, AsRequested, AsItWas}

// of returns the expected run time of a job in the trace; 0: unknown.
func (x Expected) of(j trace.Job) time.Duration {
	switch x {
	case AsRequested:
		return j.Expected
	case AsItWas:
		return max(1, j.Runtime)
	}
	return 0
}

// begin is the start of a trace without dates: a Monday in January 2001.
const begin = drover.Time(978_912_000 * 1e9)

// Begin is when the simulation begins, by its own clock.
func (in Input) Begin() drover.Time {
	if in.Trace.Start != 0 {
		return in.Trace.Start
	}
	return begin
}

// shape returns the requirements of a job of the trace.
func (in Input) shape(j trace.Job) drover.Shape {
	s := drover.Shape{Need: j.Need, Spot: j.Spot}
	if s.Need.Memory == 0 {
		s.Need.Memory = drover.Bytes(s.Need.CPU) * (in.MemoryPerCPU / 1000)
	}
	switch {
	case in.Spot != "":
		s.Spot = in.Spot
	case s.Spot == "":
		s.Spot = drover.SpotPrefer
	}
	return s
}

// Run simulates the workload under a policy.
func Run(ctx context.Context, in Input, p Policy) (*Result, error) {
	m := newMeter(in)
	var err error
	switch p {
	case Drover:
		err = runEngine(ctx, in, m)
	case OnePerJob, Reuse, FirstFit:
		err = runOlder(ctx, in, p, m)
	default:
		err = drover.Errorf(drover.KindInvalid, "policy %s is not valid", p).WithHint("the policies are %v", Policies)
	}
	if err != nil {
		return nil, err
	}
	m.finish()
	r := m.result(in, p)
	r.Pools = m.pools
	return r, nil
}

// Saves adds to a result of Drover's how much waiting for room saves, if jobs may wait.
func (r *Result) Saves(ctx context.Context, in Input) error {
	patient := func(j engine.Job) bool { return j.MaxWait > 0 }
	if r.Policy != Drover || in.MaxWait == 0 && !slices.ContainsFunc(in.Jobs, patient) {
		return nil
	}
	in.MaxWait, in.Jobs = 0, slices.Clone(in.Jobs)
	for i := range in.Jobs {
		in.Jobs[i].MaxWait = 0
	}
	prompt, err := Run(ctx, in, Drover)
	if err == nil {
		r.Saved = new(prompt.Cost - r.Cost)
	}
	return err
}

// stalled is how long a simulation continues while nothing starts, ends or runs: longer than a calendar month, when
// budgets start again.
const stalled = 32 * 24 * time.Hour

// MostTime is the longest time that is simulated. With it, no time of a job comes near the end of drover.Time in 2262.
const MostTime = 50 * 365 * 24 * time.Hour

// cutOff returns why a simulation cannot continue at a time of its trace; nil if it can.
func cutOff(ctx context.Context, steps int, at time.Duration) error {
	switch {
	case at > MostTime:
		return drover.Errorf(drover.KindInvalid, "the jobs would take more than 50 years").WithHint("simulate part of the trace, or allow more instances")
	case steps%1024 == 0 && ctx.Err() != nil:
		return fmt.Errorf("after %v of the trace: %w", at.Round(time.Second), context.Cause(ctx))
	}
	return nil
}
