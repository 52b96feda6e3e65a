package preview_test

import (
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/preview"
)

const gib = drover.Bytes(1 << 30)

// offering has two vCPUs, and a separate volume whose usual size of 100 GiB the price includes.
func offering(kind string, price drover.Money) drover.Offering {
	return drover.Offering{
		Cloud: "here", Zone: "a", Market: drover.OnDemand, Price: price, DiskPrice: drover.Dollar / 100,
		Type: drover.InstanceType{Name: kind, Resources: drover.Resources{CPU: 2000, Memory: 8 * gib}},
	}
}

func TestRunnerUp(t *testing.T) {
	for name, c := range map[string]struct {
		disk     drover.Bytes
		reserved []engine.Reservation
		want     float64
	}{
		"costs its usual volume":        {1 * gib, nil, 2},
		"costs the volume of the jobs":  {150 * gib, nil, 2.5},
		"costs the reserved price":      {1 * gib, []engine.Reservation{{Type: "dear", Count: 1, Price: 3 * drover.Dollar / 2}}, 1.5},
		"has a reservation of its type": {150 * gib, []engine.Reservation{{Type: "dear", Count: 1, Price: 9 * drover.Dollar / 5}}, 1.8},
	} {
		t.Run(name, func(t *testing.T) {
			s := engine.Settings{
				Clouds:    []engine.CloudSettings{{Name: "here", MaxInstances: 5, MaxCreating: 5, ListInterval: time.Minute, Disk: 100 * gib}},
				Lifecycle: engine.Lifecycle{BootTimeout: time.Minute, IdleTimeout: time.Minute},
			}
			s.Clouds[0].Reserved = c.reserved
			job := drover.JobSpec{Name: "j", Command: []string{"true"}, Spot: drover.SpotNever, Attempts: 1, Priority: 1, Resources: drover.Resources{CPU: 1000, Memory: gib, Disk: c.disk}}
			b := drover.Batch{Name: "b", Jobs: []drover.JobSpec{job}}
			seen, err := preview.New(s, []drover.Offering{offering("cheap", drover.Dollar), offering("dear", 2*drover.Dollar)}, b)
			if err != nil {
				t.Fatal(err)
			}
			r := seen.Report(b)
			if len(r.Rent) != 1 || r.Rent[0].Type != "cheap" || r.Rent[0].RunnerUp == nil || r.Rent[0].RunnerUp.Price != c.want {
				t.Errorf("%+v; want it to rent cheap with a runner-up at %v", r, c.want)
			}
		})
	}
}
