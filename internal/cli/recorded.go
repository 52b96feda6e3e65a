package cli

import (
	"context"
	"time"

	"drover"
	"drover/internal/recorded"
	"drover/internal/simulate"
	"drover/internal/trace"
)

// mostRecorded is how many jobs of a controller's records are simulated, as of a trace.
const mostRecorded = 5_000_000

// workload is what is simulated, and what really became of it if it is what a controller has on record. Instances then
// boot for as long as they did, unless the command line says how long.
func (a *app) workload(ctx context.Context, f simulateFlags, path string, m *simulate.Models) (*trace.Trace, []*simulate.Result, error) {
	if f.recorded == "" {
		t, err := f.trace(path)
		return t, nil, err
	}
	now := time.Now()
	since, err := timeFlag("recorded", f.recorded, now)
	if err != nil {
		return nil, nil, err
	}
	svc, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	past, err := recorded.Read(ctx, svc, since, drover.TimeOf(now), mostRecorded)
	if err != nil {
		return nil, nil, err
	}
	if m.Boot == simulate.DefaultModels.Boot && past.Boot > 0 {
		m.Boot = past.Boot
	}
	return past.Trace, []*simulate.Result{past.Result}, nil
}
