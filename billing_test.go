package drover_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"drover"
)

func TestPaidUntil(t *testing.T) {
	const created = drover.Time(1e18)
	for name, c := range map[string]struct {
		billing    drover.Billing
		took, paid time.Duration
	}{
		"by the second: the time used":                  {drover.Billing{}, 90 * time.Second, 90 * time.Second},
		"at least the minimum":                          {drover.Billing{Least: time.Minute}, 10 * time.Second, time.Minute},
		"longer than the minimum: the time used":        {drover.Billing{Least: time.Minute}, 61 * time.Second, 61 * time.Second},
		"a period that has begun is billed in full":     {drover.Billing{Period: time.Hour}, 61 * time.Minute, 2 * time.Hour},
		"the first period, even if it ends at once":     {drover.Billing{Period: time.Hour}, 0, time.Hour},
		"the next period, if it ends as one ends":       {drover.Billing{Period: time.Hour}, time.Hour, 2 * time.Hour},
		"the minimum, if it is longer than the periods": {drover.Billing{Least: time.Hour, Period: time.Minute}, 90 * time.Second, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if paid := c.billing.PaidUntil(created, created.Add(c.took)); paid != created.Add(c.paid) {
				t.Errorf("%v of use is billed as %v, want %v", c.took, paid.Sub(created), c.paid)
			}
		})
	}
}

// A later end never shortens the bill, and the bill covers at least the instance's life.
func TestPaidUntilGrows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		span := rapid.Map(rapid.Int64Range(0, int64(drover.MaxBillingPeriod)), func(n int64) time.Duration { return time.Duration(n) })
		b := drover.Billing{Least: span.Draw(rt, "least"), Period: span.Draw(rt, "period")}
		const created = drover.Time(1e18)
		ended := created.Add(span.Draw(rt, "took"))
		later := ended.Add(span.Draw(rt, "more"))
		first, second := b.PaidUntil(created, ended), b.PaidUntil(created, later)
		if first < ended || second < first {
			rt.Errorf("an end at %v is paid until %v, and one at %v until %v", ended, first, later, second)
		}
		if ahead := first.Sub(ended); ahead > drover.MaxBillingPeriod {
			rt.Errorf("%v is paid in advance", ahead)
		}
	})
}
