package engine

import (
	"testing"
	"time"

	"drover"
)

func TestWhenAnAttemptEnded(t *testing.T) {
	const started = drover.Time(1_000_000_000_000)
	for _, c := range []struct {
		name       string
		heard      time.Duration // after its start
		took, want time.Duration
	}{
		{"an exit reported at once counts from the report", 3010 * time.Millisecond, 3 * time.Second, 3010 * time.Millisecond},
		{"an exit reported late counts from the instance's time", time.Hour, 3 * time.Second, 3 * time.Second},
		{"ignores an instance whose clock was set forward", time.Minute, 2 * time.Hour, time.Minute},
		{"ignores an instance whose clock went back", time.Minute, -time.Hour, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Engine{s: State{Now: started.Add(c.heard)}}
			exit := drover.Exit{Started: 5000, Ended: drover.Time(5000).Add(c.took)}
			if got := e.ended(&Attempt{Started: started}, exit); got != started.Add(c.want) {
				t.Errorf("it ended %v after its start, not %v", got.Sub(started), c.want)
			}
		})
	}
	t.Run("without the instance's time, the exit counts from the report", func(t *testing.T) {
		e := &Engine{s: State{Now: started.Add(time.Hour)}}
		if got := e.ended(&Attempt{Started: started}, drover.Exit{}); got != e.s.Now {
			t.Errorf("it ended at %v", got)
		}
	})
}
