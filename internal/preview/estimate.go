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

// Estimate is how long a whole batch is likely to take and what it is likely to cost.
type Estimate struct {
	Seconds float64  `json:"seconds"`
	Cost    float64  `json:"cost_usd"`
	Saved   *float64 `json:"waiting_saves_usd,omitempty"` // how much more it would cost if no job waited by its max_wait
	Assumed []string `json:"assumed,omitempty"`           // jobs without an expected run time: AssumedTime is used, or their timeout if that is shorter
	Capped  bool     `json:"-"`                           // some of these have a shorter timeout
	Done    int      `json:"jobs"`
	Never   int      `json:"never_run,omitempty"` // jobs that would never run within the limits
}

// AssumedTime is the run time of a job that does not state one, as in the engine's plans and budgets.
const AssumedTime = time.Hour

const (
	mostEstimate = 50_000      // elements: estimating more takes long
	localBoot    = time.Second // of an instance on this host
)

// EstimateBatch runs a batch with the engine in a modelled world, from the first instance to the last. It returns nil
// if the batch is too large.
func EstimateBatch(ctx context.Context, c *config.Config, s engine.Settings, offerings []drover.Offering, b drover.Batch) (*Estimate, error) {
	in := simulate.Input{Settings: s, Offerings: offerings, Models: simulate.DefaultModels, Trace: &trace.Trace{}, Jobs: engineJobs(b)}
	if !slices.ContainsFunc(c.Clouds, func(c config.Cloud) bool { return c.Driver != "local" }) {
		in.Models.Boot = localBoot
	}
	e, elements := &Estimate{}, 0
	for _, j := range b.Jobs {
		runs := j.Expected
		if runs == 0 {
			runs = AssumedTime
			if j.Timeout > 0 && j.Timeout < runs {
				runs, e.Capped = j.Timeout, true
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
