package forecast_test

import (
	"testing"
	"time"

	"drover"
	"drover/internal/engine/forecast"
)

func TestDelisting(t *testing.T) {
	f := forecast.New(forecast.Stats{})
	if _, known := f.Delisting("c"); known {
		t.Error("known without observations")
	}
	// A cloud lists destroyed instances for this long, and is listed when the forecast says and every second from then
	// on.
	lists := func(lists time.Duration) (calls int) {
		first, _ := f.Delisting("c")
		with, without := drover.Time(0), drover.Time(first)
		for calls = 1; without < drover.Time(lists); calls++ {
			with, without = without, without.Add(time.Second)
		}
		f.Delisted("c", 0, with, without, without)
		return calls
	}
	for range 20 {
		lists(30 * time.Second)
	}
	if after, _ := f.Delisting("c"); after < 25*time.Second || after > 35*time.Second {
		t.Errorf("after many delistings of 30 s, %v is expected", after)
	}
	calls := 0
	for range 20 {
		calls += lists(30 * time.Second)
	}
	if calls > 60 {
		t.Errorf("20 instances take %d lists", calls)
	}
	for range 20 {
		lists(5 * time.Second)
	}
	if after, _ := f.Delisting("c"); after > 8*time.Second {
		t.Errorf("after many delistings of 5 s, %v is expected", after)
	}
}
