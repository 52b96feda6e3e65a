package budget

import (
	"cmp"
	"math"
	"time"

	"drover"
	"drover/internal/ledger"
)

// Never is beyond all times.
const Never = drover.Time(math.MaxInt64)

// Horizon is how long a job with this timeout is taken to run when money is committed for it: an hour if it has none.
func Horizon(timeout time.Duration) time.Duration { return cmp.Or(timeout, time.Hour) }

// Claim is what an instance costs, and what was promised to its jobs. It does not depend on the time.
type Claim struct {
	Asked   drover.Time // when its cloud was first asked for it
	Created drover.Time // when its bill begins; 0: not known
	Ended   drover.Time // up to when it is paid; 0: it goes on
	Tariff  drover.Tariff
	CPU     drover.MilliCPU
	Offers  []drover.Offering // what it may be of
	Billing drover.Billing
	Boot    time.Duration // from being asked for until its jobs can begin, at most
	Uses    []Use
	Bound   []Load // that waits for it to be ready
}

// Use is an attempt's part of an instance.
type Use struct {
	Payer   Payer
	Started drover.Time
	Ended   drover.Time // its command's end; 0: it runs
	CPU     drover.MilliCPU
	Horizon time.Duration
}

// Load is jobs that are alike.
type Load struct {
	Payer   Payer
	CPU     drover.MilliCPU // each
	Horizon time.Duration
	Count   int
}

// Commitment is money that a decision would bind: an instance kept for longer, or rented, for so many jobs more.
type Commitment struct {
	On      *Claim            // nil: an instance that is to be rented
	Offers  []drover.Offering // that this one may be of
	Billing drover.Billing    // of their cloud
	Boots   time.Duration     // until its jobs can begin, at most
	Loads   []Load
}

// Longest is the horizon of the longest of the commitment's jobs.
func (c Commitment) Longest() (most time.Duration) { return longest(c.Loads) }

func longest(loads []Load) (most time.Duration) {
	for _, l := range loads {
		most = max(most, l.Horizon)
	}
	return most
}

// from is when the claim's bill begins, as far as that is known.
func (c *Claim) from() drover.Time { return cmp.Or(c.Created, c.Asked) }

// dearest is the claim's tariff, if its cloud makes the instance of the dearest offering.
func (c *Claim) dearest() drover.Tariff {
	tariff := c.Tariff
	tariff.Price = max(tariff.Price, dearestOf(c.Offers))
	return tariff
}

func dearestOf(offers []drover.Offering) (most drover.Money) {
	for _, o := range offers {
		most = max(most, o.Price)
	}
	return most
}

// paidUntil is up to when an instance is paid that ends at a time, as its cloud bills. While it is not known when its bill began, a whole period may be
// left of that.
func (c *Claim) paidUntil(ended drover.Time) drover.Time {
	if c.Created == 0 {
		return c.Billing.Latest(ended)
	}
	return c.Billing.PaidUntil(c.Created, ended)
}

// committedUntil is up to when the instance is paid at least: when the longest job admitted to it has ended, and what its cloud bills beyond that.
func (c *Claim) committedUntil(now drover.Time) drover.Time {
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
	return c.paidUntil(end)
}

// costsNow is what the instance costs an hour now.
func (c *Claim) costsNow(now drover.Time) drover.Money {
	if c.Created == 0 || c.Ended != 0 && c.Ended <= now { // in a period that is paid, attempts go on
		return 0
	}
	return c.Tariff.Price
}

// bound is for how many jobs the instance is on its way.
func (c *Claim) bound() (n int) {
	for _, l := range c.Bound {
		n += l.Count
	}
	return n
}

// bill is what the instance is paid for up to now.
func (c *Claim) bill(now drover.Time) ledger.Bill {
	return ledger.Bill{Tariff: c.Tariff, Created: c.Created, End: cmp.Or(c.Ended, now), CPU: c.CPU}
}

// use is what the attempt has of its instance up to a time, while it runs.
func (u Use) use(until drover.Time) ledger.Use {
	return ledger.Use{Started: u.Started, Ended: cmp.Or(u.Ended, until), CPU: u.CPU}
}

// spent is what the instance has cost in an account up to now, or what the attempts that the account counts had of it.
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

// committed is what the claim comes to in an account, with all that was promised; end is up to when it is committed.
func (c *Claim) committed(a *Account, now, end drover.Time) drover.Money {
	switch {
	case a.From >= max(end, now) && len(c.Bound) == 0: // it is over by then
		return 0
	case a.OfFleet():
		return c.dearest().Cost(c.from(), a.From, min(a.To, end))
	}
	return c.shares(a, now)
}

// shares is what of the instance is in the name of an account's budget.
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

// staysUntil is until when what the claim comes to stays so; not after now if it moves.
func (c *Claim) staysUntil(now, end drover.Time, shared bool) (until drover.Time) {
	switch until = end; {
	case c.Ended != 0:
		until = Never
	case c.Created == 0: // as long as that is not known, its bill may begin now
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

// leaps is when a claim that moves comes to a whole period more at once, as its cloud bills; 0 for never.
func (c *Claim) leaps(now drover.Time) drover.Time {
	if c.Billing.Period == 0 || c.Created == 0 || c.Ended != 0 {
		return 0
	}
	return max(c.committedUntil(now), now+1)
}

// part is what one of the jobs has of an instance, from now until its end if it begins at the latest: the most, of what the instance may be.
func (a *Account) part(offers []drover.Offering, l Load, now, begin drover.Time) (most drover.Money) {
	u := ledger.Use{Started: now, Ended: max(begin, now).Add(l.Horizon), CPU: l.CPU}
	for _, o := range offers {
		bill := ledger.Bill{Tariff: drover.Tariff{Price: o.Price}, Created: now, End: Never, CPU: o.Type.Resources.CPU}
		most = max(most, bill.Share(u, a.From, a.To))
	}
	return most
}
