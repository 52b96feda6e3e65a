package engine_test

import (
	"testing"

	"drover"
	"drover/internal/engine"
)

func TestRequestForAnEarlierRetryIsRefused(t *testing.T) {
	fleet := newBusy(t, 1, 2, 1)
	again := waitingJob(9, 1)
	again.Again = 4 // it was final and is retried
	fleet.hear(engine.Submitted{Jobs: []engine.Job{again}})
	for name, wish := range map[string]engine.Body{
		"a cancellation": engine.CancelAsked{Wish: 7, Job: drover.JobID{Number: 9, Index: -1}, Again: 3},
		"a priority":     engine.PriorityAsked{Wish: 7, Job: 9, Again: 3, Priority: 5},
	} {
		t.Run(name, func(t *testing.T) {
			d := fleet.e.Apply(engine.Event{At: fleet.now, Body: wish})
			r := d.Replies()
			if len(d.Writes) != 1 || len(r) != 1 || r[0].Wish != 7 || r[0].Err == nil || r[0].Err.Kind != drover.KindConflict {
				t.Errorf("writes %+v and answers %+v", d.Writes, r)
			}
		})
	}
}
