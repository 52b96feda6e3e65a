package gce

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
)

// covers C6
func TestPriceHistory(t *testing.T) {
	const spot, before = drover.Money(23_540_000), 2 * drover.Money(23_540_000)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, time.January, 1, 6, 0, 0, 0, time.UTC))) // still December in Los Angeles
		f := newFake()
		c := imitate(t, f, "zones: [us-central1-a], types: [{name: mine, provider_type: m3-ultramem-128, vcpus: 128, memory: 3904Gi, price: 20}]")
		now := time.Now()
		at := func(ago time.Duration) drover.Time { return drover.TimeOf(now.Add(-ago)) }
		december := drover.TimeOf(time.Date(2025, time.December, 1, 8, 0, 0, 0, time.UTC))
		september := drover.TimeOf(time.Date(2025, time.September, 1, 7, 0, 0, 0, time.UTC))
		for name, c2 := range map[string]struct {
			kind   string
			market drover.Market
			since  drover.Time
			want   []driver.PricePoint
		}{
			"returns the price in force and later ones, newest first": {"n2-standard-2", drover.Spot, at(24 * time.Hour), []driver.PricePoint{{From: at(halved), Price: spot}, {From: december, Price: before}}},
			"omits a price no longer in force":                        {"n2-standard-2", drover.Spot, at(time.Hour), []driver.PricePoint{{From: at(halved), Price: spot}}},
			"goes back a few months at most":                          {"n2-standard-2", drover.Spot, 0, []driver.PricePoint{{From: at(halved), Price: spot}, {From: september, Price: before}}},
			"has on-demand prices, too":                               {"n2-standard-2", drover.OnDemand, at(time.Hour), []driver.PricePoint{{From: at(halved), Price: 97_118_000}}},
			"is the configured price for a configured type":           {"m3-ultramem-128", drover.OnDemand, 7, []driver.PricePoint{{From: 7, Price: 20 * drover.Dollar}}},
		} {
			got, err := c.PriceHistory(t.Context(), c2.kind, "us-central1-a", c2.market, c2.since)
			if diff := cmp.Diff(c2.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, %s", name, err, diff)
			}
		}
		if _, err := c.PriceHistory(t.Context(), "n2-standard-2", "nowhere", drover.Spot, 0); drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("a zone without the offering: %v", err)
		}
		asked := f.calls["cloudbilling.services.skus.list"]
		if _, err := c.PriceHistory(t.Context(), "e2-standard-4", "us-central1-a", drover.OnDemand, at(24*time.Hour)); err != nil || f.calls["cloudbilling.services.skus.list"] != asked {
			t.Errorf("cached history was fetched again: %v", err)
		}
	})
}

// TestMonthOf compares monthOf with Los Angeles time.
func TestMonthOf(t *testing.T) {
	there, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Skip("no time zones are installed")
	}
	for at := time.Date(2024, 1, 1, 0, 30, 0, 0, time.UTC); at.Year() < 2027; at = at.Add(time.Hour) {
		local := at.In(there)
		if want := time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, there); !monthOf(at).Equal(want) {
			t.Fatalf("the month of %v begins at %v, not at %v", at, monthOf(at), want)
		}
	}
}
