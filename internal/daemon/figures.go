package daemon

import (
	"context"

	"drover/internal/engine"
	"drover/internal/telemetry"
)

// figures returns a fleet's current figures.
func (f *Fleet) figures(ctx context.Context) (s telemetry.Snapshot, err error) {
	if s.Jobs, err = f.Store.Counts(ctx); err != nil {
		return s, err
	}
	err = f.Controller.Query(ctx, func(e *engine.Engine) { s.Census, s.Pools = e.Census(), e.Pools() })
	s.Events, s.Effects = f.Controller.Load()
	return s, err
}
