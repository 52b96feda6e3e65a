package control

import (
	"context"
	"time"

	"drover"
	"drover/internal/logkey"
)

// pruneAtOnce is how many jobs' results are looked up at a time: meanwhile a user may retry one of them.
const pruneAtOnce = 100

// Prune removes old results: see [drover.Queue].
func (c *Controller) Prune(ctx context.Context, before drover.Time) (pruned drover.Pruned, err error) {
	for last := int64(0); ; {
		jobs, err := c.cfg.Store.OldResults(ctx, before, last, pruneAtOnce)
		if err != nil || len(jobs) == 0 {
			return pruned, err
		}
		for _, job := range jobs {
			bytes, err := c.pruneJob(ctx, job)
			if err != nil {
				return pruned, err
			}
			pruned.Jobs++
			pruned.Bytes += bytes
			last = job
		}
	}
}

// pruneJob removes a job's results. It updates the records last, so that a failure is repeated.
func (c *Controller) pruneJob(ctx context.Context, job int64) (bytes int64, err error) {
	spec, err := c.spec(ctx, job)
	if err != nil {
		return 0, err
	}
	indexes, bytes, err := c.cfg.Store.Leavings(ctx, job)
	if err != nil {
		return 0, err
	}
	if err := c.cfg.Results.Remove(c.folder(spec), indexes); err != nil {
		return 0, err
	}
	return bytes, c.cfg.Store.ForgetResults(ctx, job)
}

// pruneOld removes results older than the configuration keeps.
func (c *Controller) pruneOld(ctx context.Context) error {
	keep := c.current().Keep
	if keep == 0 {
		return nil
	}
	pruned, err := c.Prune(ctx, c.clock.now().Add(-keep))
	if pruned.Jobs > 0 {
		c.cfg.Log.Info("old results were deleted", logkey.Elements, pruned.Jobs, logkey.Bytes, pruned.Bytes, logkey.Note, "older than "+keep.Round(time.Second).String())
	}
	return err
}
