package control

import (
	"context"

	"drover"
	"drover/internal/engine"
)

// Foresee says what would become of instances if the controller went by other settings. A cloud that they leave out drains. Nothing is changed.
func (c *Controller) Foresee(ctx context.Context, s engine.Settings) ([]drover.Fate, error) {
	next, err := c.configured(ctx, &setup{Setup: Setup{Settings: s}, clouds: c.current().clouds})
	if err != nil {
		return nil, err
	}
	var state engine.State
	if err := c.Query(ctx, func(e *engine.Engine) { state = e.State() }); err != nil {
		return nil, err
	}
	return engine.Foresee(state, next)
}
