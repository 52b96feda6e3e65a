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
		"by the second, what it took":                  {drover.Billing{}, 90 * time.Second, 90 * time.Second},
		"at least what is billed in any case":          {drover.Billing{Least: time.Minute}, 10 * time.Second, time.Minute},
		"longer than that, what it took":               {drover.Billing{Least: time.Minute}, 61 * time.Second, 61 * time.Second},
		"each period that is begun":                    {drover.Billing{Period: time.Hour}, 61 * time.Minute, 2 * time.Hour},
		"the first, however soon it ends":              {drover.Billing{Period: time.Hour}, 0, time.Hour},
		"the next, when it ends as the last one does":  {drover.Billing{Period: time.Hour}, time.Hour, 2 * time.Hour},
		"what is billed in any case, longer than that": {drover.Billing{Least: time.Hour, Period: time.Minute}, 90 * time.Second, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if paid := c.billing.PaidUntil(created, created.Add(c.took)); paid != created.Add(c.paid) {
				t.Errorf("what took %v is paid for %v, not %v", c.took, paid.Sub(created), c.paid)
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
			rt.Errorf("paid until %v after an end at %v, and until %v after one at %v", first, ended, second, later)
		}
		if ahead := first.Sub(ended); ahead > drover.MaxBillingPeriod {
			rt.Errorf("%v are paid ahead", ahead)
		}
	})
}
