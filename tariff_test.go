package drover_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"drover"
)

func TestTariff(t *testing.T) {
	const begin = drover.Time(1e18)
	at := func(minutes int) drover.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	moved := drover.Tariff{Price: 60 * drover.Dollar}.Changed(120*drover.Dollar, at(10)).Changed(30*drover.Dollar, at(20))
	t.Run("each price counts for as long as it held", func(t *testing.T) {
		for _, c := range []struct {
			from, to int
			dollars  drover.Money
		}{{0, 10, 10}, {0, 20, 30}, {0, 30, 35}, {5, 15, 15}, {15, 40, 20}, {-5, 10, 10}, {10, 5, 0}, {-9, -5, 0}} {
			if got := moved.Cost(begin, at(c.from), at(c.to)); got != c.dollars*drover.Dollar {
				t.Errorf("from minute %d to %d: %v, want %v", c.from, c.to, got, c.dollars*drover.Dollar)
			}
		}
	})
	t.Run("a price that stays is no change", func(t *testing.T) {
		if same := moved.Changed(30*drover.Dollar, at(50)); len(same.Rates) != 2 {
			t.Errorf("it has the rates %v", same.Rates)
		}
	})
	t.Run("parts add up to the whole", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			tariff := drover.Tariff{Price: drover.Money(rapid.Int64Range(0, 1e11).Draw(rt, "price"))}
			now := begin
			for range rapid.IntRange(0, 5).Draw(rt, "changes") {
				now = now.Add(time.Duration(rapid.Int64Range(0, 1e13).Draw(rt, "while")))
				tariff = tariff.Changed(drover.Money(rapid.Int64Range(0, 1e11).Draw(rt, "price")), now)
			}
			moment := rapid.Int64Range(int64(begin)-1e12, int64(now)+1e13)
			a, b, c := drover.Time(moment.Draw(rt, "a")), drover.Time(moment.Draw(rt, "b")), drover.Time(moment.Draw(rt, "c"))
			a, b, c = min(a, b, c), a+b+c-min(a, b, c)-max(a, b, c), max(a, b, c)
			if whole, parts := tariff.Cost(begin, a, c), tariff.Cost(begin, a, b)+tariff.Cost(begin, b, c); whole != parts {
				rt.Errorf("the whole costs %d, and the parts %d", whole, parts)
			}
		})
	})
}
