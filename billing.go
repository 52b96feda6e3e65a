package drover

import "time"

// MaxBillingPeriod is the longest that a cloud may bill beyond an instance's end: money is limited by the hour, and
// what is paid ahead then ends in the next one at the latest.
const MaxBillingPeriod = time.Hour

// Billing is how a cloud rounds the time that it bills. Neither time is longer than MaxBillingPeriod.
type Billing struct {
	Least  time.Duration `json:"least,omitempty"`  // is billed in any case
	Period time.Duration `json:"period,omitempty"` // of which each that is begun is billed as a whole; 0: there is none
}

// PaidUntil is when the bill of an instance ends that was created and ended at these times: never before it ended, and
// no earlier if it ends later.
func (b Billing) PaidUntil(created, ended Time) Time {
	took := ended.Sub(created)
	if b.Period > 0 {
		took += b.Period - took%b.Period
	}
	return max(ended, created.Add(max(took, b.Least)))
}

// Latest is the latest time at which the bill of an instance can end that ended at this time, whenever it was created.
func (b Billing) Latest(ended Time) Time { return ended.Add(b.Period) }
