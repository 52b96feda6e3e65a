package queue

import (
	"testing"
	"time"
)

// covers D1
func TestExpectedTimes(t *testing.T) {
	t.Run("a million jobs with different expected times form twenty classes", func(t *testing.T) {
		classes := map[Key]bool{}
		for i := range time.Duration(1_000_000) {
			classes[KeyOf(&Job{Expected: (i + 1) * (i + 1) * 9 * time.Millisecond}, nil)] = true // up to 285 years
		}
		if len(classes) != 20 {
			t.Errorf("there are %d classes", len(classes))
		}
	})
	for given, want := range map[time.Duration]time.Duration{
		0: 0, time.Nanosecond: leastStep, time.Minute: leastStep, 20 * time.Minute: 15 * time.Minute, 40 * time.Minute: 30 * time.Minute,
		50 * time.Minute: time.Hour, time.Hour: time.Hour, 90 * time.Minute: time.Hour, 91 * time.Minute: 2 * time.Hour, 24 * 3650 * time.Hour: mostStep,
	} {
		t.Run(given.String()+" is rounded to the nearest step", func(t *testing.T) {
			if got := Step(given); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
