package sim

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"drover"
	"drover/internal/engine"
)

var (
	seeds     = flag.Int("seeds", 75, "how many worlds to try")
	firstSeed = flag.Uint64("first-seed", 1, "the first world's seed")
)

func settings() engine.Settings {
	return engine.Settings{
		Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 6, MaxCreating: 3, ListInterval: time.Minute}},
		Lifecycle: engine.Lifecycle{
			BootTimeout: 10 * time.Minute, ProbeInterval: 10 * time.Second, ProbeTimeout: 2 * time.Minute, IdleTimeout: time.Minute,
			TermTimeout: 2 * time.Minute, ShutdownTimeout: 10 * time.Second,
		},
	}
}

func jobs() []engine.Job {
	shape := func(cpu drover.MilliCPU) drover.Shape {
		return drover.Shape{Need: drover.Resources{CPU: cpu, Memory: drover.GiB, Disk: drover.GiB}, Spot: drover.SpotPrefer}
	}
	return []engine.Job{
		{Number: 1, Name: "many", Shape: shape(1000), Array: drover.Array{First: 0, Last: 39, Set: true}, Priority: 1, Attempts: 100, Queued: engine.Ranges{{First: 0, Last: 39}}},
		{Number: 2, Name: "big", Shape: shape(5000), Priority: 5, Attempts: 100, Queued: engine.Ranges{{First: -1, Last: -1}}},
		{Number: 3, Name: "last", Shape: shape(500), Priority: 1, Attempts: 100, After: []int64{1, 2}, Queued: engine.Ranges{{First: -1, Last: -1}}},
	}
}

// bad is enough bad luck for some of everything in each world.
var bad = Luck{
	Crash: 40, Freeze: 60, Commit: 80, CreateFails: 4, CreateLost: 4, ListFails: 5, BootFails: 8, Death: 25, Cut: 12, Hang: 25, ProbeFails: 25,
	ListMisses: 40, DestroyLost: 6, Until: time.Hour,
}

func TestEveryJobEndsOnceAndNothingIsLeft(t *testing.T) {
	events, faults := 0, 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		w := NewWorld(seed, bad, settings(), jobs())
		err := w.Run(12 * time.Hour)
		if err == nil {
			err = allSucceeded(w)
		}
		if err != nil {
			t.Fatalf("seed %d (alone: -run %s -first-seed %d -seeds 1): %v", seed, t.Name(), seed, err)
		}
		events, faults = events+w.Events, faults+w.Faults
	}
	t.Logf("%d worlds, %d events, %d faults", *seeds, events, faults)
}

func TestAFleetThatIsGivenUpLeavesNothing(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		luck := bad
		luck.GiveUp = time.Duration(seed%97) * 7 * time.Second
		w := NewWorld(seed, luck, settings(), jobs())
		if err := w.Run(12 * time.Hour); err != nil {
			t.Fatalf("seed %d (alone: -run %s -first-seed %d -seeds 1): %v", seed, t.Name(), seed, err)
		}
	}
}

// A person's world has a second cloud, which may leave.
func cloudsCD() engine.Settings {
	s := settings()
	s.Clouds[0].MaxInstances = 4
	d := s.Clouds[0]
	d.Name = "d"
	s.Clouds = append(s.Clouds, d)
	return s
}

func TestWhateverPeopleWishAllComesToAGoodEnd(t *testing.T) {
	events, faults := 0, 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		luck := bad
		luck.TagFails, luck.Stubborn, luck.People, luck.Until = 4, 20, 10, 40*time.Minute
		if seed%4 == 0 {
			luck.Lose = time.Duration(seed%101) * 20 * time.Second
		}
		w := NewWorld(seed, luck, cloudsCD(), jobs())
		err := w.Run(12 * time.Hour)
		if err == nil {
			err = allSucceeded(w)
		}
		if err != nil {
			t.Fatalf("seed %d (alone: -run %s -first-seed %d -seeds 1): %v", seed, t.Name(), seed, err)
		}
		events, faults = events+w.Events, faults+w.Faults
	}
	t.Logf("%d worlds, %d events, %d faults and wishes", *seeds, events, faults)
}

func allSucceeded(w *World) error {
	if len(w.Disk.Final) != 42 {
		return fmt.Errorf("%d of 42 are final", len(w.Disk.Final))
	}
	for id, state := range w.Disk.Final {
		if state != drover.JobSucceeded {
			return fmt.Errorf("job %v is %s", id, state)
		}
	}
	return nil
}

func TestAWorldWithoutBadLuckNeedsNoSecondAttempt(t *testing.T) {
	w := NewWorld(1, Luck{}, settings(), jobs())
	if err := w.Run(time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, v := range w.vms {
		for id, n := range v.fence {
			if n != 1 {
				t.Errorf("job %v had %d attempts", id, n)
			}
		}
	}
	if w.made > 6 {
		t.Errorf("%d instances were made with a limit of 6 and nothing lost", w.made)
	}
}
