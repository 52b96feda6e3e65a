package cli

import (
	"context"
	"sync/atomic"
	"time"

	"drover"
	"drover/internal/backoff"
)

// The times between two polls of awaited jobs. Events trigger a poll; without events, polls are more frequent.
const (
	shortestLook = 100 * time.Millisecond
	longestLook  = 2 * time.Second
	quietLook    = 30 * time.Second // while events are followed
)

// doorbell signals that something has happened to a job.
type doorbell struct {
	rung     chan struct{}
	followed atomic.Bool // events arrive
}

func newDoorbell() *doorbell { return &doorbell{rung: make(chan struct{}, 1)} }

// follow rings for each event about a job until the context ends. It reopens a broken stream. Remembered events come
// first, so it misses nothing from before the stream was open.
func (d *doorbell) follow(ctx context.Context, svc drover.Watch, only []drover.JobID) {
	filter := drover.EventFilter{Level: "debug"}
	if len(only) == 1 {
		filter.Job = only[0]
	}
	for ctx.Err() == nil {
		for event, err := range svc.Events(ctx, filter) {
			if d.followed.Store(err == nil); err != nil {
				break
			}
			if event.ID != "" {
				filter.After = event.ID
			}
			if event.Job != nil || event.Missed != 0 {
				d.ring()
			}
		}
		d.followed.Store(false)
		d.ring()
		backoff.For(ctx, longestLook)
	}
}

func (d *doorbell) ring() {
	select {
	case d.rung <- struct{}{}:
	default:
	}
}

// wait returns when it is time to poll again: at once when something has happened, but not earlier than shortestLook
// after the last poll.
func (d *doorbell) wait(ctx context.Context) error {
	most := longestLook
	if d.followed.Load() {
		most = quietLook
	}
	if err := backoff.For(ctx, shortestLook); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.rung:
	case <-time.After(most):
	}
	return nil
}
