package drover

import "slices"

// Rate is a past hourly price.
type Rate struct {
	Price Money `json:"price"`
	Until Time  `json:"until"`

	// If several rates were folded into one:
	Since Time  `json:"since,omitempty"` // start of the first
	Paid  Money `json:"paid,omitempty"`  // what was paid from then until Until
}

// Tariff is an hourly price that changes over time: each rate applies from the end of the one before it, and Price
// applies after the last.
type Tariff struct {
	Rates []Rate // in order of Until
	Price Money
}

// Cost returns what is paid from one time to another for something that is paid for since begin. The costs of
// consecutive periods add up to that of the whole, to the nano-dollar: each is a difference of totals since begin.
func (t Tariff) Cost(begin, from, to Time) Money {
	return t.paid(begin, max(begin, to)) - t.paid(begin, max(begin, min(from, to)))
}

// paid returns the total from begin to a time.
func (t Tariff) paid(begin, to Time) (sum Money) {
	for _, r := range t.Rates {
		end := min(r.Until, to)
		if end <= begin {
			continue
		}
		sum += r.cost(begin, end)
		begin = end
	}
	return sum + t.Price.For(to.Sub(begin))
}

// cost returns what is paid in a period within the rate. If the rate is folded, that is the period's share of Paid, by
// time.
func (r Rate) cost(from, to Time) Money {
	if r.Since == 0 {
		return r.Price.For(to.Sub(from))
	}
	return r.grown(to) - r.grown(from)
}

func (r Rate) grown(to Time) Money {
	return r.Paid.Part(int64(max(r.Since, to).Sub(r.Since)), int64(r.Until.Sub(r.Since)))
}

// Changed returns the tariff with another price from a time on.
func (t Tariff) Changed(price Money, at Time) Tariff {
	if price == t.Price {
		return t
	}
	rates := append([]Rate{}, t.Rates...)
	return Tariff{Rates: append(rates, Rate{Price: t.Price, Until: at}), Price: price}
}

// Folded returns the tariff of something paid for since begin with fewer rates, at most two per mark and one more: it
// merges neighbouring rates without a mark between their outer ends. The costs between any two of begin, the marks and
// times after the last rate are unchanged, to the nano-dollar.
func (t Tariff) Folded(begin Time, marks ...Time) Tariff {
	var kept []Rate
	last := begin // start of the last rate kept
	for since, rates := begin, t.Rates; len(rates) > 0; rates = rates[1:] {
		r, n := rates[0], len(kept)
		within := func(mark Time) bool { return last < mark && mark < r.Until }
		switch {
		case r.Until <= since:
			continue
		case n > 0 && !slices.ContainsFunc(marks, within):
			paid := kept[n-1].cost(last, since) + r.cost(since, r.Until)
			kept[n-1] = Rate{Since: last, Until: r.Until, Paid: paid}
		default:
			kept, last = append(kept, r), since
		}
		since = r.Until
	}
	return Tariff{Rates: kept, Price: t.Price}
}
