package web

import (
	"testing"
	"time"

	"drover"
)

func TestMemoryInGiBIsRounded(t *testing.T) {
	for b, want := range map[drover.Bytes]string{drover.GiB / 2: "0.5", 64 * drover.GiB: "64", 25276026880: "23.54"} {
		if got := gib(b); got != want {
			t.Errorf("%d: %s, want %s", b, got, want)
		}
	}
}

func TestTimesOfTodayHaveNoDate(t *testing.T) {
	east, west := time.FixedZone("east", 3600), time.FixedZone("west", -5*3600)
	for _, c := range []struct {
		at, now time.Time
		want    string
	}{
		{time.Date(2026, 12, 31, 23, 29, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 30, 0, 0, east), "23:29:00"},
		{time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC), time.Date(2026, 12, 31, 21, 0, 0, 0, west), "Jan 1 01:00"},
		{time.Date(2026, 5, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 5, 3, 3, 4, 5, 0, time.UTC), "May 2 03:04"},
	} {
		if got := clock(c.at, c.now); got != c.want {
			t.Errorf("at %v: %s, want %s", c.now, got, c.want)
		}
	}
}
