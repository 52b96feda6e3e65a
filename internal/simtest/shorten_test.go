package simtest

import (
	"testing"
	"time"
)

func TestShorten(t *testing.T) {
	tried := 0
	r := Shorten(Recipe{Seed: 1, Luck: Bad(), Settings: settings(), Jobs: jobs()}, func(r Recipe) bool {
		tried++
		kept := false
		for _, j := range r.Jobs {
			kept = kept || j.Number == 1 && j.Array.Size() >= 5
		}
		return kept && r.Luck.Odds[Crash] > 0 && r.Luck.Odds[ListStale] > 0 && r.Luck.Until >= 10*time.Minute
	})
	t.Run("only the faults that it takes are left", func(t *testing.T) {
		if got, want := r.Luck.String(), "crash,list-stale"; got != want {
			t.Errorf("left are %s, want %s", got, want)
		}
	})
	t.Run("only the jobs that it takes are left, and of an array not much more", func(t *testing.T) {
		if len(r.Jobs) != 1 || r.Jobs[0].Array.Size() != 5 {
			t.Errorf("left are %d jobs, the first of %d elements; want one of 5", len(r.Jobs), r.Jobs[0].Array.Size())
		}
	})
	t.Run("what goes wrong ends early", func(t *testing.T) {
		if r.Luck.Until != 15*time.Minute {
			t.Errorf("it ends after %v, want 15m", r.Luck.Until)
		}
	})
	if tried > 100 {
		t.Errorf("%d worlds were tried", tried)
	}
}
