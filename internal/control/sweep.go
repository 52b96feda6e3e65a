package control

import (
	"context"
	"errors"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/backoff"
	"drover/internal/logkey"
)

const (
	sweepDelay    = time.Minute     // until the first search for leftovers of instances: a start has more urgent work
	sweepInterval = time.Hour       // between two searches
	sweepTimeout  = 5 * time.Minute // of one search in one cloud
)

// sweepHourly removes leftovers of the fleet's instances, in every cloud that lists them, soon after the start and then
// hourly until ctx ends. A failure is logged and retried an hour later.
func (c *Controller) sweepHourly(ctx context.Context) {
	sweep := func() {
		c.Sweep(ctx, driver.Active)
		c.sweepStored(ctx)
	}
	if backoff.For(ctx, sweepDelay) == nil {
		sweep()
		backoff.Every(ctx, sweepInterval, sweep)
	}
}

// sweepStored removes inputs that no job uses, and recounts results that somebody deleted. A run's own inputs, which
// existed before its batch, stay.
func (c *Controller) sweepStored(ctx context.Context) {
	if !c.cfg.Shared {
		return
	}
	if err := errors.Join(c.pruneOld(ctx), c.SweepInputs(ctx, time.Now()), c.Recount(ctx)); err != nil && ctx.Err() == nil {
		c.cfg.Log.Warn("unused inputs and results cannot be removed", logkey.Error, err)
	}
}

// Sweep removes leftovers of the fleet's instances; once the fleet has ended, also what they shared.
func (c *Controller) Sweep(ctx context.Context, life driver.FleetState) {
	for _, cl := range c.current().clouds {
		ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
		swept, err := driver.Reap(ctx, cl.own, c.cfg.Fleet, drover.TimeOf(time.Now()), life)
		cancel()
		for _, s := range swept {
			c.cfg.Log.Info("a resource left behind by an instance was removed", logkey.Cloud, cl.Name, logkey.Note, s.Kind+" "+s.ID)
		}
		if err != nil {
			c.cfg.Log.Warn("resources left behind by instances cannot be removed", logkey.Cloud, cl.Name, logkey.Error, err)
		}
	}
}

// unrecorded is how long to wait before something is repeated that could not be recorded as done.
const unrecorded = 30 * time.Second
