package engine

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine/budget"
)

// The price changes every five minutes for forty days, more often than any real one.
func TestInstanceKeepsFewRatesDespiteManyPriceChanges(t *testing.T) {
	h := newHerd(t, size{instances: 1, jobs: 1, shapes: 1}, Settings{})
	in := h.e.fleet.All()[0]
	h.e.s.Settings.Clouds[0].OffersInterval, h.e.clouds[0].NextOffer = 5*time.Minute, h.now
	type stretch struct {
		from  drover.Time
		price drover.Money
	}
	paid := []stretch{{in.Created, in.Price}}
	for n := range 40 * 24 * 12 {
		h.now = h.now.Add(5 * time.Minute)
		for _, f := range h.decide(Ticked{}).Effects {
			if f.ListOfferings == nil {
				continue
			}
			offers := herdTypes()
			for i := range offers {
				offers[i].Price += drover.Money(h.dice.IntN(1e9))
			}
			h.decide(Offered{Effect: f.ID, Cloud: "c", Offerings: offers, Hash: fmt.Sprint(n)})
			paid = append(paid, stretch{h.now, in.Price})
		}
	}
	if len(paid) < 10_000 {
		t.Fatalf("the price moved only %d times", len(paid))
	}
	if n := len(in.Rates); n > 150 {
		t.Errorf("the instance has %d rates after %d", n, len(paid))
	}
	cost := func(from drover.Time) (sum drover.Money) {
		for i, s := range paid {
			to := h.now
			if i+1 < len(paid) {
				to = paid[i+1].from
			}
			if to > from {
				sum += s.price.For(to.Sub(max(from, s.from)))
			}
		}
		return sum
	}
	if got, want := h.e.accrued(in), cost(in.Created); got != want {
		t.Errorf("the instance cost %d, but %d was paid", got, want)
	}
	for _, day := range budget.Begins(h.now) {
		// A rate that spans the start of a window is rounded down to nano-dollars twice.
		if got, want := in.Tariff().Cost(in.Created, day, h.now), cost(day); got < want || got > want+1 {
			t.Errorf("from %v on the instance cost %d, but %d was paid", day, got, want)
		}
	}
}

func TestAnInstanceWhoseOfferingIsExcludedNowIsBilledAtItsPrice(t *testing.T) {
	h := newHerd(t, size{instances: 1, jobs: 1, shapes: 1}, Settings{})
	in := h.e.fleet.All()[0]
	in.Market, h.e.clouds[0].NextOffer = drover.Spot, h.now
	was, moved := in.Price, h.now.Add(time.Minute)
	for _, f := range h.decide(Ticked{}).Effects {
		if f.ListOfferings != nil {
			h.now = moved.Add(time.Second)
			h.decide(Offered{Effect: f.ID, Cloud: "c", Hash: "none", Past: []Past{{keyOf(in), []PastPrice{{moved, 3 * was}}}}})
		}
	}
	if in.Price != 3*was || len(in.Rates) != 1 || in.Rates[0].Until != moved {
		t.Errorf("it costs %v after %+v, want %v from %v on", in.Price, in.Rates, 3*was, moved)
	}
}
