package azure

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
)

// past returns a price history as short lines.
func past(t *testing.T, c *cloud, kind string, m drover.Market, since time.Time) (all []string) {
	t.Helper()
	found, err := c.PriceHistory(t.Context(), kind, "westeurope-1", m, drover.TimeOf(since))
	drivertest.Must(t, err)
	for _, p := range found {
		all = append(all, fmt.Sprint(p.From.Std().UTC().Format(time.DateOnly), " ", p.Price))
	}
	return all
}

func day(text string) time.Time {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return at
}

// covers C6
func TestPriceHistory(t *testing.T) {
	long := day("2025-12-01")
	t.Run("shows each of Azure's spot price changes once, newest first, down to the price in force at the start", func(t *testing.T) {
		r := newRegion()
		r.pageSize = 2
		c := imitate(t, r, "")
		for since, want := range map[time.Time][]string{
			long: {"2026-02-01 $0.0216", "2026-01-01 $0.0300"}, day("2026-01-15"): {"2026-02-01 $0.0216", "2026-01-01 $0.0300"}, day("2026-02-01"): {"2026-02-01 $0.0216"},
		} {
			if diff := cmp.Diff(want, past(t, c, "Standard_D2s_v5", drover.Spot, since)); diff != "" {
				t.Errorf("since %s: %s", since, diff)
			}
		}
		if r.calls["Query"] != 3 {
			t.Errorf("%d queries for three pages", r.calls["Query"])
		}
	})
	t.Run("includes volumes at their current price", func(t *testing.T) {
		c := imitate(t, newRegion(), "volumes: [{size: 1Gi, price: 73}]")
		if diff := cmp.Diff([]string{"2026-02-01 $0.1216", "2026-01-01 $0.1300"}, past(t, c, "Standard_D2s_v5", drover.Spot, long)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("leaves out future prices", func(t *testing.T) {
		r := newRegion()
		r.spots = []any{row("standard_d2s_v5", "", "9 "+time.Now().AddDate(30, 0, 0).Format(time.RFC3339), "0.03 2026-01-01T00:00:00Z")}
		if diff := cmp.Diff([]string{"2026-01-01 $0.0300"}, past(t, imitate(t, r, ""), "Standard_D2s_v5", drover.Spot, long)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("is the listed price on demand, for configured types, and if Azure has no history", func(t *testing.T) {
		hand := "types: [{name: big, provider_type: Standard_D2s_v5, vcpus: 2, memory: 8Gi, price: 0.5, spot_price: 0.25}], list_types: false, zones: [westeurope-1]"
		r := newRegion()
		r.spots = []any{row("standard_d2s_v5", "0-5")}
		for _, c := range []struct {
			keys, kind string
			m          drover.Market
			want       string
		}{
			{"", "Standard_D2s_v5", drover.OnDemand, "$0.1150"}, {"", "Standard_D2s_v5", drover.Spot, "$0.0216"}, {hand, "Standard_D2s_v5", drover.Spot, "$0.2500"},
		} {
			if diff := cmp.Diff([]string{"2025-12-01 " + c.want}, past(t, imitate(t, r, c.keys), c.kind, c.m, long)); diff != "" {
				t.Errorf("%s %s: %s", c.kind, c.m, diff)
			}
		}
	})
	t.Run("does not exist for an unknown type", func(t *testing.T) {
		if _, err := imitate(t, newRegion(), "").PriceHistory(t.Context(), "x", "westeurope-1", drover.Spot, 1); drover.KindOf(err) != drover.KindNotFound {
			t.Error(err)
		}
	})
	t.Run("is fetched again after an hour, even by a controller that has just started", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, folder := newRegion(), t.TempDir()
			r.spots = []any{row("standard_d2s_v5", "", "0.03 1999-12-01T00:00:00Z")}
			drivertest.Offers(t, imitateIn(t, r, "", folder))
			time.Sleep(2 * time.Hour)
			r.spots = []any{row("standard_d2s_v5", "", "0.04 2000-01-01T01:00:00Z", "0.03 1999-12-01T00:00:00Z")}
			c := imitateIn(t, r, "", folder)
			drivertest.Offers(t, c)
			if got := past(t, c, "Standard_D2s_v5", drover.Spot, day("1999-12-31")); len(got) != 2 || r.calls["Query"] != 2 {
				t.Errorf("%v after %d queries", got, r.calls["Query"])
			}
		})
	})
}

func TestInterruptions(t *testing.T) {
	rates := func(keys string) (all []string) {
		found, err := imitate(t, newRegion(), keys).Offerings(t.Context())
		drivertest.Must(t, err)
		for _, o := range found {
			if o.Interruptions != 0 {
				all = append(all, fmt.Sprint(o.Type.Name, " ", o.Zone, " ", o.Market, " ", o.Interruptions))
			}
		}
		return all
	}
	t.Run("are the middle of Azure's range, per million hours, on spot in all zones", func(t *testing.T) {
		want := []string{"Standard_D2ps_v5 westeurope-1 spot 200000", "Standard_D2s_v5 westeurope-1 spot 25000", "Standard_D2s_v5 westeurope-2 spot 25000"}
		if diff := cmp.Diff(want, rates("")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("are not queried if the spot market is not configured", func(t *testing.T) {
		r := newRegion()
		drivertest.Offers(t, imitate(t, r, "markets: [on_demand]"))
		if r.calls["Query"] != 0 {
			t.Errorf("%d queries", r.calls["Query"])
		}
	})
}

func TestWithoutTheGraph(t *testing.T) {
	denied := wrong{status: http.StatusForbidden, code: "AccessDenied", message: "denied"}
	for name, spoil := range map[string]func(*region){
		"the credentials may not query it":  func(r *region) { r.broken["Query"] = denied },
		"the credentials see nothing of it": func(r *region) { r.spots = nil },
		"its answer cannot be read":         func(r *region) { r.spots = []any{row("standard_d2s_v5", "", "0.03 yesterday")} },
		"it does not answer":                func(r *region) { r.slow = "Query" },
	} {
		t.Run(name+": offerings come without its data, and one warning is logged", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRegion()
				spoil(r)
				var log bytes.Buffer
				o := options(t, "fleet", "", t.TempDir())
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				opened, err := open(t.Context(), o, outside{r, &azfake.TokenCredential{}})
				drivertest.Must(t, err)
				c := opened.(*cloud)
				if got := drivertest.Offers(t, c); len(got) != 9 {
					t.Error(got)
				}
				if r.calls["Query"] > 1 {
					t.Errorf("%d queries", r.calls["Query"])
				}
				want := []string{"1999-12-01 $0.0216"}
				if diff := cmp.Diff(want, past(t, c, "Standard_D2s_v5", drover.Spot, day("1999-12-01"))); diff != "" {
					t.Error(diff)
				}
				if warnings := strings.Count(log.String(), "level=WARN"); warnings != 1 {
					t.Errorf("%d warnings: %s", warnings, &log)
				}
			})
		})
	}
	t.Run("a truncated answer is an error", func(t *testing.T) {
		r := newRegion()
		r.cutShort = true
		if _, err := imitate(t, r, "").fetchSpots(t.Context()); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Error(err)
		}
	})
}
