package control

import (
	"context"
	"sync"
	"time"

	"drover/internal/engine"
	"drover/internal/store"
)

// readyTime is how long the loop and the store may take to show that they are healthy.
const readyTime = 3 * time.Second

// readyFor is how long an answer is reused: callers need no token, and must not keep the disk busy.
const readyFor = time.Second

// readiness is the last answer to whether the controller is ready.
type readiness struct {
	mu    sync.Mutex
	asked time.Time // guarded by mu
	err   error     // guarded by mu
}

// Ready returns why the controller is not ready to serve: its loop does not answer in time, its records cannot be
// written, or a commit waits for room on the disk.
func (c *Controller) Ready(ctx context.Context) error {
	if c.full.Load() != nil {
		return store.ErrFull
	}
	c.ready.mu.Lock()
	defer c.ready.mu.Unlock()
	if time.Since(c.ready.asked) > readyFor {
		// Not only for the first caller: others wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
		defer cancel()
		c.ready.err = c.tryReady(ctx)
		c.ready.asked = time.Now()
	}
	return c.ready.err
}

func (c *Controller) tryReady(ctx context.Context) error {
	if err := c.Query(ctx, func(*engine.Engine) {}); err != nil {
		return err
	}
	return c.cfg.Store.Ready(ctx)
}
