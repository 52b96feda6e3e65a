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
	t.Run("keeps only the necessary faults", func(t *testing.T) {
		if got, want := r.Luck.String(), "crash,list-stale"; got != want {
			t.Errorf("kept %s, want %s", got, want)
		}
	})
	t.Run("keeps only the necessary jobs and shortens arrays", func(t *testing.T) {
		if len(r.Jobs) != 1 || r.Jobs[0].Array.Size() != 5 {
			t.Errorf("kept %d jobs, the first with %d elements; want one with 5", len(r.Jobs), r.Jobs[0].Array.Size())
		}
	})
	t.Run("ends the faults early", func(t *testing.T) {
		if r.Luck.Until != 15*time.Minute {
			t.Errorf("faults end after %v, want 15m", r.Luck.Until)
		}
	})
	if tried > 100 {
		t.Errorf("%d worlds were tried", tried)
	}
}
