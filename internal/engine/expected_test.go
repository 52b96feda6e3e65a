package engine

import (
	"testing"
	"time"

	"drover"
)

func TestExpectedTimes(t *testing.T) {
	t.Run("a million jobs of as many expected times are twenty groups", func(t *testing.T) {
		e, err := New(State{Version: StateVersion, Fleet: "f", Nonce: "n", Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range time.Duration(1_000_000) {
			e.addJob(&Job{
				Number: int64(i + 1), Shape: drover.Shape{Need: drover.Resources{CPU: 1000}}, Priority: 1, Queued: Ranges{{-1, -1}},
				Expected: (i + 1) * (i + 1) * 9 * time.Millisecond, // up to 285 years
			})
		}
		if len(e.groups) != 20 {
			t.Errorf("there are %d", len(e.groups))
		}
	})
	for given, want := range map[time.Duration]time.Duration{
		0: 0, time.Nanosecond: leastStep, time.Minute: leastStep, 20 * time.Minute: 15 * time.Minute, 40 * time.Minute: 30 * time.Minute,
		50 * time.Minute: time.Hour, time.Hour: time.Hour, 90 * time.Minute: time.Hour, 91 * time.Minute: 2 * time.Hour, 24 * 3650 * time.Hour: mostStep,
	} {
		t.Run(given.String()+" is taken for the step that is nearest", func(t *testing.T) {
			if got := step(given); got != want {
				t.Errorf("it is %v, not %v", got, want)
			}
		})
	}
}
