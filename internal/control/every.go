package control

import (
	"context"
	"time"
)

// every calls do after each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
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
