package drover

import "slices"

// Rate is what something cost an hour up to a time.
type Rate struct {
	Price Money `json:"price"`
	Until Time  `json:"until"`

	// Of several that were folded into one:
	Since Time  `json:"since,omitempty"` // when the first of them began
	Paid  Money `json:"paid,omitempty"`  // what was paid from then until its end
}

// Tariff is what something costs an hour as time goes on: what the rates say, each from the end of the one before it,
// and Price since the last of them ended.
type Tariff struct {
	Rates []Rate // in the order of their ends
	Price Money
}

// Cost is what is paid from one time to another for what is paid for since begin. What it costs from a to b and from b
// to c adds up to what it costs from a to c, to the last nano-dollar: each is a difference between sums that grow from
// begin on.
func (t Tariff) Cost(begin, from, to Time) Money {
	return t.paid(begin, max(begin, to)) - t.paid(begin, max(begin, min(from, to)))
}

// paid is the sum that has grown up to a time.
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

// cost is what is paid in a stretch within the rate. Of a folded one that is its part of the whole, by time.
func (r Rate) cost(from, to Time) Money {
	if r.Since == 0 {
		return r.Price.For(to.Sub(from))
	}
	return r.grown(to) - r.grown(from)
}

func (r Rate) grown(to Time) Money {
	return r.Paid.Part(int64(max(r.Since, to).Sub(r.Since)), int64(r.Until.Sub(r.Since)))
}

// Changed is the tariff with another price from a time on.
func (t Tariff) Changed(price Money, at Time) Tariff {
	if price == t.Price {
		return t
	}
	rates := append([]Rate{}, t.Rates...)
	return Tariff{Rates: append(rates, Rate{Price: t.Price, Until: at}), Price: price}
}

// Folded is the tariff of what is paid for since begin with fewer rates, at most two for each mark and one more:
// neighbours between whose outer ends there is no mark become one. Between any two of begin, the marks and what comes
// after the last rate it costs what it did, to the last nano-dollar.
func (t Tariff) Folded(begin Time, marks ...Time) Tariff {
	var kept []Rate
	last := begin // when the last of those kept began
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
