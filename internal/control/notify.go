package control

import (
	"context"
	"sync"
	"time"

	"drover"
	"drover/internal/logkey"
	"drover/internal/store"
	"drover/internal/webhook"
)

const (
	tellInterval = 2 * time.Second // between two checks for due messages
	tellAtOnce   = 2               // messages per user
)

// Tell sends the notifications about batches that are due. A failed one is repeated later, or dropped with a log
// line.
func (c *Controller) Tell(ctx context.Context) {
	due, err := c.cfg.Store.Tellings(ctx, c.clock.now(), tellAtOnce)
	if err != nil && ctx.Err() == nil {
		c.cfg.Log.Error("messages about batches cannot be read", logkey.Error, err)
	}
	var all sync.WaitGroup
	for _, t := range due {
		all.Go(func() { c.tell(ctx, t) })
	}
	all.Wait()
	if err := c.cfg.Store.ForgetTold(ctx); err != nil && ctx.Err() == nil {
		c.cfg.Log.Error("old messages about batches cannot be deleted", logkey.Error, err)
	}
}

func (c *Controller) tell(ctx context.Context, t store.Telling) {
	failure := webhook.Send(ctx, c.current().Notify, t.URL, t.Message)
	if ctx.Err() != nil {
		return
	}
	done, err := c.cfg.Store.Told(ctx, t, failure, c.clock.now())
	switch {
	case err != nil:
		c.cfg.Log.Error("a message about a batch was sent, but cannot be recorded as sent", logkey.Error, err)
	case failure != nil && (done || !c.cfg.Shared): // a run ends before the next try
		why := drover.AsError(failure, drover.KindTransient)
		log := c.cfg.Log.With(logkey.Batch, t.Message.Batch, logkey.Error, why.Message)
		if why.Hint != "" {
			log = log.With(logkey.Hint, why.Hint)
		}
		log.Error("a message about a batch could not be sent")
	case failure != nil:
		c.cfg.Log.Info("a message about a batch could not be sent and will be retried", logkey.Batch, t.Message.Batch, logkey.Error, drover.AsError(failure, drover.KindTransient).Message)
	}
}
