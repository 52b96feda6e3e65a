package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// What an instance costs an hour is what its cloud's list says of others like it or, on demand, what the operator has committed to: a
// reservation is filled by the oldest. Either may change while it runs; from when that is known, its bill goes on at the new price.

// Reservation is a commitment: so many instances of a type on demand, the first that run, cost this price, whatever the list says.
type Reservation struct {
	Type  string       `json:"type"`
	Count int          `json:"count"`
	Price drover.Money `json:"price"` // an hour, of each
}

// rerate gives every instance that is paid the price that holds for it now, if any may have changed.
func (e *Engine) rerate() {
	if !e.needsPricing {
		return
	}
	e.needsPricing = false
	for _, c := range e.clouds {
		e.rate(c)
	}
}

// rate gives the instances of one cloud their prices. One of which nothing is said any more costs what it did.
func (e *Engine) rate(c *Cloud) {
	left := slices.Clone(e.limits(c.Name).Reserved)
	for _, in := range e.fleet.All() {
		by := fleet.Rate{Revision: e.market.Revision(), Zone: in.Zone, Type: in.Type.Name, Market: in.Market, Volume: in.Volume()}
		if in.Cloud != c.Name || in.Created == 0 || in.Ended != 0 || in.Rated == by && len(left) == 0 {
			continue
		}
		if in.Rests() {
			e.rateStopped(c, in)
			continue
		}
		in.Rated = by
		if price, reserved := take(left, in); reserved {
			e.reprice(in, price)
		} else if o, listed := c.Find(keyOf(in)); listed {
			e.reprice(in, e.withVolume(o, in.Volume()).Price)
		}
	}
}

// rateStopped gives a stopped instance its price, and has its record say what it would cost now if it ran, by which the one to be started is chosen.
func (e *Engine) rateStopped(c *Cloud, in *fleet.Member) {
	o, listed := c.Find(keyOf(in))
	if !listed {
		return
	}
	e.reprice(in, volumePrice(o, in.Volume()))
	if price := e.asPaid(e.withVolume(o, in.Volume())).Price; price != in.RunPrice {
		in.RunPrice = price
		e.fleet.Moved()
		e.writeInstance(in)
	}
}

// withVolume is an offering at what it costs with a disk of this size. A volume of the usual size is in its price already, as is a disk that comes
// with the type.
func (e *Engine) withVolume(o drover.Offering, disk drover.Bytes) drover.Offering {
	if o.Type.Resources.Disk != 0 {
		return o
	}
	return o.WithVolume(disk - e.limits(o.Cloud).Disk)
}

// take takes the instance's part of what is left of the reservations, and returns what it costs then.
func take(left []Reservation, in *fleet.Member) (price drover.Money, reserved bool) {
	for i := range left {
		if in.Market == drover.OnDemand && left[i].Type == in.Type.Name && left[i].Count > 0 {
			left[i].Count--
			return left[i].Price, true
		}
	}
	return 0, false
}

// reprice has an instance cost another price from now on.
func (e *Engine) reprice(in *fleet.Member, price drover.Money) {
	if price == in.Price {
		return
	}
	tariff := in.Tariff().Changed(price, e.s.Now)
	if e.s.Now == in.Created {
		tariff.Rates = nil // nothing is paid at the price that it was planned with
	}
	tariff = tariff.Folded(in.Created, e.marks(in)...)
	in.Rates, in.Price = tariff.Rates, tariff.Price
	e.fleet.Moved()
	e.writeInstance(in)
	e.touch(in)
}

// marks are the times between which it matters to the nano-dollar what an instance has cost: the beginnings of the windows in which money is
// counted, of late also those that are over, and what attempts that live have of it.
func (e *Engine) marks(in *fleet.Member) []drover.Time {
	marks := append(budget.Begins(e.s.Now), in.Ready)
	for _, a := range in.Load {
		marks = append(marks, a.Started, a.Ended)
	}
	return marks
}

// unreserve has the reservation that an instance may have filled be filled by another, now that it is paid no more.
func (e *Engine) unreserve(in *fleet.Member) {
	e.needsPricing = e.needsPricing || slices.ContainsFunc(e.limits(in.Cloud).Reserved, func(r Reservation) bool { return r.Type == in.Type.Name })
}

// asPaid is an offering at the price that one more instance of it would cost: a reservation's, while that has any left.
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

// reserving is how many instances fill a reservation, or are about to.
func (e *Engine) reserving(r Reservation, cloud string) (n int) {
	for _, in := range e.fleet.All() {
		if in.Cloud == cloud && in.Market == drover.OnDemand && in.Type.Name == r.Type && in.Ended == 0 && !in.Rests() {
			n++
		}
	}
	return n
}

// overtaken reports whether an offering was planned with at a reservation's price that has been used up since.
func (e *Engine) overtaken(o drover.Offering) bool {
	was := o.Reserved
	o.Reserved = false
	return was && !e.asPaid(o).Reserved
}

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
