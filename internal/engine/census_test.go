package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
)

// stand returns an instance of the fleet to be counted.
func stand(id int64, state drover.InstanceState, idle drover.IdleBehavior, created drover.Time) engine.Instance {
	return engine.Instance{
		ID: id, Name: "f-n-" + string(rune('0'+id)), Cloud: "c", Type: offering.Type, Market: drover.Spot, Price: drover.Dollar,
		Resources: drover.Resources{CPU: 4000, Memory: 8 * drover.GiB}, State: state, Idle: idle, Asked: 1, Begun: true, Created: created,
	}
}

func census(t *testing.T) engine.Census {
	t.Helper()
	job := waitingJob(1, 1)
	job.Queued, job.Shape.Need = nil, drover.Resources{CPU: 1000, Memory: drover.GiB}
	running := stand(1, drover.InstanceRunning, drover.IdleRun, 1)
	idle := stand(4, drover.InstanceIdle, drover.IdleHold, 2)
	running.Connected, idle.Connected = true, true
	e, err := engine.New(engine.State{
		Version: engine.StateVersion, Fleet: "f", Nonce: "n", Now: 10, Wake: 20,
		Jobs: []engine.Job{job},
		Attempts: []engine.Attempt{{
			ID: drover.AttemptID{Job: drover.JobID{Number: 1, Index: -1}, Number: 1}, Instance: 1, State: drover.AttemptRunning, Started: 5,
		}},
		Instances: []engine.Instance{
			running,
			stand(2, drover.InstanceCreating, drover.IdleRun, 0),
			stand(3, drover.InstanceIdle, drover.IdleHold, 2),
			idle,
		},
		Settings: engine.Settings{Clouds: []engine.CloudSettings{{Name: "c", MaxCreating: 1}}},
		Clouds:   []engine.Cloud{{Catalogue: engine.Catalogue{Name: "c", Throttles: make([]engine.Throttle, 2)}, Listed: 7, Partition: engine.Partition{Since: 8}}},
		Blocks: []engine.Block{
			{Cloud: "c", Reason: engine.Verdict{Cause: engine.Cause(drover.KindQuota)}},
			{Cloud: "c", Type: "ended", Over: true, Reason: engine.Verdict{Cause: engine.Cause(drover.KindQuota)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e.Census()
}

// covers D19
func TestCensus(t *testing.T) {
	c := census(t)
	key := func(s drover.InstanceState, idle drover.IdleBehavior) engine.StockKey {
		return engine.StockKey{Cloud: "c", Type: offering.Type.Name, Market: drover.Spot, State: s, Idle: idle}
	}
	has := drover.Resources{CPU: 4000, Memory: 8 * drover.GiB}
	want := []engine.Stock{
		{StockKey: key(drover.InstanceRunning, drover.IdleRun), Instances: 1, Connected: 1, Hourly: drover.Dollar, Has: has,
			Used: drover.Resources{CPU: 1000, Memory: drover.GiB}, UsedPrice: drover.Dollar / 4},
		{StockKey: key(drover.InstanceCreating, drover.IdleRun), Instances: 1, Has: has},
		{StockKey: key(drover.InstanceIdle, drover.IdleHold), Instances: 2, Connected: 1, Hourly: 2 * drover.Dollar, Has: has.Plus(has, 1)},
	}
	if diff := cmp.Diff(want, c.Stock); diff != "" {
		t.Error(diff)
	}
	t.Run("the stock adds up to the status", func(t *testing.T) {
		instances, hourly := map[drover.InstanceState]int{}, drover.Money(0)
		for _, s := range c.Stock {
			instances[s.State] += s.Instances
			hourly += s.Hourly
		}
		if diff := cmp.Diff(c.Instances, instances); diff != "" || hourly != c.Hourly {
			t.Errorf("the stock costs %v an hour, the census says %v; %s", hourly, c.Hourly, diff)
		}
	})
	t.Run("shows the state of each cloud", func(t *testing.T) {
		if diff := cmp.Diff([]engine.Sight{{Cloud: "c", Listed: 7, Partition: true, Throttles: 2}}, c.Clouds); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("lists only blocks in force", func(t *testing.T) {
		if len(c.Blocks) != 1 || c.Blocks[0].Type != "" {
			t.Errorf("blocks are %+v", c.Blocks)
		}
	})
}

// covers D22
func TestStatusShowsWhatInstancesWaitFor(t *testing.T) {
	var said []string
	count := 0
	for _, w := range census(t).Standing {
		said = append(said, w.Reason.Code)
		count += w.Count
	}
	if diff := cmp.Diff([]string{drover.ReasonBooting, drover.ReasonSilent, drover.ReasonIdle}, said); diff != "" || count != 3 {
		t.Errorf("%d instances wait: %s", count, diff)
	}
}

func TestTheOldestWaitingJob(t *testing.T) {
	job := func(number int64, since drover.Time) engine.Job {
		j := waitingJob(number, 1)
		j.Since = since
		return j
	}
	first, follows, held := job(1, 1), job(2, 2), job(3, 3)
	first.Priority, follows.After, held.Priority = 0, []int64{1}, 0
	for _, c := range []struct {
		name string
		jobs []engine.Job
		want drover.Time
	}{
		{"is not one that waits for another or is held", []engine.Job{first, follows, held, job(4, 5), job(5, 4)}, 4},
		{"does not exist if none may start", []engine.Job{first, follows, held}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := engine.New(engine.State{Version: engine.StateVersion, Fleet: "f", Nonce: "n", Now: 10, Jobs: c.jobs})
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Census().Oldest; got != c.want {
				t.Errorf("it waits since %d, not %d", got, c.want)
			}
		})
	}
}
