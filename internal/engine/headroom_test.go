package engine_test

import (
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/pack"
)

// Each of many users can pay for a few of their jobs. The plan covers only those, so everything it chooses is rented,
// and no second plan is made.
// covers D24
func TestPlansStayWithinBudgetsOfUsers(t *testing.T) {
	const users, jobs, paid = 40, 100, 5
	large := drover.Offering{Cloud: "c", Zone: "z", Market: drover.OnDemand, Price: drover.Dollar}
	large.Type = drover.InstanceType{Name: "large", Resources: drover.Resources{CPU: 10_000, Memory: 100 * drover.GiB, Disk: drover.TiB}}
	dear := large
	dear.Type.Name, dear.Price = "dear", 2*drover.Dollar
	e, now := fleetOf(t, dear, large)
	settings := e.State().Settings
	for u := range users {
		each := (large.Price / 10).For(time.Hour + settings.Lifecycle.BootTimeout)
		settings.Budgets = append(settings.Budgets, engine.Budget{User: fmt.Sprint("u", u), Hard: engine.Amounts{Monthly: each*paid + each/2}})
	}
	var all []engine.Job
	for u := range users {
		j := waitingJob(int64(u+1), jobs)
		j.User = fmt.Sprint("u", u)
		all = append(all, j)
	}
	plans, chosen := 0, 0
	for todo := []engine.Body{engine.Configured{Settings: settings}, engine.Submitted{Jobs: all}}; len(todo) > 0; todo = todo[1:] {
		now++
		for _, f := range e.Apply(engine.Event{At: now, Body: todo[0]}).Effects {
			if f.Solve != nil {
				plan := pack.Solve(*f.Solve)
				plans, chosen = plans+1, chosen+len(plan.Purchases)
				todo = append(todo, engine.Solved{Effect: f.ID, Plan: plan})
			}
		}
	}
	bound := 0
	for _, in := range e.Instances() {
		for _, b := range in.Reservations {
			bound += b.Count
		}
	}
	if rented := len(e.Instances()); plans != 1 || chosen != rented || rented != users*paid/10 {
		t.Errorf("%d plans were made, and %d of their %d instances were rented", plans, rented, chosen)
	}
	if bound != users*paid {
		t.Errorf("instances are coming for %d jobs, but the budgets pay for %d", bound, users*paid)
	}
}

// fleetOf returns an engine without instances that may rent these offerings.
func fleetOf(t *testing.T, offerings ...drover.Offering) (*engine.Engine, drover.Time) {
	t.Helper()
	now := drover.Time(1e18)
	e, err := engine.New(engine.State{
		Version: engine.StateVersion, Fleet: "f", Nonce: "n", Now: now, Looking: now,
		Settings: engine.Settings{
			Clouds:    []engine.CloudSettings{{Name: "c", MaxCreating: 10, ListInterval: time.Hour}},
			Lifecycle: engine.Lifecycle{BootTimeout: time.Minute, ProbeInterval: time.Hour, ProbeTimeout: time.Hour, TermTimeout: time.Minute, ShutdownTimeout: time.Minute},
		},
		Clouds: []engine.Cloud{{Catalogue: engine.Catalogue{Name: "c", Known: true, Offerings: offerings}, NextList: now.Add(24 * time.Hour), NextOffer: now.Add(24 * time.Hour)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, now
}
