package gce

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
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers C6 C10
func TestOfferings(t *testing.T) {
	t.Run("are the types with prices for all parts, in zones that are up", func(t *testing.T) {
		f := newFake()
		f.pageSize = 2
		c := imitate(t, f, "zones: [us-central1-a]")
		want := []string{ // the prices of the CPUs, the memory and the GPU added up
			"c4a-standard-1 us-central1-a on_demand $0.049 CPUS_PER_VM_FAMILY C4A 4Gi arm64 0",
			"e2-standard-4 us-central1-a on_demand $0.13402284 CPUS 16Gi amd64 0",
			"g2-standard-4 us-central1-a on_demand $0.706824 CPUS_PER_VM_FAMILY G2 16Gi amd64 1",
			"g2-standard-4 us-central1-a spot $0.28268 PREEMPTIBLE_GPUS G2 16Gi amd64 1",
			"n2-standard-2 us-central1-a on_demand $0.097118 N2_CPUS 8Gi amd64 0",
			"n2-standard-2 us-central1-a spot $0.02354 PREEMPTIBLE_CPUS 8Gi amd64 0",
		}
		if diff := cmp.Diff(want, drivertest.Offers(t, c)); diff != "" {
			t.Error(diff)
		}
		if got := strings.Join(drivertest.Offers(t, imitate(t, f, "markets: [spot]")), "\n"); !strings.Contains(got, "us-central1-b") || strings.Contains(got, "us-central1-f") || strings.Contains(got, "on_demand") {
			t.Error(got)
		}
	})
	t.Run("configured types are added to Google's or replace them", func(t *testing.T) {
		hand := "zones: [us-central1-a], markets: [on_demand], types: [{name: n2-standard-2, vcpus: 2, memory: 7Gi, price: 0.07}, {name: big, provider_type: m3-ultramem-128, vcpus: 128, memory: 3904Gi, price: 20}]"
		got := strings.Join(drivertest.Offers(t, imitate(t, newFake(), hand)), "\n")
		for _, want := range []string{"big us-central1-a on_demand $20 M3_CPUS", "n2-standard-2 us-central1-a on_demand $0.07 N2_CPUS 7Gi", "e2-standard-4"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		f := newFake()
		if got := drivertest.Offers(t, imitate(t, f, hand+", list_types: false")); len(got) != 2 || len(f.calls) > 0 {
			t.Errorf("%v after %v", got, f.calls)
		}
	})
	t.Run("have the price per GiB of the type's disk", func(t *testing.T) {
		hand := ", list_types: false, types: [{name: n2-standard-2, vcpus: 2, memory: 7Gi, price: 0.07}]"
		for keys, want := range map[string]string{
			"": "c4a 109589 e2 136986 g2 136986 n2 136986", ", disk_price: 0.0073": "c4a 10000 e2 10000 g2 10000 n2 10000",
			", disk_type: pd-ssd": "c4a 0 e2 0 g2 0 n2 0", hand: "n2 0", hand + ", disk_price: 0.0073": "n2 10000",
		} {
			found, err := imitate(t, newFake(), "zones: [us-central1-a], markets: [on_demand]"+keys).Offerings(t.Context())
			var got []string
			for _, o := range found {
				got = append(got, fmt.Sprint(seriesOf(o.Type.Name), " ", int64(o.DiskPrice)))
			}
			if strings.Join(got, " ") != want || err != nil {
				t.Errorf("%s: %v, %v", keys, got, err)
			}
		}
	})
	t.Run("fail for a region without zones", func(t *testing.T) {
		f := newFake()
		f.zones = nil
		if _, err := imitate(t, f, "").Offerings(t.Context()); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
}

func TestPartOf(t *testing.T) {
	for text, want := range map[string]string{
		"N1 Predefined Instance Core": "n1 Core", "Compute optimized Ram": "c2 Ram", "Memory-optimized Instance Core": "m1 Core", "M3 Memory-optimized Instance Ram": "m3 Ram",
		"N2D AMD Instance Core": "n2d Core", "C4A Arm Instance Ram": "c4a Ram", "M4Ultramem224 Instance Core": "m4ultramem224 Core", "Nvidia Tesla A100 80GB GPU": "Nvidia-Tesla-A100-80GB GPU",
		"N2 Custom Instance Core": " ", "N2D AMD Sole Tenancy Instance Ram": " ", "C4 Instance Local SSD": " ", "Core": " ", "": " ",
	} {
		series, what := partOf(text)
		if got := series + " " + what; got != want && !(want == " " && series == "") {
			t.Errorf("%q prices %q, want %q", text, got, want)
		}
	}
	if gpuName("nvidia-h100-mega-80gb") != gpuName("Nvidia H100 80GB Mega") || gpuName("nvidia-a100-80gb") != gpuName("Nvidia Tesla A100 80GB") || gpuName("nvidia-tesla-a100") == gpuName("nvidia-a100-80gb") {
		t.Error("gpuName confuses GPUs")
	}
}

func TestPrices(t *testing.T) {
	p := priceList{OnDemand: parts{CPU: map[string]drover.Money{"m4": 10, "m4ultramem224": 1000}, Memory: map[string]drover.Money{"m4": 1, "m4ultramem224": 2}}}
	size := typeInfo{Resources: drover.Resources{CPU: 224_000, Memory: 1024 * drover.GiB}}
	if price, ok := p.of("m4-ultramem-224", size, drover.OnDemand); !ok || price != 224*1000+1024*2 {
		t.Errorf("a type with its own prices costs %d, %v", int64(price), ok)
	}
	if _, ok := p.of("m4-ultramem-224", size, drover.Spot); ok {
		t.Error("it has a spot price")
	}
	rate := thing{"unitPrice": thing{"currencyCode": "USD", "units": "2", "nanos": 933_908_000}}
	entry := as[sku](thing{"pricingInfo": []thing{{"pricingExpression": thing{"usageUnit": "h", "tieredRates": []thing{rate}}}}})
	if price, unit := priceOf(entry); price != 2_933_908_000 || unit != "h" {
		t.Errorf("a GPU at $2.933908 costs %s per %s", price, unit)
	}
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, folder := newFake(), t.TempDir()
		first := drivertest.Offers(t, imitateIn(t, f, "", folder))
		files, _ := filepath.Glob(folder + "/*.json")
		if len(files) != 3 {
			t.Errorf("cached: %v", files)
		}

		// A restart a few hours later makes no calls.
		time.Sleep(5 * time.Hour)
		clear(f.calls)
		c := imitateIn(t, f, "", folder)
		if diff := cmp.Diff(first, drivertest.Offers(t, c)); diff != "" || len(f.calls) > 0 {
			t.Errorf("a restart made the calls %v: %s", f.calls, diff)
		}

		// After a day the data is fetched again. If that fails, the cached data still counts; with nothing cached it is
		// an error.
		time.Sleep(24 * time.Hour)
		if drivertest.Offers(t, c); len(f.calls) == 0 {
			t.Error("nothing was fetched after a day")
		}
		time.Sleep(25 * time.Hour)
		for id := range answers {
			f.broken[id] = wrong{500, "internalError", "broken", 0}
		}
		if diff := cmp.Diff(first, drivertest.Offers(t, c)); diff != "" {
			t.Error(diff)
		}
		if _, err := imitate(t, f, "").Offerings(t.Context()); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}

		// Neither another region's cache nor a corrupt one is used.
		if _, err := imitateIn(t, f, "zones: [us-central1-b]", folder).Offerings(t.Context()); err == nil {
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

func TestQuotaGroups(t *testing.T) {
	t.Run("the page shows the families", func(t *testing.T) {
		want := [][]string{{oldestMetric, strings.Join(oldestSeries, " ")}}
		for _, series := range ownQuota {
			want = append(want, []string{quotaGroup(series, drover.OnDemand), series})
		}
		if diff := cmp.Diff(want, drivertest.ReadPage(t, "gce").Rows(t, "Quotas")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a type counts against the quota of its family or, for any other series, of the series", func(t *testing.T) {
		for name, want := range map[string]string{"n1-standard-1": "CPUS", "n2d-highcpu-8": "N2D_CPUS", "c4-standard-8": "CPUS_PER_VM_FAMILY C4", "weird": "CPUS_PER_VM_FAMILY WEIRD"} {
			if got := quotaGroup(name, drover.OnDemand); got != want {
				t.Errorf("%s counts under %s, want %s", name, got, want)
			}
			if got := quotaGroup(name, drover.Spot); got != spotMetric {
				t.Errorf("%s counts under %s on spot", name, got)
			}
		}
	})
	t.Run("a lack of GPUs blocks neither other spot types nor the whole cloud", func(t *testing.T) {
		for name, want := range map[string]string{"g2-standard-4": "PREEMPTIBLE_GPUS G2", "a2-highgpu-1g": "PREEMPTIBLE_GPUS A2", "g1-small": spotMetric} {
			if got := quotaGroup(name, drover.Spot); got != want {
				t.Errorf("%s counts under %s, want %s", name, got, want)
			}
		}
		for _, metric := range []string{"GPUS_ALL_REGIONS", "PREEMPTIBLE_NVIDIA_L4_GPUS", "NVIDIA_L4_GPUS"} {
			if got := drover.AsError(errs.Classify("", ofOperation(kit.Answer{Code: "QUOTA_EXCEEDED " + metric})), ""); got.Kind != drover.KindQuota || got.Scope != drover.ScopeQuotaGroup {
				t.Errorf("%s: %+v", metric, got)
			}
		}
	})
}
