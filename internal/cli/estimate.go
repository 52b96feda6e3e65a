package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/config"
	"drover/internal/engine"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// estimate is what a whole batch is likely to take and to cost.
type estimate struct {
	Seconds float64  `json:"seconds"`
	Cost    float64  `json:"cost_usd"`
	Assumed []string `json:"assumed,omitempty"` // jobs that do not say how long they are likely to run, of which assumedTime is taken, or their timeout if that is shorter
	Done    int      `json:"jobs"`
	Never   int      `json:"never_run,omitempty"` // jobs that would never run, within the limits that there are
}

const (
	assumedTime  = 10 * time.Minute
	mostEstimate = 50_000      // elements: more take long to estimate
	localBoot    = time.Second // of an instance on this host
)

// estimated has the engine run a batch in a modelled world, from its first instance to its last. It is nil for a batch that is too large.
func estimated(ctx context.Context, c *config.Config, s engine.Settings, offerings []drover.Offering, b drover.Batch) (*estimate, error) {
	in := simulate.Input{Settings: s, Offerings: offerings, Models: simulate.DefaultModels, Trace: &trace.Trace{}, Jobs: engineJobs(b)}
	if !slices.ContainsFunc(c.Clouds, func(c config.Cloud) bool { return c.Driver != "local" }) {
		in.Models.Boot = localBoot
	}
	e, elements := &estimate{}, 0
	for _, j := range b.Jobs {
		runs := j.Expected
		if runs == 0 {
			runs = assumedTime
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
	e.Seconds, e.Cost, e.Done, e.Never = r.Makespan, r.Cost, r.Done, r.Refused+r.Unfinished
	return e, nil
}

// words say what a batch is likely to take, and what that follows from.
func (e *estimate) words() string {
	took := time.Duration(e.Seconds * float64(time.Second)).Round(time.Second)
	text := fmt.Sprintf("in all about %s and %v", dollars(e.Cost), took)
	if took >= time.Hour {
		text = fmt.Sprintf("in all about %s and %dh%dm", dollars(e.Cost), int(took.Hours()), int(took.Minutes())%60)
	}
	if e.Never > 0 {
		text += fmt.Sprintf(" for %s, and %d would never run", plural(e.Done, "job"), e.Never)
	}
	const most = 3
	switch n := len(e.Assumed); {
	case n == 0:
		return text + ", if jobs take as long as is expected"
	case n > most:
		return text + fmt.Sprintf(", with %v each for %d jobs that have no expected", assumedTime, n)
	}
	return text + fmt.Sprintf(", with %v assumed for %s: write expected to say how long jobs run", assumedTime, strings.Join(e.Assumed, ", "))
}
