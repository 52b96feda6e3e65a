// Package billing divides an instance's bill. It has no side effects.
//
// The model: from an instance's creation to the end of its bill, each moment costs its tariff. An attempt pays in
// proportion to its share of the instance's vCPUs, from its start to the end of its command. The rest is boot until the
// instance was ready, and idle from then on. Waste is the share of attempts that were lost or interrupted, and the cost
// of an instance that neither ran a job nor served a pool.
//
// The invariant: for any period, the parts add up to the instance's cost in it, to the nano-dollar.
package billing

import "drover"

// Bill is the paid life of an instance.
type Bill struct {
	Tariff  drover.Tariff
	Created drover.Time
	Ready   drover.Time // 0: it never was
	End     drover.Time // now, if it has not ended
	CPU     drover.MilliCPU
	Unused  bool // the instance is gone, and neither ran a job nor was ready for its pool
}

// Use is an attempt's use of an instance.
type Use struct {
	Started drover.Time
	Ended   drover.Time // now, if it has not ended
	CPU     drover.MilliCPU
	Lost    bool // or interrupted

	Settled bool         // its cost was recorded when it ended; the tariff may have been folded since
	Cost    drover.Money // in all
}

// Parts are the parts of a cost.
type Parts struct {
	Jobs  drover.Money
	Boot  drover.Money
	Idle  drover.Money
	Waste drover.Money
}

// Sum returns the sum of the parts.
func (p Parts) Sum() drover.Money { return p.Jobs + p.Boot + p.Idle + p.Waste }

// Plus adds the parts of two costs.
func (p Parts) Plus(q Parts) Parts {
	return Parts{p.Jobs + q.Jobs, p.Boot + q.Boot, p.Idle + q.Idle, p.Waste + q.Waste}
}

// Cost returns the instance's cost from one time to another.
func (b Bill) Cost(from, to drover.Time) drover.Money {
	return b.Tariff.Cost(b.Created, min(from, b.End), min(to, b.End))
}

// Share returns the attempt's share of that. It is a difference of totals since the attempt's start, so the shares of
// consecutive periods add up; those of a settled attempt, to its cost. For periods within folded prices, that may be
// more than the instance's cost.
func (b Bill) Share(u Use, from, to drover.Time) drover.Money {
	return b.grown(u, to) - b.grown(u, from)
}

func (b Bill) grown(u Use, to drover.Time) drover.Money {
	had := b.had(u, to)
	if !u.Settled {
		return had
	}
	if whole := b.had(u, u.Ended); whole > 0 {
		return u.Cost.Part(int64(had), int64(whole))
	}
	return had
}

// had returns the attempt's share by the tariff until a time.
func (b Bill) had(u Use, to drover.Time) drover.Money {
	if b.CPU <= 0 || u.CPU <= 0 {
		return 0
	}
	had := b.Tariff.Cost(u.Started, u.Started, min(to, u.Ended, b.End))
	return had.Part(int64(min(u.CPU, b.CPU)), int64(b.CPU))
}

// Account divides an instance's cost in one period.
type Account struct {
	bill     Bill
	from, to drover.Time
	left     drover.Money
}

// Open returns an Account of a period.
func (b Bill) Open(from, to drover.Time) *Account {
	return &Account{b, from, to, b.Cost(from, to)}
}

// Charge charges an attempt for its use. The charges never exceed the cost.
func (a *Account) Charge(u Use) (p Parts) {
	had := min(a.left, a.bill.Share(u, a.from, a.to))
	a.left -= had
	if u.Lost {
		return Parts{Waste: had}
	}
	return Parts{Jobs: had}
}

// Rest returns the remainder, after all attempts were charged.
func (a *Account) Rest() Parts {
	if a.bill.Unused {
		return Parts{Waste: a.left}
	}
	ready := a.bill.Ready
	if ready == 0 {
		ready = a.bill.End
	}
	boot := min(a.left, a.bill.Cost(a.from, min(a.to, ready)))
	return Parts{Boot: boot, Idle: a.left - boot}
}
