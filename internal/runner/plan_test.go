package runner

import (
	"testing"
	"time"

	"drover"
)

// covers D12
func TestWhenAttemptsGetSIGTERM(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name        string
		left, grace time.Duration // left 0: no deadline
		term, wait  time.Duration
	}{
		{"a job gets two minutes less the time for its outputs", 2 * time.Minute, 2 * time.Minute, 0, 105 * time.Second},
		{"a short grace starts late", 2 * time.Minute, 10 * time.Second, 95 * time.Second, 10 * time.Second},
		{"a quarter of half a minute is reserved for the outputs", 30 * time.Second, 2 * time.Minute, 0, 22500 * time.Millisecond},
		{"without a deadline, SIGTERM is sent at once", 0, time.Minute, 0, time.Minute},
		{"after the deadline, a little grace remains", -time.Minute, time.Minute, 0, lateGrace},
	} {
		var deadline drover.Time
		if c.left != 0 {
			deadline = drover.TimeOf(now.Add(c.left))
		}
		got := plan(deadline, now, c.grace)
		if off := got.term.Sub(now) - c.term; off.Abs() > time.Microsecond || (got.grace-c.wait).Abs() > time.Microsecond {
			t.Errorf("%s: got SIGTERM after %v with grace %v, want after %v with %v", c.name, got.term.Sub(now), got.grace, c.term, c.wait)
		}
		if c.left > 0 && got.term != got.term.Round(0) {
			t.Errorf("%s: the monotonic clock decides, so a correction of the wall clock has no effect", c.name)
		}
	}
}

// covers D21
func TestHealthChangesAfterTwoChecks(t *testing.T) {
	var h health
	for n, step := range []struct {
		wrong, held string
		changed     bool
	}{
		{"disk", "", false}, {"", "", false}, {"disk", "", false}, {"memory", "memory", true},
		{"disk", "memory", false}, {"", "memory", false}, {"disk", "memory", false}, {"", "memory", false}, {"", "", true}, {"", "", false},
	} {
		if changed := h.judge(step.wrong); changed != step.changed || h.ailing != step.held {
			t.Errorf("check %d finds %q: changed is %v, and %q is reported", n, step.wrong, changed, h.ailing)
		}
	}
}
