package engine_test

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"drover"
	"drover/internal/engine"
)

// catalogueRequest returns the effect by which a decision requests a cloud's catalogue.
func catalogueRequest(t *testing.T, d engine.Decision) engine.Effect {
	t.Helper()
	at := slices.IndexFunc(d.Effects, func(f engine.Effect) bool { return f.ListOfferings != nil })
	if at < 0 {
		t.Fatal("no catalogue is requested")
	}
	return d.Effects[at]
}

func drawCatalogue(rt *rapid.T, label string) []drover.Offering {
	byKey := map[engine.OfferingKey]drover.Offering{}
	for _, o := range rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) drover.Offering {
		return drover.Offering{
			Cloud: "c", Zone: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "zone"), Type: drover.InstanceType{Name: rapid.StringMatching("[a-e]").Draw(rt, "type")},
			Market: rapid.SampledFrom([]drover.Market{drover.OnDemand, drover.Spot}).Draw(rt, "market"), Price: drover.Money(rapid.IntRange(1, 3).Draw(rt, "price")),
		}
	}), 0, 12).Draw(rt, label) {
		byKey[engine.KeyOf(o)] = o
	}
	var all []drover.Offering
	for _, o := range byKey {
		all = append(all, o)
	}
	return engine.Sorted(all)
}

func TestCatalogues(t *testing.T) {
	t.Run("applying the changes yields the new catalogue", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			was, now := drawCatalogue(rt, "was"), drawCatalogue(rt, "now")
			changed, removed := engine.Changes(was, now)
			if slices.Equal(was, now) && len(changed)+len(removed) > 0 {
				rt.Fatalf("equal catalogues differ: changed %v, removed %v", changed, removed)
			}
			e, first := catalogueAsked(t)
			later := drover.Time(1e18 + 2*3600e9)
			e.Apply(engine.Event{At: 1e18, Body: engine.Offered{Effect: first.ID, Cloud: "c", Offerings: was, Hash: "was"}})
			second := catalogueRequest(t, e.Apply(engine.Event{At: later, Body: engine.Ticked{}}))
			if second.ListOfferings.Have != "was" {
				rt.Fatalf("the engine has catalogue %q", second.ListOfferings.Have)
			}
			e.Apply(engine.Event{At: later, Body: engine.Offered{Effect: second.ID, Cloud: "c", Offerings: changed, Removed: removed, Base: "was", Hash: "now"}})
			if diff := gocmp.Diff(now, e.State().Clouds[0].Offerings, cmpopts.EquateEmpty()); diff != "" {
				rt.Errorf("(-sent +known)\n%s", diff)
			}
		})
	})

	t.Run("changes to an unknown base lead to a request for the whole catalogue", func(t *testing.T) {
		e, first := catalogueAsked(t)
		d := e.Apply(engine.Event{At: 1e18, Body: engine.Offered{Effect: first.ID, Cloud: "c", Offerings: []drover.Offering{{Cloud: "c"}}, Base: "another", Hash: "now"}})
		if again := catalogueRequest(t, d); again.ListOfferings.Have != "" || e.State().Clouds[0].Known {
			t.Errorf("requested again with base %q, known: %v", again.ListOfferings.Have, e.State().Clouds[0].Known)
		}
	})
}

// catalogueAsked returns an engine that has requested its cloud's catalogue, and the effect that requests it.
func catalogueAsked(t *testing.T) (*engine.Engine, engine.Effect) {
	t.Helper()
	e, err := engine.New(engine.State{Version: engine.StateVersion, Fleet: "f", Nonce: "n"})
	if err != nil {
		t.Fatal(err)
	}
	s := engine.Settings{Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 1, OffersInterval: 3600e9}}}
	return e, catalogueRequest(t, e.Apply(engine.Event{At: 1e18, Body: engine.Configured{Settings: s}}))
}
