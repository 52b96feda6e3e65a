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
	t.Run("each price counts for as long as it applied", func(t *testing.T) {
		for _, c := range []struct {
			from, to int
			dollars  drover.Money
		}{{0, 10, 10}, {0, 20, 30}, {0, 30, 35}, {5, 15, 15}, {15, 40, 20}, {-5, 10, 10}, {10, 5, 0}, {-9, -5, 0}} {
			if got := moved.Cost(begin, at(c.from), at(c.to)); got != c.dollars*drover.Dollar {
				t.Errorf("from minute %d to %d: %v, want %v", c.from, c.to, got, c.dollars*drover.Dollar)
			}
		}
	})
	t.Run("an equal price adds no rate", func(t *testing.T) {
		if same := moved.Changed(30*drover.Dollar, at(50)); len(same.Rates) != 2 {
			t.Errorf("it has the rates %v", same.Rates)
		}
	})
	t.Run("a folded tariff costs the same between marks, with few rates", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			price := func() drover.Money { return drover.Money(rapid.Int64Range(0, 1e11).Draw(rt, "price")) }
			tariff, now := drover.Tariff{Price: price()}, begin
			for range rapid.IntRange(0, 9).Draw(rt, "changes") {
				now = now.Add(time.Duration(rapid.Int64Range(0, 1e13).Draw(rt, "while")))
				tariff = tariff.Changed(price(), now)
				if rapid.Bool().Draw(rt, "marked") {
					marks := []drover.Time{now - drover.Time(rapid.Int64Range(0, 1e13).Draw(rt, "before"))}
					if folded := tariff.Folded(begin, marks...); len(folded.Rates) > 3 {
						rt.Errorf("there are %d rates", len(folded.Rates))
					} else if a, b := begin, marks[0]; folded.Cost(begin, a, b) != tariff.Cost(begin, a, b) || folded.Cost(begin, b, now+7) != tariff.Cost(begin, b, now+7) {
						rt.Errorf("%+v does not cost the same as %+v", folded, tariff)
					} else {
						tariff = folded.Folded(begin, marks...)
					}
				}
			}
			middle := begin + (now-begin)/3
			if whole, parts := tariff.Cost(begin, begin, now), tariff.Cost(begin, begin, middle)+tariff.Cost(begin, middle, now); whole != parts {
				rt.Errorf("the whole costs %d, and the parts %d", whole, parts)
			}
		})
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
