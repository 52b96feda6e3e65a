package preview

import (
	"context"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/config"
	"drover/internal/engine"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// Estimate is what a whole batch is likely to take and to cost.
type Estimate struct {
	Seconds float64  `json:"seconds"`
	Cost    float64  `json:"cost_usd"`
	Saved   *float64 `json:"waiting_saves_usd,omitempty"` // what it would cost more if no job waited by its max_wait
	Assumed []string `json:"assumed,omitempty"`           // jobs that do not say how long they are likely to run, of which AssumedTime is taken, or their timeout if that is shorter
	Done    int      `json:"jobs"`
	Never   int      `json:"never_run,omitempty"` // jobs that would never run, within the limits that there are
}

// AssumedTime is for how long a job is taken to run that does not say it.
const AssumedTime = 10 * time.Minute

const (
	mostEstimate = 50_000      // elements: more take long to estimate
	localBoot    = time.Second // of an instance on this host
)

// EstimateBatch has the engine run a batch in a modelled world, from its first instance to its last. It is nil for a
// batch that is too large.
func EstimateBatch(ctx context.Context, c *config.Config, s engine.Settings, offerings []drover.Offering, b drover.Batch) (*Estimate, error) {
	s.Pools = nil // they are never done
	in := simulate.Input{Settings: s, Offerings: offerings, Models: simulate.DefaultModels, Trace: &trace.Trace{}, Jobs: engineJobs(b)}
	if !slices.ContainsFunc(c.Clouds, func(c config.Cloud) bool { return c.Driver != "local" }) {
		in.Models.Boot = localBoot
	}
	e, elements := &Estimate{}, 0
	for _, j := range b.Jobs {
		runs := j.Expected
		if runs == 0 {
			runs = AssumedTime
			if j.Timeout > 0 {
				runs = min(runs, j.Timeout)
			}
			e.Assumed = append(e.Assumed, j.Name)
		}
		elements += j.Array.Size()
		in.Trace.Jobs = append(in.Trace.Jobs, trace.Job{Runtime: runs, Need: j.Resources, Count: j.Array.Size(), Spot: j.Spot})
	}
	if elements > mostEstimate {
		return nil, nil
	}
	r, err := simulate.Run(ctx, in, simulate.Drover)
	if err != nil {
		return nil, fmt.Errorf("estimating the batch: %w", err)
	}
	if err := r.Saves(ctx, in); err != nil {
		return nil, fmt.Errorf("estimating the savings from waiting: %w", err)
	}
	e.Saved = r.Saved
	e.Seconds, e.Cost, e.Done, e.Never = r.Makespan, r.Cost, r.Done, r.Refused+r.Unfinished
	return e, nil
}
