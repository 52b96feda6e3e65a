package kit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers C10
func TestStaticOfferings(t *testing.T) {
	price := drover.Dollar
	listing := kit.StaticOptions{
		Cloud: "c", Zones: []string{"b", "a"}, Markets: []drover.Market{drover.Spot, drover.OnDemand}, Discount: 75,
		Default: drover.Resources{CPU: 1000, Memory: drover.GiB, Disk: drover.GiB, Arch: "amd64"}, Price: 8,
	}
	t.Run("missing values have defaults, and scratch adds to the disk", func(t *testing.T) {
		all, err := kit.StaticOfferings([]kit.Type{{Name: "s", Scratch: drover.GiB, Market: drover.OnDemand}}, listing)
		if err != nil || len(all) != 2 {
			t.Fatalf("got %v, %v", all, err)
		}
		want := drover.Offering{Cloud: "c", Zone: "a", Market: drover.OnDemand, Price: 8, Type: drover.InstanceType{
			Name: "s", ProviderType: "s", Resources: drover.Resources{CPU: 1000, Memory: drover.GiB, Disk: 2 * drover.GiB, Arch: "amd64"},
		}}
		if diff := cmp.Diff(want, all[0]); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("each type is offered per zone and market, priced and sorted", func(t *testing.T) {
		all, err := kit.StaticOfferings([]kit.Type{{Name: "x", ProviderType: "t1", Price: &price}, {Name: "w", SpotPrice: &price}}, listing)
		drivertest.Must(t, err)
		var got []string
		for _, o := range all {
			got = append(got, strings.Join([]string{o.Type.Name, o.Type.ProviderType, o.Zone, string(o.Market), o.Price.String()}, " "))
		}
		want := []string{
			"w w a on_demand $0.000000008", "w w a spot $1.0000", "w w b on_demand $0.000000008", "w w b spot $1.0000",
			"x t1 a on_demand $1.0000", "x t1 a spot $0.2500", "x t1 b on_demand $1.0000", "x t1 b spot $0.2500",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	for name, types := range map[string][]kit.Type{"no name": {{}}, "twice": {{Name: "a"}, {Name: "a"}}} {
		t.Run(name+" is refused", func(t *testing.T) {
			if _, err := kit.StaticOfferings(types, listing); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v", err)
			}
		})
	}
}
