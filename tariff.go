package drover

// Rate is what something cost an hour up to a time.
type Rate struct {
	Price Money `json:"price"`
	Until Time  `json:"until"`
}

// Tariff is what something costs an hour as time goes on: what the rates say, each from the end of the one before it, and Price since the
// last of them ended.
type Tariff struct {
	Rates []Rate // in the order of their ends
	Price Money
}

// Cost is what is paid from one time to another for what is paid for since begin. What it costs from a to b and from b to c adds up to
// what it costs from a to c, to the last nano-dollar: each is a difference between sums that grow from begin on.
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
		sum += r.Price.For(end.Sub(begin))
		begin = end
	}
	return sum + t.Price.For(to.Sub(begin))
}

// Changed is the tariff with another price from a time on.
func (t Tariff) Changed(price Money, at Time) Tariff {
	if price == t.Price {
		return t
	}
	rates := append([]Rate{}, t.Rates...)
	return Tariff{Rates: append(rates, Rate{t.Price, at}), Price: price}
}
