package engine_test

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/pool"
)

// TestAnEmptyStoreAdoptsAPoolOf300 starts an engine with an empty store in a fleet with a pool of 300 instances in
// three zones. Its cloud lists them, they answer, and an hour passes. Nothing may be created or destroyed.
// covers P8
func TestAnEmptyStoreAdoptsAPoolOf300(t *testing.T) {
	const count = 300
	e, _ := adoptPool(t, count, 0)
	web := e.Pools()[0]
	if web.Instances != count || web.Ready != count || web.Reason != nil || web.ByZone["c/a"] != 100 || web.ByZone["c/b"] != 100 {
		t.Errorf("%+v", web)
	}
}

// adoptPool makes an engine adopt a pool of a given size, plus stopped instances, and rest for an hour.
func adoptPool(t *testing.T, count, stopped int) (*engine.Engine, engine.Settings) {
	t.Helper()
	zones := []string{"a", "b", "c"}
	settings := engine.Settings{
		Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 2 * (count + stopped), MaxCreating: 10, ListInterval: time.Minute, OffersInterval: time.Hour}},
		Lifecycle: engine.Lifecycle{
			BootTimeout: 10 * time.Minute, ProbeInterval: time.Minute, ProbeTimeout: 2 * time.Hour, PartitionTimeout: time.Hour, IdleTimeout: time.Minute,
			TermTimeout: time.Minute, ShutdownTimeout: 10 * time.Second,
		},
		Pools: []pool.Spec{{
			Name: "web", Kind: drover.PoolSize, Count: count, Clouds: []string{"c"}, Market: drover.OnDemand, Spread: drover.SpreadBalanced, Login: drover.LoginSSH,
			Cooldown: time.Minute, Template: "t", MaxUnavailable: 1, MaxSurge: 1, Stopped: stopped,
		}},
	}
	e, err := engine.New(engine.State{Version: engine.StateVersion, Fleet: "f", Nonce: "n", Now: 1e18, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	var offers []drover.Offering
	var seen []engine.Sighting
	for _, zone := range zones {
		o := offering
		o.Cloud, o.Zone, o.Type.ProviderType, o.Price = "c", zone, "one", drover.Dollar/10
		offers = append(offers, o)
	}
	for i := range count + stopped {
		one := engine.Sighting{
			ProviderID: fmt.Sprint("p-", i), Name: fmt.Sprint("f-old-", i), ProviderType: "one", Type: "one", Zone: zones[i%len(zones)], Market: drover.OnDemand,
			HostKey: "key", Price: drover.Dollar / 10, Pool: "web", Template: "t", Created: 1e18 - drover.Time(time.Hour),
		}
		if i >= count {
			one.Stopped, one.Kept = true, 1e18-drover.Time(time.Minute)
		}
		seen = append(seen, one)
	}
	now, end, lists := drover.Time(1e18), drover.Time(1e18).Add(time.Hour), 0
	for todo := []engine.Body{engine.Configured{Settings: settings}}; len(todo) > 0; todo = todo[1:] {
		d := e.Apply(engine.Event{At: now, Body: todo[0]})
		for _, f := range d.Effects {
			switch {
			case f.Create != nil, f.Destroy != nil:
				t.Fatalf("after %v: %+v", now.Sub(1e18), f)
			case f.ListOfferings != nil:
				todo = append(todo, engine.Offered{Effect: f.ID, Cloud: "c", Offerings: offers})
			case f.ListInstances != nil:
				listed := engine.Listed{Effect: f.ID, Cloud: "c", Began: now}
				if lists++; lists == 1 {
					listed.Added = seen
				}
				todo = append(todo, listed)
			case f.Connect != nil:
				todo = append(todo, engine.Connected{Effect: f.ID, Instance: f.Connect.Instance, HostKey: "key"})
			}
		}
		if len(todo) == 1 && now < end && d.Wake > 0 {
			now = max(now, d.Wake)
			todo = append(todo, engine.Ticked{})
		}
	}
	if now < end || lists < 30 {
		t.Errorf("the engine rested after %v, with %d lists", now.Sub(1e18), lists)
	}
	return e, settings
}
