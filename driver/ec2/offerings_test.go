package ec2

import (
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
	t.Run("are the types with a price, in the zones with a subnet", func(t *testing.T) {
		f := newFake()
		f.pageSize = 2
		want := []string{
			"c7i.4xlarge us-east-1a on_demand $0.714 L-1216C47A 32Gi amd64 0",
			"g6.xlarge us-east-1a on_demand $0.8048 L-DB2E81BA 16Gi amd64 1",
			"m7g.large us-east-1a on_demand $0.0816 L-1216C47A 8Gi arm64 0",
			"m7g.large us-east-1a spot $0.025 L-34B43A08 8Gi arm64 0",
			"m7i.large us-east-1a on_demand $0.1008 L-1216C47A 8Gi amd64 0",
			"m7i.large us-east-1a spot $0.0312 L-34B43A08 8Gi amd64 0",
		}
		if diff := cmp.Diff(want, drivertest.Offers(t, imitate(t, f, "zones: [us-east-1a]"))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("include the price of the additional volumes, and have the root volume's price per GiB", func(t *testing.T) {
		keys := "zones: [us-east-1a], markets: [on_demand], list_types: false, types: [{name: s, vcpus: 1, memory: 1Gi, price: 1}], "
		for volumes, want := range map[string]drover.Offering{
			"tags: {}":              {Price: drover.Dollar, DiskPrice: 80_000_000 / 730},
			"volume: {type: io2}":   {Price: drover.Dollar, DiskPrice: 125_000_000 / 730},
			"volume: {price: 0.73}": {Price: drover.Dollar, DiskPrice: drover.Dollar / 1000},
			"volumes: [{device: /dev/sdf, size: 10Gi, price: 0.73}, {device: /dev/sdg, size: 2Gi, type: sc1}]": {
				Price: drover.Dollar + drover.Dollar/100 + 2*(15_000_000/730), DiskPrice: 80_000_000 / 730},
		} {
			found, err := imitate(t, newFake(), keys+volumes).Offerings(t.Context())
			if err != nil || len(found) != 1 || found[0].Price != want.Price || found[0].DiskPrice != want.DiskPrice {
				t.Errorf("%s: %+v, %v", volumes, found, err)
			}
		}
	})
	t.Run("configured types are added to EC2's or replace them", func(t *testing.T) {
		hand := "zones: [us-east-1a], markets: [on_demand], types: [{name: m7i.large, vcpus: 2, memory: 7Gi, price: 0.07}, {name: big, provider_type: u7i-6tb.112xlarge, vcpus: 448, memory: 6Ti, price: 50}]"
		got := strings.Join(drivertest.Offers(t, imitate(t, newFake(), hand)), "\n")
		for _, want := range []string{"big us-east-1a on_demand $50 L-43DA4232", "m7i.large us-east-1a on_demand $0.07 L-1216C47A 7Gi", "g6.xlarge"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		f := newFake()
		if got := drivertest.Offers(t, imitate(t, f, hand+", list_types: false")); len(got) != 2 || f.calls["DescribeInstanceTypes"]+f.calls["GetProducts"] > 0 {
			t.Errorf("%v after %v", got, f.calls)
		}
	})
	t.Run("bare metal is offered if it is configured", func(t *testing.T) {
		if got := strings.Join(drivertest.Offers(t, imitate(t, newFake(), "bare_metal: true")), "\n"); !strings.Contains(got, "m7i.metal-24xl") {
			t.Error(got)
		}
	})
	t.Run("a zone without a default subnet is an error with a hint", func(t *testing.T) {
		_, err := imitate(t, newFake(), "zones: [us-east-1f]").Offerings(t.Context())
		if e := drover.AsError(err, ""); e.Kind != drover.KindInvalid || e.Hint == "" {
			t.Errorf("%+v", e)
		}
	})
}

// covers L16
func TestSubnets(t *testing.T) {
	t.Run("a missing subnet does not hide the others", func(t *testing.T) {
		c := imitate(t, newFake(), "subnets: [subnet-gone, subnet-us-east-1b]")
		if got := strings.Join(drivertest.Offers(t, c), "\n"); !strings.Contains(got, "m7i.large us-east-1b spot") || strings.Contains(got, "us-east-1a") {
			t.Error(got)
		}
		drivertest.Create(t, c, request("one", candidate("m7i.large", "us-east-1b", drover.Spot)))
	})
	t.Run("an error says which subnets are missing", func(t *testing.T) {
		for keys, want := range map[string]string{
			"subnets: [subnet-gone]": "none of the configured subnets", "zones: [eu-west-1a]": "no default subnet in the configured zones",
		} {
			if _, err := imitate(t, newFake(), keys).Offerings(t.Context()); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", keys, err)
			}
		}
	})
	t.Run("a full subnet does not hide the others", func(t *testing.T) {
		f := newFake()
		f.out[" us-east-1a "] = "InsufficientFreeAddressesInSubnet"
		other := candidate("m7i.large", "us-east-1b", drover.Spot)
		if _, taken := drivertest.Create(t, imitate(t, f, ""), request("one", candidate("m7i.large", "us-east-1a", drover.Spot), other)); !taken.Same(other) {
			t.Errorf("took %+v", taken)
		}
	})
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, folder := newFake(), t.TempDir()
		first := drivertest.Offers(t, imitateIn(t, f, "", folder))
		files, _ := filepath.Glob(folder + "/*.json")
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", file, info.Mode(), err)
			}
		}
		if len(files) != 4 {
			t.Errorf("cached: %v", files)
		}

		// A restart a few hours later makes no calls; later calls fetch only what has expired.
		time.Sleep(5 * time.Hour)
		clear(f.calls)
		c := imitateIn(t, f, "", folder)
		if diff := cmp.Diff(first, drivertest.Offers(t, c)); diff != "" || len(f.calls) > 0 {
			t.Errorf("a restart made the calls %v: %s", f.calls, diff)
		}
		f.spot["m7i.large"]["us-east-1a"] = "0.05"
		if got := strings.Join(drivertest.Offers(t, c), "\n"); !strings.Contains(got, "m7i.large us-east-1a spot $0.05 ") || f.calls["GetProducts"] > 0 {
			t.Errorf("%s\nafter %v", got, f.calls)
		}

		// If data cannot be fetched, the cached data still counts; with nothing cached it is an error.
		time.Sleep(time.Hour)
		for action := range actions {
			f.broken[action] = "InternalError"
		}
		drivertest.Offers(t, c)
		if _, err := imitate(t, f, "").Offerings(t.Context()); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}

		// Neither another region's cache nor a corrupt one is used.
		if _, err := imitateIn(t, f, "zones: [us-east-1b]", folder).Offerings(t.Context()); err == nil {
			t.Error("another configuration's cache was used")
		}
		for _, file := range files {
			os.WriteFile(file, []byte("{"), 0o600)
		}
		if _, err := imitateIn(t, f, "", folder).Offerings(t.Context()); err == nil {
			t.Error("corrupt files were used")
		}
	})
}

// covers C2 C6
func TestPriceHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.pageSize = 1
		c := imitate(t, f, "")
		now := drover.TimeOf(time.Now())
		got, err := c.PriceHistory(t.Context(), "m7i.large", "us-east-1b", drover.Spot, now.Add(-24*time.Hour))
		hour := func(n int) drover.Time { return now.Add(-time.Duration(n) * time.Hour) }
		want := []driver.PricePoint{{From: hour(1), Price: 29_900_000}, {From: hour(2), Price: 50_000_000}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
		with := imitate(t, f, "volumes: [{device: /dev/sdf, size: 730Gi, price: 0.1}]")
		got, err = with.PriceHistory(t.Context(), "m7i.large", "us-east-1b", drover.Spot, now.Add(-24*time.Hour))
		if want := want[0].Price + 730*(drover.Dollar/10/730); err != nil || len(got) != 2 || got[0].Price != want {
			t.Errorf("%v, with a volume that costs %v: %v", err, want, got)
		}
		own := imitate(t, f, "list_types: false, types: [{name: mine, provider_type: m7i.large, vcpus: 2, memory: 8Gi, price: 0.2, spot_price: 0.07}]")
		got, err = own.PriceHistory(t.Context(), "m7i.large", "us-east-1b", drover.Spot, hour(24))
		if len(got) != 1 || got[0].Price != 70_000_000 || err != nil {
			t.Errorf("%v, for a configured type: %v", err, got)
		}
		got, err = c.PriceHistory(t.Context(), "m7i.large", "us-east-1b", drover.OnDemand, hour(24))
		if len(got) != 1 || got[0].Price != 100_800_000 || err != nil {
			t.Error(got, err)
		}
		if _, err = c.PriceHistory(t.Context(), "m9.huge", "us-east-1b", drover.OnDemand, hour(24)); drover.KindOf(err) != drover.KindNotFound {
			t.Error(err)
		}
	})
}

func TestQuotaGroups(t *testing.T) {
	rows := drivertest.ReadPage(t, "ec2").Rows(t, "Quotas")
	t.Run("the page shows the families", func(t *testing.T) {
		var want [][]string
		for _, f := range families {
			want = append(want, []string{f.name, strings.Join(f.series, " "), f.onDemand, f.spot})
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a type counts against the quota of its family or, for an unknown series, of the series", func(t *testing.T) {
		for name, want := range map[string]string{"m7i.large": "L-1216C47A", "im4gn.large": "L-1216C47A", "vt1.3xlarge": "L-DB2E81BA", "p5.48xlarge": "L-417A185B",
			"u-6tb1.metal": "L-43DA4232", "u7i-6tb.112xlarge": "L-43DA4232", "mac2.metal": "mac-on_demand", "weird": "weird-on_demand"} {
			if got := quotaGroup(name, drover.OnDemand); got != want {
				t.Errorf("%s counts under %s, want %s", name, got, want)
			}
		}
		for name, want := range map[string]string{"g6.xlarge": "L-3819A6DF", "hpc7a.48xlarge": "hpc-spot", "p4d.24xlarge": "L-7212CCBC", "p5en.48xlarge": "L-C4BD4855"} {
			if got := quotaGroup(name, drover.Spot); got != want {
				t.Errorf("%s on spot counts under %s, want %s", name, got, want)
			}
		}
	})
}
