package azure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

// covers C6 C10
func TestOfferings(t *testing.T) {
	t.Run("are the types with a price that the subscription may use and the image can boot on", func(t *testing.T) {
		r := newRegion()
		r.pageSize = 2
		want := []string{
			"Standard_D16s_v5 westeurope-1 on_demand $0.92 standardDSv5Family 64Gi amd64 0",
			"Standard_D16s_v5 westeurope-2 on_demand $0.92 standardDSv5Family 64Gi amd64 0",
			"Standard_D2ps_v5 westeurope-1 on_demand $0.0924 standardDPSv5Family 8Gi arm64 0",
			"Standard_D2ps_v5 westeurope-1 spot $0.0174 lowPriorityCores 8Gi arm64 0",
			"Standard_D2s_v5 westeurope-1 on_demand $0.115 standardDSv5Family 8Gi amd64 0",
			"Standard_D2s_v5 westeurope-1 spot $0.0216 lowPriorityCores 8Gi amd64 0",
			"Standard_D2s_v5 westeurope-2 on_demand $0.115 standardDSv5Family 8Gi amd64 0",
			"Standard_D2s_v5 westeurope-2 spot $0.0216 lowPriorityCores 8Gi amd64 0",
			"Standard_NC4as_T4_v3 westeurope on_demand $0.605 Standard NCASv3_T4 Family 28Gi amd64 1",
		}
		if diff := cmp.Diff(want, drivertest.Offers(t, imitate(t, r, ""))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("are unknown if the response has no types or prices", func(t *testing.T) {
		for _, call := range []string{"ListTypes", "ListPrices"} {
			for _, text := range []string{"", "{}", "null", "<html></html>"} {
				r := newRegion()
				r.garbled = map[string]string{call: text}
				if _, err := imitate(t, r, "").Offerings(t.Context()); drover.KindOf(err) != drover.KindTransient {
					t.Errorf("%s: %q: %v", call, text, err)
				}
			}
		}
	})
	t.Run("are in the configured zones, where the region stands for no particular zone", func(t *testing.T) {
		for zones, want := range map[string][]string{
			"westeurope-2": {"Standard_D16s_v5 westeurope-2", "Standard_D2s_v5 westeurope-2"},
			"westeurope":   {"Standard_D16s_v5 westeurope", "Standard_D2ps_v5 westeurope", "Standard_D2s_v5 westeurope", "Standard_NC4as_T4_v3 westeurope"},
		} {
			var got []string
			for _, o := range drivertest.Offers(t, imitate(t, newRegion(), "markets: [on_demand], zones: ["+zones+"]")) {
				got = append(got, strings.Join(strings.Fields(o)[:2], " "))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", zones, diff)
			}
		}
	})
	t.Run("are first-generation types for a first-generation image", func(t *testing.T) {
		if got := strings.Join(drivertest.Offers(t, imitate(t, newRegion(), "generation: 1")), "\n"); !strings.Contains(got, "Standard_A1_v2") || strings.Contains(got, "D2ps") {
			t.Error(got)
		}
	})
	t.Run("include the price of the additional disks, and have the root volume's price per GiB", func(t *testing.T) {
		const ssd, zrs, premium = 11_000_000_000 / 128 / 730, 14_400_000_000 / 128 / 730, 19_710_000_000 / 128 / 730
		hand := ", list_types: false, types: [{name: s, vcpus: 1, memory: 1Gi, price: 1}]"
		for keys, want := range map[string]string{
			"": fmt.Sprint(92_400_000, " ", ssd), ", volume: {type: Premium_LRS}": fmt.Sprint(92_400_000, " ", premium), ", volume: {type: PremiumV2_LRS}": "92400000 0",
			", volume: {price: 0.0073}": "92400000 10000",
			", volumes: [{size: 10Gi, type: StandardSSD_ZRS}, {size: 1Gi, price: 73}]": fmt.Sprint(92_400_000+10*zrs+100_000_000, " ", ssd),
			hand: "1000000000 0", hand + ", volume: {price: 0.0073}": "1000000000 10000",
		} {
			found, err := imitate(t, newRegion(), "zones: [westeurope-1], markets: [on_demand]"+keys).Offerings(t.Context())
			if err != nil || len(found) == 0 {
				t.Fatalf("%s: %v", keys, err)
			}
			o := found[min(1, len(found)-1)] // Standard_D2ps_v5, or the configured one
			if got := fmt.Sprint(int64(o.Price), " ", int64(o.DiskPrice)); got != want {
				t.Errorf("%s: %s, want %s", keys, got, want)
			}
		}
	})
	t.Run("configured types are added to Azure's or replace them", func(t *testing.T) {
		hand := "zones: [westeurope-1], markets: [on_demand], types: [{name: Standard_D2s_v5, vcpus: 2, memory: 7Gi, price: 0.07}, {name: big, provider_type: Standard_D16s_v5, vcpus: 16, memory: 60Gi, price: 50}]"
		got := strings.Join(drivertest.Offers(t, imitate(t, newRegion(), hand)), "\n")
		for _, want := range []string{"big westeurope-1 on_demand $50 standardDSv5Family", "Standard_D2s_v5 westeurope-1 on_demand $0.07 standardDSv5Family 7Gi", "D2ps"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		r := newRegion()
		if got := drivertest.Offers(t, imitate(t, r, hand+", list_types: false")); len(got) != 2 || len(r.calls) > 0 {
			t.Errorf("%v after %v", got, r.calls)
		}
	})
}

func TestPrices(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	enter := func(items ...priceItem) map[drover.Market]drover.Money {
		all, since := priceList{}, map[string]time.Time{}
		for _, i := range items {
			i.Type, i.Unit = "t", "1 Hour"
			price, err := dollars(i.Price)
			drivertest.Must(t, err)
			i.enter(all, since, price)
		}
		return all["t"]
	}
	t.Run("the latest price in force counts, and of several the highest", func(t *testing.T) {
		got := enter(priceItem{Price: 3, From: now.AddDate(-2, 0, 0)}, priceItem{Price: 1, From: now.AddDate(-1, 0, 0)}, priceItem{Price: 1.5, From: now.AddDate(-1, 0, 0)},
			priceItem{Price: 2, From: now.AddDate(-2, 0, 0)}, priceItem{SKU: "T Spot", Price: 0.0000001, From: now})
		if diff := cmp.Diff(map[drover.Market]drover.Money{drover.OnDemand: drover.Dollar * 3 / 2, drover.Spot: 100}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a next page at another address is refused", func(t *testing.T) {
		c := imitate(t, newRegion(), "")
		if _, err := c.pricePage(t.Context(), "https://example.com/api/retail/prices?"); err == nil {
			t.Error("the address was accepted")
		}
	})
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, folder := newRegion(), t.TempDir()
		first := drivertest.Offers(t, imitateIn(t, r, "", folder))
		drivertest.Create(t, imitateIn(t, r, "", folder), request("one"))
		files, _ := filepath.Glob(folder + "/*.json")
		if len(files) != 5 {
			t.Errorf("cached: %v", files)
		}

		// A restart a few hours later makes no calls; later calls fetch only what has expired.
		time.Sleep(7 * time.Hour)
		clear(r.calls)
		c := imitateIn(t, r, "", folder)
		if diff := cmp.Diff(first, drivertest.Offers(t, c)); diff != "" || len(r.calls) > 0 {
			t.Errorf("a restart made the calls %v: %s", r.calls, diff)
		}
		r.prices[2].Price = 0.05
		if got := strings.Join(drivertest.Offers(t, c), "\n"); !strings.Contains(got, "Standard_D2s_v5 westeurope-1 spot $0.05 ") || r.calls["ListTypes"] > 0 {
			t.Errorf("%s\nafter %v", got, r.calls)
		}

		// If data cannot be fetched, the cached data still counts; with nothing cached it is an error.
		time.Sleep(7 * time.Hour)
		r.broken["ListPrices"], r.broken["ListTypes"] = wrong{status: 500}, wrong{status: 500}
		drivertest.Offers(t, c)
		if _, err := imitate(t, r, "").Offerings(t.Context()); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}

		// Another subscription's cache is not used.
		o := options(t, "fleet", "", folder)
		o.Decode = drivertest.Options(t, "azure", "azure", "fleet", strings.Replace(place, "sub,", "sub2,", 1), folder).Decode
		other, err := open(t.Context(), o, outside{transport: r})
		drivertest.Must(t, err)
		if _, err := other.Offerings(t.Context()); err == nil {
			t.Error("another subscription's cache was used")
		}
	})
}

// covers C1 C11 K14
func TestOpen(t *testing.T) {
	t.Run("an invalid configuration is refused", func(t *testing.T) {
		for _, keys := range []string{
			place + ", markets: [reserved]", place + ", tags: {drover-fleet: x}", place + ", tags: {'a/b': x}", place + ", volumes: [{type: x}]", place + ", list_types: false",
			place + ", subnet_id: x", place + ", zones: [northeurope-1]", place + ", zones: [westeurope-x]", place + ", environment: mars", place + ", admin_user: root",
			strings.Replace(place, "sub,", "'',", 1), strings.Replace(place, "westeurope", "West Europe", 1), strings.Replace(place, "group,", "'',", 1), strings.Replace(place, "net/default", "net", 1),
		} {
			o := options(t, "fleet", "", t.TempDir())
			o.Decode = drivertest.Options(t, "azure", "azure", "fleet", keys, t.TempDir()).Decode
			if _, err := open(t.Context(), o, outside{transport: newRegion()}); drover.KindOf(err) != drover.KindInvalid {
				t.Errorf("%s: %v", keys, err)
			}
		}
	})
	t.Run("the subscription defaults to the Azure tools' choice", func(t *testing.T) {
		o := options(t, "fleet", "", t.TempDir())
		o.Decode = drivertest.Options(t, "azure", "azure", "fleet", strings.Replace(place, "sub,", "'',", 1), "").Decode
		profile := "\ufeff" + `{"subscriptions": [{"id": "other"}, {"id": "mine", "isDefault": true}]}`
		drivertest.Must(t, os.WriteFile(filepath.Join(o.Folder, "azureProfile.json"), []byte(profile), 0o600))
		c, err := open(t.Context(), o, outside{transport: newRegion()})
		if err != nil || c.Capabilities().Project != "mine" {
			t.Errorf("%v, %v", c, err)
		}
	})
	t.Run("a fleet name that makes invalid instance names is refused", func(t *testing.T) {
		o := options(t, "fleet", "", t.TempDir())
		for _, fleet := range []string{"", "a b", strings.Repeat("a", 41)} {
			if o.Fleet = fleet; drover.KindOf(func() error { _, err := Open(t.Context(), o); return err }()) != drover.KindInvalid {
				t.Errorf("%q was accepted", fleet)
			}
		}
	})
	t.Run("disks cannot grow, since Azure does not grow a system disk in use", func(t *testing.T) {
		c, err := open(t.Context(), options(t, "fleet", "markets: [spot]", t.TempDir()), outside{transport: newRegion()})
		drivertest.Must(t, err)
		if _, can := driver.As[driver.DiskGrower](c); can || c.Capabilities().GrowDisk {
			t.Error("the cloud can grow disks")
		}
	})
	t.Run("makes no call, and needs no credentials yet", func(t *testing.T) {
		r := newRegion()
		c, err := open(t.Context(), options(t, "fleet", "", t.TempDir()), outside{transport: r})
		if err != nil || len(r.calls) > 0 {
			t.Fatalf("%v %v", err, r.calls)
		}
		if got := c.Capabilities(); got.PowerOff != driver.PowerOffStops || got.Project != "sub" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("calls are counted", func(t *testing.T) {
		r, count := newRegion(), map[string]int{}
		c := imitate(t, r, "")
		c.api.gate.Metric = func(call string, err error) { count[call]++ }
		drivertest.Create(t, c, request("one"))
		drivertest.Listed(t, c)
		if diff := cmp.Diff(r.calls, count); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nobody else can read the cache", func(t *testing.T) {
		folder := t.TempDir()
		drivertest.Offers(t, imitateIn(t, newRegion(), "", folder))
		if info, err := os.Stat(folder + "/types.json"); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	})
}
