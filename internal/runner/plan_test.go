package runner

import (
	"testing"
	"time"

	"drover"
)

// covers D12
func TestWhenAttemptsAreToldToEnd(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name        string
		left, grace time.Duration // left 0: no deadline
		term, wait  time.Duration
	}{
		{"of two minutes what is not kept for the outputs is the job's", 2 * time.Minute, 2 * time.Minute, 0, 105 * time.Second},
		{"a short grace begins late", 2 * time.Minute, 10 * time.Second, 95 * time.Second, 10 * time.Second},
		{"of half a minute a quarter is kept", 30 * time.Second, 2 * time.Minute, 0, 22500 * time.Millisecond},
		{"without a deadline there is no time to lose", 0, time.Minute, 0, time.Minute},
		{"a deadline that has passed leaves a little", -time.Minute, time.Minute, 0, lateGrace},
	} {
		var deadline drover.Time
		if c.left != 0 {
			deadline = drover.TimeOf(now.Add(c.left))
		}
		got := plan(deadline, now, c.grace)
		if off := got.term.Sub(now) - c.term; off.Abs() > time.Microsecond || (got.grace-c.wait).Abs() > time.Microsecond {
			t.Errorf("%s: told after %v with %v, not after %v with %v", c.name, got.term.Sub(now), got.grace, c.term, c.wait)
		}
	}
}

// covers D21
func TestTwoLooksMakeAVerdict(t *testing.T) {
	var h health
	for n, step := range []struct {
		wrong, held string
		changed     bool
	}{
		{"disk", "", false}, {"", "", false}, {"disk", "", false}, {"memory", "memory", true},
		{"disk", "memory", false}, {"", "memory", false}, {"disk", "memory", false}, {"", "memory", false}, {"", "", true}, {"", "", false},
	} {
		if changed := h.judge(step.wrong); changed != step.changed || h.ailing != step.held {
			t.Errorf("look %d, %q: changed is %v and %q is held", n, step.wrong, changed, h.ailing)
		}
	}
}
