package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// An instance's hourly price is the list price of its offering or, on demand, a price the operator has committed to;
// the oldest instances use up commitments first. Either may change while it runs; the bill then continues at the new
// price.

// Reservation is a price commitment: the first Count running on-demand instances of a type cost this, whatever the list
// says.
type Reservation struct {
	Type  string       `json:"type"`
	Count int          `json:"count"`
	Price drover.Money `json:"price"` // per hour and instance
}

// updatePrices updates the prices of the billed instances that may have changed: all of them, or those of unpriced.
func (e *Engine) updatePrices() {
	if e.pending.Price {
		e.pending.Price = false
		for _, c := range e.clouds {
			e.updatePricesIn(c)
		}
	} else {
		slices.SortFunc(e.unpriced, fleet.ByID)
		for _, in := range e.unpriced {
			if c := e.cloud(in.Cloud); c != nil && in.State != drover.InstanceGone {
				e.updatePrice(c, in, nil)
			}
		}
	}
	e.unpriced = e.unpriced[:0]
}

// priceAnew schedules the price of an instance for an update, and of the others if they share reservations with it.
func (e *Engine) priceAnew(in *fleet.Member) {
	e.unpriced = append(e.unpriced, in)
	e.pending.Price = e.pending.Price || len(e.limits(in.Cloud).Reserved) > 0
}

// updatePricesIn updates the prices of one cloud's instances.
func (e *Engine) updatePricesIn(c *Cloud) {
	left := slices.Clone(e.limits(c.Name).Reserved)
	for _, in := range e.fleet.All() {
		if in.Cloud == c.Name {
			e.updatePrice(c, in, left)
		}
	}
}

// updatePrice updates an instance's price, given the reservations left for it and those after it. An instance without a
// listed price keeps its own.
func (e *Engine) updatePrice(c *Cloud, in *fleet.Member, left []Reservation) {
	by := fleet.Rate{Revision: e.market.Revision(), Zone: in.Zone, Type: in.Type.Name, Market: in.Market, Volume: in.Volume()}
	if in.Created == 0 || in.Ended != 0 || in.Rated == by && len(left) == 0 {
		return
	}
	if in.Rests() {
		e.updateStoppedPrice(c, in)
		return
	}
	in.Rated = by
	if price, reserved := take(left, in); reserved {
		e.reprice(in, price)
	} else if o, listed := c.Find(keyOf(in)); listed {
		e.reprice(in, e.withVolume(o, in.Volume()).Price)
	}
}

// updateStoppedPrice updates a stopped instance's price, and records what it would cost if running, which decides which
// one is started.
func (e *Engine) updateStoppedPrice(c *Cloud, in *fleet.Member) {
	o, listed := c.Find(keyOf(in))
	if !listed {
		return
	}
	e.reprice(in, volumePrice(o, in.Volume()))
	if price := e.asPaid(e.withVolume(o, in.Volume())).Price; price != in.RunPrice {
		in.RunPrice = price
		e.writeRevised(in)
	}
}

// withVolume returns an offering at its price with a disk of this size. A volume of the usual size, or a disk that
// comes with the type, is included already.
func (e *Engine) withVolume(o drover.Offering, disk drover.Bytes) drover.Offering {
	if o.Type.Resources.Disk != 0 {
		return o
	}
	return o.WithVolume(disk - e.limits(o.Cloud).Disk)
}

// take uses up the instance's part of the reservations left, and returns its price.
func take(left []Reservation, in *fleet.Member) (price drover.Money, reserved bool) {
	for i := range left {
		if in.Market == drover.OnDemand && left[i].Type == in.Type.Name && left[i].Count > 0 {
			left[i].Count--
			return left[i].Price, true
		}
	}
	return 0, false
}

// reprice changes an instance's price from now on.
func (e *Engine) reprice(in *fleet.Member, price drover.Money) {
	if price == in.Price {
		return
	}
	tariff := in.Tariff().Changed(price, e.s.Now)
	if e.s.Now == in.Created {
		tariff.Rates = nil // nothing was billed at the planned price
	}
	e.setTariff(in, tariff)
}

func (e *Engine) setTariff(in *fleet.Member, t drover.Tariff) {
	e.dropAbove(in, t.Price)
	t = t.Folded(in.Created, e.marks(in)...)
	in.Rates, in.Price = t.Rates, t.Price
	e.writeRevised(in)
	e.touch(in)
}

// marks returns the times between which an instance's cost must stay exact: the beginnings of budget windows, including
// recent ones, and of its live attempts.
func (e *Engine) marks(in *fleet.Member) []drover.Time {
	marks := append(budget.Begins(e.s.Now), in.Ready)
	for _, a := range in.Load {
		marks = append(marks, a.Started, a.Ended)
	}
	return marks
}

// unreserve lets another instance use the reservation of one that is no longer billed.
func (e *Engine) unreserve(in *fleet.Member) {
	e.pending.Price = e.pending.Price || slices.ContainsFunc(e.limits(in.Cloud).Reserved, func(r Reservation) bool { return r.Type == in.Type.Name })
}

// asPaid returns an offering at the price of one more instance: a reservation's, while any is left.
func (e *Engine) asPaid(o drover.Offering) drover.Offering {
	if o.Market != drover.OnDemand {
		return o
	}
	for _, r := range e.limits(o.Cloud).Reserved {
		if r.Type == o.Type.Name && e.reserving(r, o.Cloud) < r.Count {
			o.Price, o.Reserved = r.Price, true
		}
	}
	return o
}

// reserving returns how many instances use a reservation, or are about to.
func (e *Engine) reserving(r Reservation, cloud string) (n int) {
	for _, in := range e.fleet.All() {
		if in.Cloud == cloud && in.Market == drover.OnDemand && in.Type.Name == r.Type && in.Ended == 0 && !in.Rests() {
			n++
		}
	}
	return n
}

// usedUp reports whether an offering was planned at the price of a reservation that has been used up since.
func (e *Engine) usedUp(o drover.Offering) bool {
	was := o.Reserved
	o.Reserved = false
	return was && !e.asPaid(o).Reserved
}

// If a cloud remembers its prices, instances are billed correctly for times without a controller: a starting controller
// learns how the prices of its spot instances moved since the last recorded change. Recorded prices stay. A volume is
// billed at its current price. Later answers have the prices of spot instances whose offerings are excluded now.

// Past is the price history of an offering.
type Past struct {
	OfferingKey
	Prices []PastPrice `json:"prices"` // oldest first
}

// PastPrice is an hourly price from a time on.
type PastPrice struct {
	From  drover.Time  `json:"from"`
	Price drover.Money `json:"price"`
}

// applyPastPrices applies price histories to the spot instances of a cloud.
func (e *Engine) applyPastPrices(c *Cloud, past []Past) {
	if len(past) == 0 {
		return
	}
	for _, in := range e.fleet.All() {
		if in.Cloud != c.Name || in.Market != drover.Spot || !in.Billed() {
			continue
		}
		at := slices.IndexFunc(past, func(p Past) bool { return p.OfferingKey == KeyOf(in.Offering()) })
		if at >= 0 {
			e.applyPastPricesTo(in, past[at].Prices)
		}
	}
}

func (e *Engine) applyPastPricesTo(in *fleet.Member, prices []PastPrice) {
	tariff, since := in.Tariff(), in.PricedSince()
	o, _ := e.listedAs(in)
	for _, p := range slices.SortedStableFunc(slices.Values(prices), func(a, b PastPrice) int { return cmp.Compare(a.From, b.From) }) {
		if p.From > since && p.From < e.s.Now && p.Price >= 0 {
			o.Price = p.Price
			tariff, since = tariff.Changed(e.withVolume(o, in.Volume()).Price, p.From), p.From
		}
	}
	if len(tariff.Rates) > len(in.Rates) {
		e.setTariff(in, tariff)
	}
}
