package control

import (
	"context"

	"drover/internal/engine"
	"drover/internal/pack"
)

// effects carries out each effect in its own goroutine, so that no cloud or instance delays another. The engine has at
// most one effect in progress for each object, which limits their number.
type effects struct {
	c   *Controller
	ctx context.Context
}

// Release starts the effects and reports the notes.
func (o *effects) Release(effects []engine.Effect, notes []engine.Note) {
	for _, n := range notes {
		o.c.note(n)
	}
	for _, f := range effects {
		o.c.work.Go(func() {
			o.c.flights.begin(f)
			o.c.do(o.ctx, f)
			o.c.done(f.ID, nil)
		})
	}
}

// do carries out one effect and posts the event with its result.
func (c *Controller) do(ctx context.Context, f engine.Effect) {
	switch {
	case f.ListOfferings != nil:
		c.post(ctx, c.offerings(ctx, f.ID, *f.ListOfferings))
	case f.ListInstances != nil:
		c.post(ctx, c.list(ctx, f.ID, *f.ListInstances))
	case f.Describe != nil:
		c.post(ctx, c.describe(ctx, f.ID, *f.Describe))
	case f.Create != nil:
		c.post(ctx, c.create(ctx, f.ID, *f.Create))
	case f.Destroy != nil:
		err := c.destroy(ctx, *f.Destroy)
		c.post(ctx, engine.Destroyed{Effect: f.ID, Instance: f.Destroy.Instance, Err: transient(err)})
	case f.Switch != nil:
		err := c.switchInstance(ctx, *f.Switch)
		c.post(ctx, engine.Switched{Effect: f.ID, Instance: f.Switch.Instance, Err: transient(err)})
	case f.SetTags != nil:
		err := c.setTags(ctx, *f.SetTags)
		c.post(ctx, engine.Tagged{Effect: f.ID, Instance: f.SetTags.Instance, Err: transient(err)})
	case f.GrowDisk != nil:
		err := c.growDisk(ctx, *f.GrowDisk)
		c.post(ctx, engine.DiskGrown{Effect: f.ID, Instance: f.GrowDisk.Instance, Err: transient(err)})
	case f.Connect != nil:
		c.connect(ctx, f.ID, *f.Connect)
	case f.Disconnect != nil:
		c.disconnect(f.Disconnect.Instance)
	case f.Start != nil:
		c.post(ctx, c.start(ctx, f.ID, *f.Start))
	case f.Stop != nil:
		c.stopAttempt(*f.Stop)
	case f.Collect != nil:
		err := c.collect(ctx, *f.Collect)
		c.post(ctx, engine.Collected{Effect: f.ID, Attempt: f.Collect.Attempt, Err: transient(err)})
	case f.Forget != nil:
		c.forget(ctx, *f.Forget)
	case f.Fire != nil:
		c.fired(ctx, f.ID, *f.Fire)
	case f.Solve != nil:
		c.post(ctx, engine.Solved{Effect: f.ID, Plan: pack.Solve(*f.Solve)})
	}
}
