// Package backoff waits between tries, and between periodic calls. Every wait stops when its context ends.
package backoff

import (
	"context"
	"iter"
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

// Every calls do after each interval, until ctx ends.
func Every(ctx context.Context, interval time.Duration, do func()) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			do()
		}
	}
}

// Tries counts tries from 1: the first at once, the next after a wait of first, each further one after twice the wait
// before it, at most longest. They end with ctx.
func Tries(ctx context.Context, first, longest time.Duration) iter.Seq[int] {
	return func(yield func(int) bool) {
		wait := first
		for try := 1; yield(try) && For(ctx, wait) == nil; try++ {
			wait = min(2*wait, longest)
		}
	}
}
