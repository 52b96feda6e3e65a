// Package simulate tries a configuration on a recorded workload: what instances it would have rented, what they would have cost, and how long
// jobs would have waited.
//
// The model: time jumps from one thing that happens to the next. The real engine decides, in the real loop, with the real solver; clouds,
// instances and jobs are modelled (world.go), by models of boots, interruptions and prices that follow from a seed (models.go). Two policies
// of older systems (older.go) run on the same workload under the same models, to compare with. All of them are measured by one meter.
//
// The invariants: equal inputs have equal results. The n-th instance of a simulation boots, and is taken back, as the n-th of any other with
// that seed. Money is what the modelled clouds bill, exact to the nano-dollar.
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

// Policy is who decides.
type Policy string

// The policies: Drover's engine, and those of older systems.
const (
	Drover    Policy = "drover"
	OnePerJob Policy = "one-per-job" // an instance for every job, which goes with it
	Reuse     Policy = "reuse"       // the same, but a job rather waits for an instance that is free sooner than another boots
	FirstFit  Policy = "first-fit"   // the oldest instance with room, else one that is the cheapest for the job alone
)

// Policies are all there are.
var Policies = []Policy{Drover, OnePerJob, Reuse, FirstFit}

// Input is all that a simulation follows from.
type Input struct {
	Settings     engine.Settings
	Offerings    []drover.Offering // what the clouds of the settings offer at the beginning
	Trace        *trace.Trace
	MemoryPerCPU drover.Bytes      // of jobs whose trace does not say what they need
	Spot         drover.SpotPolicy // of every job; empty: as the trace says, else prefer
	Expected     Expected          // how long each job is said to be likely to run
	MaxWait      time.Duration     // of every job: how much longer than for a boot it may wait for room that is paid for anyway
	Models       Models
	AsSlow       bool          // policies of older systems take as long as Drover does to log in, to begin jobs and to hear of their ends
	For          time.Duration // for so long pools are kept, whatever jobs there are; 0: until the last job is final, and none are

	Scheduled func(now drover.Time) (pools []pool.Spec, next drover.Time) // the pools at a time, and when their schedules change them next, 0: never; nil: none has one

	Jobs []engine.Job // the jobs of Trace, in its order, as the engine is to meet them; nil: as the trace has them. Their numbers are their places, from 1
}

// Expected is where it is known from how long a job is likely to run.
type Expected string

// The ways to know it.
const (
	ExpectNothing Expected = "none"
	AsRequested   Expected = "requested" // what the trace says that its submitter said
	AsItWas       Expected = "actual"    // how long it ran: the best that anybody could say
)

// Expectations are all there are.
var Expectations = []Expected{ExpectNothing, AsRequested, AsItWas}

// of is how long a job of the trace is said to be likely to run; 0: that is not known.
func (x Expected) of(j trace.Job) time.Duration {
	switch x {
	case AsRequested:
		return j.Expected
	case AsItWas:
		return max(1, j.Runtime)
	}
	return 0
}

// begin is when a trace begins that does not say it: a Monday of January 2001.
const begin = drover.Time(978_912_000 * 1e9)

// Begin is when the simulation begins, by its own clock.
func (in Input) Begin() drover.Time {
	if in.Trace.Start != 0 {
		return in.Trace.Start
	}
	return begin
}

// shape is what a job of the trace asks for.
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

// Saves notes in a result of Drover's what it saves that jobs may wait, if they may.
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

// stalled is how long a simulation goes on in which nothing begins or ends and nothing runs: longer than a calendar month, with which budgets
// begin anew.
const stalled = 32 * 24 * time.Hour

// errEnded wraps why a simulation was cut off.
func errEnded(ctx context.Context, at time.Duration) error {
	return fmt.Errorf("after %v of the trace: %w", at.Round(time.Second), context.Cause(ctx))
}
