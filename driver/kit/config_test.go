package kit_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drover"
	"drover/driver/kit"
)

func TestOfferings(t *testing.T) {
	free := func(zone string, _ drover.Market) (drover.Money, bool) { return 0, zone != "full" }
	own := func(context.Context) ([]kit.Own, error) {
		return []kit.Own{{Name: "b", Zones: []string{"z", "full", "far"}, Price: free}, {Name: "a", Zones: []string{"z"}, Price: free}}, nil
	}
	hand := []kit.Type{{Name: "a", Price: new(drover.Dollar)}}
	for name, tt := range map[string]struct {
		keys kit.TypeKeys
		want string // with ! for configured types
	}{
		"the cloud's own":                      {kit.DefaultTypes(), "a b"},
		"configured types replace the cloud's": {kit.TypeKeys{ListTypes: true, Types: hand}, "a! b"},
		"configured types only":                {kit.TypeKeys{Types: hand}, "a!"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := tt.keys.Offerings(t.Context(), kit.Catalogue{Cloud: "c", Zones: []string{"z"}, Within: []string{"z", "full"}, Own: own, Complete: func(o *drover.Offering) { o.QuotaGroup = "g" }})
			var names []string
			for _, o := range all {
				names = append(names, o.Type.Name+map[bool]string{true: "!"}[o.Price > 0])
				if o.QuotaGroup != "g" {
					t.Errorf("%+v is not complete", o)
				}
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); err != nil || got != tt.want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	t.Run("a cancelled call does not query the cloud", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := kit.DefaultTypes().Offerings(ctx, kit.Catalogue{}); err != context.Canceled {
			t.Error(err)
		}
	})
}

func TestChecks(t *testing.T) {
	rules := kit.TagRules{Key: regexp.MustCompile(`^[A-Za-z:-]+$`), Value: regexp.MustCompile(`^[a-z]*$`), Reserved: "own:", Hint: "letters"}
	for name, err := range map[string]error{
		"nothing is offered": kit.TypeKeys{}.CheckTypes(), "no market": kit.MarketKeys{Markets: []drover.Market{"black"}}.CheckMarkets(),
		"a key": rules.Check("tags", map[string]string{"é": ""}), "a value": rules.Check("tags", map[string]string{"a": "B"}),
		"Drover's": rules.Check("tags", map[string]string{"Drover-x": ""}), "the cloud's": rules.Check("tags", map[string]string{"own:x": ""}),
	} {
		if drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{kit.DefaultTypes().CheckTypes(), kit.DefaultMarkets().CheckMarkets(), rules.Check("tags", map[string]string{"team": "a"})} {
		if err != nil {
			t.Error(err)
		}
	}
	var word drover.Market
	if err := kit.OneOf(&word, []byte("spot"), drover.OnDemand, drover.Spot); err != nil || word != drover.Spot {
		t.Error(word, err)
	}
	if err := kit.OneOf(&word, []byte("black"), drover.OnDemand, drover.Spot); err == nil || word != drover.Spot {
		t.Error(word, err)
	}
}
