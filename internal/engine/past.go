package engine

import (
	"cmp"
	"slices"

	"drover"
)

// Where a cloud remembers its prices, an instance costs what they were also while nobody looked: a controller that begins is told how the prices
// of the spot instances that it finds have moved since the last change that was noted of each. What was noted stays as it was. A volume costs what it
// does now.

// Past is how the price of an offering has moved, as far as that was asked for.
type Past struct {
	OfferingKey
	Prices []PastPrice `json:"prices"` // the oldest first
}

// PastPrice is what an offering costs an hour from a time on.
type PastPrice struct {
	From  drover.Time  `json:"from"`
	Price drover.Money `json:"price"`
}

// PricedSince is from when on the instance's price is that which it has.
func (in Instance) PricedSince() drover.Time {
	if n := len(in.Rates); n > 0 {
		return in.Rates[n-1].Until
	}
	return in.Created
}

// Billed reports whether the instance is paid for and still will be.
func (in Instance) Billed() bool { return in.Created != 0 && in.Ended == 0 }

// recall has the spot instances of a cloud cost what their offerings did.
func (e *Engine) recall(c *Cloud, past []Past) {
	if len(past) == 0 {
		return
	}
	for _, in := range e.instances {
		if in.Cloud != c.Name || in.Market != drover.Spot || !in.Billed() {
			continue
		}
		at := slices.IndexFunc(past, func(p Past) bool { return p.OfferingKey == KeyOf(in.offering()) })
		if at >= 0 {
			e.recallOf(in, past[at].Prices)
		}
	}
}

func (e *Engine) recallOf(in *instance, prices []PastPrice) {
	tariff, since := in.Tariff(), in.PricedSince()
	o, _ := e.listedAs(in)
	for _, p := range slices.SortedStableFunc(slices.Values(prices), func(a, b PastPrice) int { return cmp.Compare(a.From, b.From) }) {
		if p.From > since && p.From < e.s.Now && p.Price >= 0 {
			o.Price = p.Price
			tariff, since = tariff.Changed(e.withVolume(o, in.volume()).Price, p.From), p.From
		}
	}
	if len(tariff.Rates) == len(in.Rates) {
		return
	}
	in.Rates, in.Price = tariff.Rates, tariff.Price
	e.fleet++
	e.writeInstance(in)
	e.touch(in)
}
