// Package billing says what an instance's bill was for. It is pure: sums of money in, sums of money out.
//
// The model: from when an instance is created to when its bill ends, each moment costs what its tariff says. An attempt
// pays in proportion to its share of the instance's vCPUs, from its start to its command's end. The rest is boot until
// the instance was ready, and idle from then on. Waste is the share of attempts that were lost or interrupted, and the
// unused time of an instance on which no job ever started.
//
// The invariant: for any period, the parts add up to what the instance cost in it, to the nano-dollar.
package billing

import "drover"

// Bill is what an instance is paid for.
type Bill struct {
	Tariff  drover.Tariff
	Created drover.Time
	Ready   drover.Time // 0: it never was
	End     drover.Time // now, while it goes on
	CPU     drover.MilliCPU
	Unused  bool // it is gone, and no job ever began on it
}

// Use is what an attempt had of an instance.
type Use struct {
	Started drover.Time
	Ended   drover.Time // now, while it goes on
	CPU     drover.MilliCPU
	Lost    bool // or interrupted
}

// Parts is what money was for.
type Parts struct {
	Jobs  drover.Money
	Boot  drover.Money
	Idle  drover.Money
	Waste drover.Money
}

// Sum is all parts together.
func (p Parts) Sum() drover.Money { return p.Jobs + p.Boot + p.Idle + p.Waste }

// Plus is both together.
func (p Parts) Plus(q Parts) Parts {
	return Parts{p.Jobs + q.Jobs, p.Boot + q.Boot, p.Idle + q.Idle, p.Waste + q.Waste}
}

// Cost is what the instance cost from one time to another.
func (b Bill) Cost(from, to drover.Time) drover.Money {
	return b.Tariff.Cost(b.Created, min(from, b.End), min(to, b.End))
}

// Share is what of that was the attempt's. Like the whole, it grows from its beginning on, so that its parts add up.
func (b Bill) Share(u Use, from, to drover.Time) drover.Money {
	return b.grown(u, to) - b.grown(u, from)
}

func (b Bill) grown(u Use, to drover.Time) drover.Money {
	if b.CPU <= 0 || u.CPU <= 0 {
		return 0
	}
	had := b.Tariff.Cost(u.Started, u.Started, min(to, u.Ended, b.End))
	return had.Part(int64(min(u.CPU, b.CPU)), int64(b.CPU))
}

// Account divides up what an instance cost in a stretch of time.
type Account struct {
	bill     Bill
	from, to drover.Time
	left     drover.Money
}

// Open begins to divide.
func (b Bill) Open(from, to drover.Time) *Account {
	return &Account{b, from, to, b.Cost(from, to)}
}

// Charge is what an attempt had. It never takes what others have taken: their cut nano-dollars may make up one
// together.
func (a *Account) Charge(u Use) (p Parts) {
	had := min(a.left, a.bill.Share(u, a.from, a.to))
	a.left -= had
	if u.Lost {
		return Parts{Waste: had}
	}
	return Parts{Jobs: had}
}

// Rest is what no attempt had, once all were charged.
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
