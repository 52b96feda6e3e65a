package drover

import "time"

// MaxBillingPeriod is the longest that a cloud may bill beyond an instance's end: money is limited by the hour, and what is paid ahead then ends in the
// next one at the latest.
const MaxBillingPeriod = time.Hour

// Billing is how a cloud bills the time of an instance, beside by the second. Neither time is longer than MaxBillingPeriod.
type Billing struct {
	Least  time.Duration `json:"least,omitempty"`  // is billed in any case
	Period time.Duration `json:"period,omitempty"` // of which each that is begun is billed as a whole; 0: there is none
}

// PaidUntil is up to when an instance is paid that is created at one time and ends at another. It is never earlier than that, and the later the later
// that is.
func (b Billing) PaidUntil(created, ended Time) Time {
	took := ended.Sub(created)
	if b.Period > 0 {
		took += b.Period - took%b.Period
	}
	return max(ended, created.Add(max(took, b.Least)))
}

// Latest is up to when an instance is paid at most that ends at a time, whenever it was created before that: no later than what is billed in any case.
func (b Billing) Latest(ended Time) Time { return ended.Add(b.Period) }
