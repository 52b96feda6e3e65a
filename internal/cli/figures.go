package cli

import (
	"context"

	"drover/internal/engine"
	"drover/internal/telemetry"
)

// figures are a fleet's present.
func (f *fleet) figures(ctx context.Context) (s telemetry.Snapshot, err error) {
	if s.Jobs, err = f.store.Counts(ctx); err != nil {
		return s, err
	}
	err = f.controller.Query(ctx, func(e *engine.Engine) { s.Census = e.Census() })
	load := f.controller.Load()
	s.Events, s.Effects = load.Events, load.Effects
	return s, err
}

// newTelemetry counts what a controller of this program does.
func (p Program) telemetry() *telemetry.Telemetry {
	v := p.version()
	return telemetry.New(telemetry.Build{Version: v.Version, Revision: v.Commit, Go: v.Go})
}
