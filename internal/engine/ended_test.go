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
		{"heard at once, it ended when it was heard", 3010 * time.Millisecond, 3 * time.Second, 3010 * time.Millisecond},
		{"heard late, it ended when its instance says that it did", time.Hour, 3 * time.Second, 3 * time.Second},
		{"an instance whose clock was set is not believed", time.Minute, 2 * time.Hour, time.Minute},
		{"nor is one whose clock went back", time.Minute, -time.Hour, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &Engine{s: State{Now: started.Add(c.heard)}}
			exit := drover.Exit{Started: 5000, Ended: drover.Time(5000).Add(c.took)}
			if got := e.ended(&Attempt{Started: started}, exit); got != started.Add(c.want) {
				t.Errorf("it ended %v after its start, not %v", got.Sub(started), c.want)
			}
		})
	}
	t.Run("without a word of the instance's, it ended when it was heard", func(t *testing.T) {
		e := &Engine{s: State{Now: started.Add(time.Hour)}}
		if got := e.ended(&Attempt{Started: started}, drover.Exit{}); got != e.s.Now {
			t.Errorf("it ended at %v", got)
		}
	})
}
