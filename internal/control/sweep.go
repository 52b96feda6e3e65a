package control

import (
	"context"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/logkey"
)

const (
	sweepInterval = time.Hour       // between two looks for what instances left over
	sweepTimeout  = 5 * time.Minute // of one look at one cloud
)

// sweepHourly takes away what the fleet's instances left over, in every cloud that tells of such things, until ctx ends. What fails is said, and
// is tried again an hour later.
func (c *Controller) sweepHourly(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.Sweep(ctx, driver.Living)
		case <-ctx.Done():
			return
		}
	}
}

// Sweep takes away what the fleet's instances left over; once the fleet has ended, also what they shared.
func (c *Controller) Sweep(ctx context.Context, life driver.Life) {
	for _, cl := range c.current().clouds {
		ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
		swept, err := driver.Sweep(ctx, cl.own, c.cfg.Fleet, drover.TimeOf(time.Now()), life)
		cancel()
		for _, s := range swept {
			c.cfg.Log.Info("something left over was taken away", logkey.Cloud, cl.Name, logkey.Note, s.Kind+" "+s.ID)
		}
		if err != nil {
			c.cfg.Log.Warn("what is left over cannot be taken away", logkey.Cloud, cl.Name, logkey.Error, err)
		}
	}
}
