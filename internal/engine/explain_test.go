package engine_test

import (
	"testing"

	"drover"
	"drover/internal/engine"
)

func TestFind(t *testing.T) {
	e := newBusy(t, 3, 1, 1).e
	t.Run("an instance is found by its id, its name and its cloud's id for it", func(t *testing.T) {
		for _, name := range []string{"2", "f-n-2", "p-2"} {
			if in, ok := e.Find(name); !ok || in.ID != 2 {
				t.Errorf("%s finds %d (%v)", name, in.ID, ok)
			}
		}
	})
	t.Run("what is unknown, or no name at all, is not found", func(t *testing.T) {
		for _, name := range []string{"4", "f-n-4", ""} {
			if in, ok := e.Find(name); ok {
				t.Errorf("%q finds %s", name, in.Name)
			}
		}
	})
}

func TestOffers(t *testing.T) {
	fleet := newBusy(t, 1, 1, 1)
	settings := fleet.e.State().Settings
	t.Run("an offering comes with the block that keeps it longest", func(t *testing.T) {
		offers := blockedFor(t, fleet.e.State()).Offers()
		if len(offers) != 1 || offers[0].Block == nil || offers[0].Block.Reason.Text != "longest" {
			t.Errorf("offers are %+v", offers)
		}
	})
	t.Run("what nothing can hold is told so, once every cloud's types are known", func(t *testing.T) {
		if miss, known := fleet.e.Misfit(oneCPU); miss != "" || !known {
			t.Errorf("what fits misses %q (known: %v)", miss, known)
		}
		huge := oneCPU
		huge.Need.CPU = 64000
		if miss, known := fleet.e.Misfit(huge); miss != "one in c has not enough vcpus: 64 wanted, 1.5 there" || !known {
			t.Errorf("what does not fit misses %q (known: %v)", miss, known)
		}
	})
	t.Run("nothing is offered by a cloud that leaves, and one that was not heard leaves it unknown", func(t *testing.T) {
		settings.Clouds[0].Leaving = true
		settings.Clouds = append(settings.Clouds, engine.CloudSettings{Name: "d"})
		fleet.hear(engine.Configured{Settings: settings})
		if offers := fleet.e.Offers(); len(offers) != 0 {
			t.Errorf("offers are %+v", offers)
		}
		if _, known := fleet.e.Misfit(oneCPU); known {
			t.Error("the types of d are taken to be known")
		}
	})
}

// blockedFor begins an engine whose only offering is blocked twice over.
func blockedFor(t *testing.T, s engine.State) *engine.Engine {
	t.Helper()
	s.Blocks = []engine.Block{
		{Cloud: "c", Reason: drover.Reason{Text: "longest", Until: s.Now + 2}},
		{Cloud: "c", Type: "one", Reason: drover.Reason{Text: "shorter", Until: s.Now + 1}},
	}
	e, err := engine.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
