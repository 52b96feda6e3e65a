package engine_test

import (
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

func TestFind(t *testing.T) {
	e := newBusy(t, 3, 1, 1).e
	t.Run("finds an instance by its ID, its name and its provider ID", func(t *testing.T) {
		for _, name := range []string{"2", "f-n-2", "p-2"} {
			if in, ok := e.Find(name); !ok || in.ID != 2 {
				t.Errorf("%s finds %d (%v)", name, in.ID, ok)
			}
		}
	})
	t.Run("finds nothing for an unknown or empty name", func(t *testing.T) {
		for _, name := range []string{"4", "f-n-4", ""} {
			if in, ok := e.Find(name); ok {
				t.Errorf("%q finds %s", name, in.Name)
			}
		}
	})
}

// covers K4
func TestOffers(t *testing.T) {
	fleet := newBusy(t, 1, 1, 1)
	settings := fleet.e.State().Settings
	t.Run("an offering shows the block that lasts longest", func(t *testing.T) {
		offers := blockedFor(t, fleet.e.State()).Offers()
		if len(offers) != 1 || offers[0].Why == nil || offers[0].Why.Text != "longest" {
			t.Errorf("offers are %+v", offers)
		}
	})
	t.Run("the catalogue is built once, and a new one leaves the old slice unchanged", func(t *testing.T) {
		first, known := fleet.e.Catalogue()
		if len(first) != 1 || !known {
			t.Fatalf("the catalogue is %+v (known: %v)", first, known)
		}
		if n := testing.AllocsPerRun(10, func() { fleet.e.Catalogue() }); n > 1 {
			t.Errorf("a second call costs %v allocations", n)
		}
		again, _ := fleet.e.Catalogue()
		if &first[0] != &again[0] {
			t.Error("the catalogue was built twice")
		}
		fleet.now = fleet.now.Add(25 * time.Hour)
		d := fleet.e.Apply(engine.Event{At: fleet.now, Body: engine.Ticked{}})
		other := offering
		other.Type.Name = "another"
		for _, f := range d.Effects {
			if f.ListOfferings != nil {
				fleet.hear(engine.Offered{Effect: f.ID, Cloud: "c", Offerings: []drover.Offering{offering, other}})
			}
		}
		if now, _ := fleet.e.Catalogue(); len(now) != 2 || len(first) != 1 || first[0].Type.Name != "one" {
			t.Errorf("the catalogue is now %+v, but was %+v", now, first)
		}
	})
	t.Run("a leaving cloud offers nothing, and a cloud that has not answered leaves the catalogue unknown", func(t *testing.T) {
		settings.Clouds[0].Leaving = true
		settings.Clouds = append(settings.Clouds, engine.CloudSettings{Name: "d"})
		fleet.hear(engine.Configured{Settings: settings})
		if offers := fleet.e.Offers(); len(offers) != 0 {
			t.Errorf("offers are %+v", offers)
		}
		if all, known := fleet.e.Catalogue(); len(all) != 0 || known {
			t.Errorf("the catalogue is %+v (known: %v) while the types of d are not known", all, known)
		}
	})
}

func TestExplainBlock(t *testing.T) {
	e := blockedFor(t, newBusy(t, 1, 1, 1).e.State())
	t.Run("explains a block by its subject", func(t *testing.T) {
		if x, ok := e.ExplainBlock("c/*/one/*"); !ok || x.Subject != "c/*/one/*" || x.Reasons[0].Text != "shorter" {
			t.Errorf("explanation %+v (found: %v)", x, ok)
		}
	})
	t.Run("knows no block for an unblocked subject", func(t *testing.T) {
		if x, ok := e.ExplainBlock("c/*/two/*"); ok {
			t.Errorf("explanation %+v", x)
		}
	})
}

func TestExplainNamesNoEndTimeForAListedInstance(t *testing.T) {
	s := newBusy(t, 1, 0, 0).e.State()
	in := &s.Instances[0]
	in.State, in.Accepted, in.Retry = drover.InstanceStopping, true, s.Now.Add(8*time.Second)
	in.Reason = &engine.Verdict{Cause: drover.ReasonIdle, Text: "idle for 1m0s"}
	e, err := engine.New(s)
	if err != nil {
		t.Fatal(err)
	}
	x, ok := e.ExplainInstance(in.Name)
	if !ok || len(x.Reasons) != 2 || x.Reasons[1].Until != 0 {
		t.Errorf("explanation %+v (found: %v)", x, ok)
	}
}

func TestWhere(t *testing.T) {
	fleet := newBusy(t, 2, 3, 1)
	first := fleet.live[0]
	t.Run("a live attempt is on its instance", func(t *testing.T) {
		for i, id := range fleet.live {
			if at, live := fleet.e.Where(id); at != int64(i+1) || !live {
				t.Errorf("%v is on %d (live: %v)", id, at, live)
			}
		}
	})
	t.Run("an ended or unknown attempt is nowhere", func(t *testing.T) {
		fleet.end(t, 0)
		other := fleet.live[1]
		other.Number++
		for _, id := range []drover.AttemptID{first, other} {
			if at, live := fleet.e.Where(id); at != 0 || live {
				t.Errorf("%v is on %d (live: %v)", id, at, live)
			}
		}
	})
}

// blockedFor returns an engine with two blocks on its only offering.
func blockedFor(t *testing.T, s engine.State) *engine.Engine {
	t.Helper()
	s.Blocks = []engine.Block{
		{Cloud: "c", Reason: engine.Verdict{Text: "longest", Until: s.Now + 2}},
		{Cloud: "c", Type: "one", Reason: engine.Verdict{Text: "shorter", Until: s.Now + 1}},
	}
	e, err := engine.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
