package cli

import (
	"context"
	"time"

	"drover"
	"drover/internal/recorded"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// mostRecorded limits how many recorded jobs of a controller are simulated, as for a trace.
const mostRecorded = 5_000_000

// workload returns the workload to simulate, and its real outcome if it comes from a controller's records. Instances
// then take as long to boot as the recorded ones did, unless the command line sets that.
func (a *app) workload(ctx context.Context, f simulateFlags, path string, m *simulate.Models) (*trace.Trace, []*simulate.Result, error) {
	if f.recorded == "" {
		t, err := f.trace(path)
		return t, nil, err
	}
	since, err := timeFlag("recorded", f.recorded, time.Now())
	if err != nil {
		return nil, nil, err
	}
	svc, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	return recordedWork(ctx, svc, since, mostRecorded, m)
}

// maintained returns how long a simulation of recorded work maintains a configuration's pools: for the whole period, as
// the actual figures include them.
func maintained(in simulate.Input, recorded *trace.Trace) time.Duration {
	if len(in.Settings.Pools) == 0 {
		return 0
	}
	return time.Since(recorded.Start.Std())
}

// recordedWork returns the workload of a controller's records, and its real outcome.
func recordedWork(ctx context.Context, svc drover.Service, since drover.Time, most int, m *simulate.Models) (*trace.Trace, []*simulate.Result, error) {
	past, err := recorded.Read(ctx, svc, since, drover.TimeOf(time.Now()), most)
	if err != nil {
		return nil, nil, err
	}
	if m.Boot == simulate.DefaultModels.Boot && past.Boot > 0 {
		m.Boot = past.Boot
	}
	return past.Trace, []*simulate.Result{past.Result}, nil
}
