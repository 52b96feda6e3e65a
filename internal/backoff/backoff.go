// Package backoff waits for a time, and no longer than somebody wants it.
package backoff

import (
	"context"
	"time"
)

// For waits for d, or until ctx ends, whose error it then returns.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
