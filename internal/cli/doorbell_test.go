package cli

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"drover"
)

// testWatch is a Watch whose events the test sends.
type testWatch struct {
	drover.Watch
	events chan drover.Event
}

func (w testWatch) Events(ctx context.Context, _ drover.EventFilter) iter.Seq2[drover.Event, error] {
	return func(yield func(drover.Event, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case e, open := <-w.events:
				if !open {
					yield(drover.Event{}, drover.Errorf(drover.KindUnreachable, "gone"))
					return
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func TestDoorbell(t *testing.T) {
	ring := func(t *testing.T, events chan drover.Event, lookAfter time.Duration) time.Duration {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		bell := newDoorbell()
		go bell.follow(ctx, testWatch{events: events}, nil)
		synctest.Wait()
		began := time.Now()
		for time.Since(began) < lookAfter {
			if err := bell.wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(began)
	}
	about := drover.Event{ID: "1", Job: &drover.JobID{Number: 1, Index: -1}}
	other := drover.Event{ID: "2", Instance: "lab-1"}

	t.Run("an event about a job triggers a poll at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			events := make(chan drover.Event, 1)
			events <- about
			if took := ring(t, events, time.Nanosecond); took != shortestLook {
				t.Errorf("it polled again after %v", took)
			}
		})
	})
	t.Run("polls are rare while events arrive but none is about a job", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			events := make(chan drover.Event, 1)
			events <- other
			if took := ring(t, events, time.Nanosecond); took != shortestLook+quietLook {
				t.Errorf("it polled again after %v", took)
			}
		})
	})
	t.Run("polls are frequent without events", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			events := make(chan drover.Event)
			close(events)
			if took := ring(t, events, 5*time.Second); took < 5*time.Second || took > 5*time.Second+longestLook+shortestLook {
				t.Errorf("it polled for %v", took)
			}
		})
	})
}
