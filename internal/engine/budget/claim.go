package budget

import (
	"cmp"
	"math"
	"time"

	"drover"
	"drover/internal/billing"
)

// Never is later than any time.
const Never = drover.Time(math.MaxInt64)

// Horizon returns how long money is committed for a job with this timeout: the timeout, or an hour if it has none.
func Horizon(timeout time.Duration) time.Duration { return cmp.Or(timeout, time.Hour) }

// Claim is the cost of one instance and the money committed to its jobs. It does not depend on the current time.
type Claim struct {
	Asked   drover.Time // when its cloud was first asked to create it
	Created drover.Time // when its bill begins; 0: not known yet
	Ended   drover.Time // when its bill ends; 0: still running
	Tariff  drover.Tariff
	CPU     drover.MilliCPU
	Offers  []drover.Offering // the offerings it may turn out to be
	Billing drover.Billing
	Boot    time.Duration // longest time from the request until its jobs can start
	Uses    []Use
	Bound   []Load // jobs waiting for it to be ready
	Stays   bool   // it is kept regardless of its jobs: committed until the end of the next hour, again and again
}

// Use is an attempt's part of an instance.
type Use struct {
	Payer   Payer
	Started drover.Time
	Ended   drover.Time // when its command ended; 0: still running
	CPU     drover.MilliCPU
	Horizon time.Duration
}

// Load is a number of identical jobs.
type Load struct {
	Payer   Payer
	CPU     drover.MilliCPU // each
	Horizon time.Duration
	Count   int
}

// Commitment is money that a decision would commit: for more jobs on an instance, or for renting one.
type Commitment struct {
	On      *Claim            // the instance; nil: one to be rented
	Offers  []drover.Offering // what the rented one may be
	Billing drover.Billing    // of the cloud it is rented from
	Boots   time.Duration     // longest time until its jobs can start
	Loads   []Load
}

// Longest returns the horizon of the commitment's longest job.
func (c Commitment) Longest() (most time.Duration) { return longest(c.Loads) }

func longest(loads []Load) (most time.Duration) {
	for _, l := range loads {
		most = max(most, l.Horizon)
	}
	return most
}

// Renewed returns until when an open-ended instance is committed: the end of the next hour. So the next window is known
// to be affordable before it begins.
func Renewed(now drover.Time) drover.Time { return Hourly.end(nextTurn(now)) }

// from returns when the bill begins, or is expected to.
func (c *Claim) from() drover.Time { return cmp.Or(c.Created, c.Asked) }

// maxTariff returns the tariff if the cloud chooses the most expensive offering.
func (c *Claim) maxTariff() drover.Tariff {
	tariff := c.Tariff
	tariff.Price = max(tariff.Price, maxPrice(c.Offers))
	return tariff
}

func maxPrice(offers []drover.Offering) (most drover.Money) {
	for _, o := range offers {
		most = max(most, o.Price)
	}
	return most
}

// PaidUntil returns when the bill of an instance ends that was created, and ends, at given times. If it is not known to
// be created (0), its bill may begin at any earlier time, so up to a whole billing period may be added.
func PaidUntil(b drover.Billing, created, ended drover.Time) drover.Time {
	if created == 0 {
		return b.Latest(ended)
	}
	return b.PaidUntil(created, ended)
}

func (c *Claim) paidUntil(ended drover.Time) drover.Time {
	return PaidUntil(c.Billing, c.Created, ended)
}

// CommittedUntil returns the earliest end of the bill: the end of the longest admitted job, rounded up to what the
// cloud bills.
func (c *Claim) CommittedUntil(now drover.Time) drover.Time {
	end := cmp.Or(c.Ended, now)
	for _, u := range c.Uses {
		if u.Ended == 0 {
			end = max(end, u.Started.Add(u.Horizon))
		}
	}
	if len(c.Bound) > 0 {
		end = max(end, c.Asked.Add(c.Boot+longest(c.Bound)))
	}
	if c.Ended != 0 {
		return end
	}
	if c.Stays {
		end = max(end, Renewed(now))
	}
	return c.paidUntil(end)
}

// costsNow returns the instance's current hourly price.
func (c *Claim) costsNow(now drover.Time) drover.Money {
	if c.Created == 0 || c.Ended != 0 && c.Ended <= now { // a paid period may outlast now
		return 0
	}
	return c.Tariff.Price
}

// bound returns the number of jobs waiting for the instance.
func (c *Claim) bound() (n int) {
	for _, l := range c.Bound {
		n += l.Count
	}
	return n
}

// bill returns the instance's bill so far.
func (c *Claim) bill(now drover.Time) billing.Bill {
	return billing.Bill{Tariff: c.Tariff, Created: c.Created, End: cmp.Or(c.Ended, now), CPU: c.CPU}
}

// use returns the attempt's use of its instance; a running attempt counts until a given time.
func (u Use) use(until drover.Time) billing.Use {
	return billing.Use{Started: u.Started, Ended: cmp.Or(u.Ended, until), CPU: u.CPU}
}

// spent returns what the claim has cost an account so far.
func (c *Claim) spent(a *Account, now drover.Time) (sum drover.Money) {
	if c.Created == 0 {
		return 0
	}
	bill := c.bill(now)
	if a.OfFleet() {
		return bill.Cost(a.From, a.To)
	}
	for _, u := range c.Uses {
		if a.Covers(u.Payer) {
			sum += bill.Share(u.use(now), a.From, a.To)
		}
	}
	return sum
}

// committed returns what the claim costs an account, including commitments. end is CommittedUntil.
func (c *Claim) committed(a *Account, now, end drover.Time) drover.Money {
	switch {
	case a.From >= max(end, now) && len(c.Bound) == 0: // the claim ends before the account begins
		return 0
	case a.OfFleet():
		return c.maxTariff().Cost(c.from(), a.From, min(a.To, end))
	}
	return c.shares(a, now)
}

// shares returns the part of the claim that the account's budget counts.
func (c *Claim) shares(a *Account, now drover.Time) (sum drover.Money) {
	for _, u := range c.Uses {
		if !a.Covers(u.Payer) {
			continue
		}
		bill, use := c.bill(now), u.use(now)
		if u.Ended == 0 {
			use.Ended = max(now, u.Started.Add(u.Horizon))
			bill.End = max(bill.End, use.Ended)
		}
		sum += bill.Share(use, a.From, a.To)
	}
	for _, l := range c.Bound {
		if a.Covers(l.Payer) {
			sum += a.part(c.Offers, l, now, c.Asked.Add(c.Boot)) * drover.Money(l.Count)
		}
	}
	return sum
}

// staysUntil returns until when the claim's sums stay the same. It is not after now if the claim moves.
func (c *Claim) staysUntil(now, end drover.Time, shared bool) (until drover.Time) {
	if until = end; c.Stays {
		until = min(until, nextTurn(now))
	}
	switch {
	case c.Ended != 0:
		until = Never
	case c.Created == 0: // its bill may begin at any moment
		until = now
	}
	if !shared {
		return until
	}
	for _, u := range c.Uses {
		if u.Ended == 0 {
			until = min(until, u.Started.Add(u.Horizon))
		}
	}
	if len(c.Bound) > 0 {
		until = 0
	}
	return until
}

// leaps returns when a moving claim next grows by a whole billing period, or by an hour of staying; 0: never.
func (c *Claim) leaps(now drover.Time) drover.Time {
	if c.Stays && c.Ended == 0 {
		return nextTurn(now)
	}
	if c.Billing.Period == 0 || c.Created == 0 || c.Ended != 0 {
		return 0
	}
	return max(c.CommittedUntil(now), now+1)
}

// part returns the most that one job of a load can cost: from now until its end if it starts as late as possible, on
// the most expensive offering.
func (a *Account) part(offers []drover.Offering, l Load, now, begin drover.Time) (most drover.Money) {
	u := billing.Use{Started: now, Ended: max(begin, now).Add(l.Horizon), CPU: l.CPU}
	for _, o := range offers {
		bill := billing.Bill{Tariff: drover.Tariff{Price: o.Price}, Created: now, End: Never, CPU: o.Type.Resources.CPU}
		most = max(most, bill.Share(u, a.From, a.To))
	}
	return most
}
