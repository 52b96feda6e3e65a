package drover

import "time"

// MaxBillingPeriod is the longest time for which a cloud may bill after an instance has ended. Budgets count by the
// hour, so time that is paid in advance ends in the next hour at the latest.
const MaxBillingPeriod = time.Hour

// Billing is how a cloud rounds the time that it bills. Neither time is longer than MaxBillingPeriod.
type Billing struct {
	Least  time.Duration `json:"least,omitempty"`  // the minimum that is billed
	Period time.Duration `json:"period,omitempty"` // each one that has begun is billed in full; 0: there are none
}

// PaidUntil returns when the bill ends for an instance that was created and ended at these times. It is never before
// the instance's end, and a later end never makes it earlier.
func (b Billing) PaidUntil(created, ended Time) Time {
	took := ended.Sub(created)
	if b.Period > 0 {
		took += b.Period - took%b.Period
	}
	return max(ended, created.Add(max(took, b.Least)))
}

// Latest returns the latest time at which the bill can end for an instance that ended at this time, whenever it was
// created, unless its life was shorter than Least.
func (b Billing) Latest(ended Time) Time { return ended.Add(b.Period) }
