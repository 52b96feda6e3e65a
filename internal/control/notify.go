package control

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
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
// line. Tell reports whether all are recorded as sent. A call waits for the previous one, so that no message is sent
// by both.
func (c *Controller) Tell(ctx context.Context) (recorded bool) {
	c.telling.Lock()
	defer c.telling.Unlock()
	due, err := c.cfg.Store.Tellings(ctx, c.clock.now(), tellAtOnce)
	if err != nil && ctx.Err() == nil {
		c.cfg.Log.Error("messages about batches cannot be read", logkey.Error, err)
	}
	var all sync.WaitGroup
	var failed atomic.Bool
	for _, t := range due {
		all.Go(func() {
			if !c.tell(ctx, t) {
				failed.Store(true)
			}
		})
	}
	all.Wait()
	if err := c.cfg.Store.ForgetTold(ctx); err != nil && ctx.Err() == nil {
		c.cfg.Log.Error("old messages about batches cannot be deleted", logkey.Error, err)
	}
	return !failed.Load()
}

func (c *Controller) tell(ctx context.Context, t store.Telling) (recorded bool) {
	failure := webhook.Send(ctx, c.current().Notify, t.URL, t.Message)
	if failure != nil && ctx.Err() != nil {
		return true
	}
	done, err := c.cfg.Store.Told(context.WithoutCancel(ctx), t, failure, c.clock.now())
	if err != nil {
		c.cfg.Log.Error("a message about a batch was sent, but cannot be recorded as sent", logkey.Error, err)
	}
	if err != nil || failure == nil {
		return err == nil
	}
	why := drover.AsError(failure, drover.KindTransient)
	about := []slog.Attr{slog.String(logkey.Batch, t.Message.Batch), slog.String(logkey.Error, why.Message)}
	if done || !c.cfg.Shared { // a run ends before the next try
		c.log(slog.LevelError, "a message about a batch could not be sent", about, slog.String(logkey.Hint, why.Hint))
	} else {
		c.log(slog.LevelInfo, "a message about a batch could not be sent and will be retried", about)
	}
	return true
}
