package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
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

// recall has the spot instances of a cloud cost what their offerings did.
func (e *Engine) recall(c *Cloud, past []Past) {
	if len(past) == 0 {
		return
	}
	for _, in := range e.fleet.All() {
		if in.Cloud != c.Name || in.Market != drover.Spot || !in.Billed() {
			continue
		}
		at := slices.IndexFunc(past, func(p Past) bool { return p.OfferingKey == KeyOf(in.Offering()) })
		if at >= 0 {
			e.recallOf(in, past[at].Prices)
		}
	}
}

func (e *Engine) recallOf(in *fleet.Member, prices []PastPrice) {
	tariff, since := in.Tariff(), in.PricedSince()
	o, _ := e.listedAs(in)
	for _, p := range slices.SortedStableFunc(slices.Values(prices), func(a, b PastPrice) int { return cmp.Compare(a.From, b.From) }) {
		if p.From > since && p.From < e.s.Now && p.Price >= 0 {
			o.Price = p.Price
			tariff, since = tariff.Changed(e.withVolume(o, in.Volume()).Price, p.From), p.From
		}
	}
	if len(tariff.Rates) == len(in.Rates) {
		return
	}
	in.Rates, in.Price = tariff.Rates, tariff.Price
	e.fleet.Moved()
	e.writeInstance(in)
	e.touch(in)
}
