package store

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
	"drover/internal/engine/forecast"
)

// suite checks that a database of records keeps the promises of Store's methods.
func suite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("Begin", func(t *testing.T) { beginSuite(t, openers) })
	t.Run("the fence", func(t *testing.T) { fenceSuite(t, openers) })
	t.Run("Submit", func(t *testing.T) { submitSuite(t, openers) })
	t.Run("Commit", func(t *testing.T) { commitSuite(t, openers) })
	t.Run("Wishes", func(t *testing.T) { wishSuite(t, openers) })
	t.Run("cancelled jobs", func(t *testing.T) { cancelSuite(t, openers) })
	t.Run("Retry", func(t *testing.T) { retrySuite(t, openers) })
	t.Run("lives", func(t *testing.T) { lifeSuite(t, openers) })
	t.Run("keys", func(t *testing.T) { keySuite(t, openers) })
	t.Run("tokens", func(t *testing.T) { tokenSuite(t, openers) })
	t.Run("pages", func(t *testing.T) { pageSuite(t, openers) })
	t.Run("lists", func(t *testing.T) { listSuite(t, openers) })
	t.Run("costs", func(t *testing.T) { costSuite(t, openers) })
	t.Run("spending before a budget", func(t *testing.T) { spentSuite(t, openers) })
}

func containsPid(text string) bool {
	return strings.Contains(text, fmt.Sprintf("process %d", os.Getpid()))
}

// hello returns a batch of one job, an array of 20, and a job that runs after the array.
func hello() drover.Batch {
	spec := func(name string, array drover.Array, after ...string) drover.JobSpec {
		return drover.JobSpec{
			Name: name, Array: array, After: after, Command: []string{"true"}, Spot: drover.SpotPrefer,
			Resources: drover.Resources{CPU: 1000, Memory: drover.GiB}, Attempts: 3, Priority: 1, Labels: map[string]string{"of": name, "is": "a"},
		}
	}
	greet := spec("greet", drover.Array{First: 1, Last: 20, Set: true})
	greet.Gang = 5
	return drover.Batch{Name: "hello", User: "ada", Jobs: []drover.JobSpec{spec("last", drover.Array{}, "greet"), greet, spec("first", drover.Array{})}}
}

func begun(t testing.TB, s *Store) engine.State {
	t.Helper()
	state, err := s.Begin(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// submitted submits hello and returns its jobs as the engine receives them.
func submitted(t testing.TB, s *Store) []engine.Job {
	t.Helper()
	if _, err := s.Submit(t.Context(), drover.Submission{Batch: hello()}, Terms{}); err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func commit(t testing.TB, s *Store, writes ...engine.Write) {
	t.Helper()
	if err := s.Commit(t.Context(), writes); err != nil {
		t.Fatal(err)
	}
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func beginSuite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("returns how long each type booted", func(t *testing.T) {
		s := openers(t)(t)
		minute := drover.Time(time.Minute)
		instance := func(id int64, name string, asked, created, ready drover.Time) engine.Write {
			return engine.Write{Instance: &engine.Instance{ID: id, Name: fmt.Sprint(id), Cloud: "here", Type: drover.InstanceType{Name: name}, Asked: asked, Created: created, Ready: ready}}
		}
		commit(t, s, instance(1, "small", 1, 2, minute+2), instance(2, "small", 1, 2, 3*minute+2), instance(3, "large", 1, 2, 0),
			instance(4, "adopted", 9, 2, minute), engine.Write{Gone: &engine.InstanceEnd{ID: 1, At: 3 * minute}})
		want := []forecast.Stat{{Key: forecast.BootKey("here", "small"), Count: 2, Mean: 2 * time.Minute, Last: 3*minute + 2}}
		equal(t, "boots", begun(t, s).Stats.Boots, want)
	})

	t.Run("returns how long jobs ran that ended by themselves", func(t *testing.T) {
		s := openers(t)(t)
		j := submitted(t, s)[0]
		commit(t, s, engine.Write{Job: &j}, engine.Write{Instance: &engine.Instance{ID: 1, Name: "a", Cloud: "here"}})
		begin, took := drover.Time(time.Hour), 10*time.Minute
		for i, state := range []drover.AttemptState{drover.AttemptSucceeded, drover.AttemptLost} {
			a := engine.Attempt{ID: drover.AttemptID{Job: drover.JobID{Number: j.Number, Index: -1}, Number: i + 1}, Instance: 1, State: state, Started: begin, Ended: begin.Add(took)}
			commit(t, s, engine.Write{Attempt: &engine.AttemptRow{Attempt: a}})
		}
		equal(t, "run times", begun(t, s).Stats.Runs, forecast.SeeRun(nil, forecast.Job{User: j.User, Name: j.Name, Since: j.Since, Expected: j.Expected}, took, begin.Add(took)))
	})

	t.Run("counts epochs and keeps the nonce", func(t *testing.T) {
		open := openers(t)
		first := begun(t, open(t))
		second := begun(t, open(t))
		if len(first.Nonce) != 5 {
			t.Errorf("nonce %q, want five characters", first.Nonce)
		}
		want := first
		if want.Epoch = second.Epoch; second.Epoch <= first.Epoch {
			t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
		}
		equal(t, "second state", second, want)
		if first.Version != engine.StateVersion || first.Fleet != "lab" {
			t.Errorf("first state %+v", first)
		}
	})

	t.Run("begins beyond the epochs of lost records", func(t *testing.T) {
		before := time.Now().UnixMilli()
		if first := begun(t, openers(t)(t)); first.Epoch <= before {
			t.Errorf("the first epoch is %d, but records begun now could have reached %d", first.Epoch, before)
		}
	})

	t.Run("refuses another fleet", func(t *testing.T) {
		s := openers(t)(t)
		first := begun(t, s)
		if _, err := s.Begin(t.Context(), "prod"); drover.KindOf(err) != drover.KindConflict || !strings.Contains(drover.AsError(err, "").Hint, "write fleet: lab") {
			t.Errorf("error %v, want a conflict", err)
		}
		var epoch int64
		if err := s.write.QueryRow(epochQuery).Scan(&epoch); err != nil || epoch != first.Epoch {
			t.Errorf("epoch %d after %d (%v): the refused beginning must not count", epoch, first.Epoch, err)
		}
	})
}

func submitSuite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("numbers jobs consecutively", func(t *testing.T) {
		s := openers(t)(t)
		for _, want := range [][]int64{{1, 2, 3}, {4, 5, 6}} {
			numbers, err := s.Submit(t.Context(), drover.Submission{Batch: hello()}, Terms{})
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "numbers", numbers, want)
		}
	})

	t.Run("returns pending jobs until the engine has taken them", func(t *testing.T) {
		s := openers(t)(t)
		jobs := submitted(t, s)
		for i, want := range []engine.Job{
			{Number: 1, Name: "last", After: []int64{2}, Queued: engine.Ranges{{First: -1, Last: -1}}},
			{Number: 2, Name: "greet", Array: hello().Jobs[1].Array, Gang: 5, Queued: engine.Ranges{{First: 1, Last: 20}}},
			{Number: 3, Name: "first", Queued: engine.Ranges{{First: -1, Last: -1}}},
		} {
			want.User, want.Priority, want.Attempts, want.Since = "ada", 1, 3, jobs[i].Since
			want.Labels = hello().Jobs[i].Labels
			want.Shape = drover.Shape{Need: hello().Jobs[i].Resources, Spot: drover.SpotPrefer}
			equal(t, "job", jobs[i], want)
		}
		commit(t, s, engine.Write{Job: &jobs[1]})
		pending, err := s.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "left", pending, []engine.Job{jobs[0], jobs[2]})
		equal(t, "taken", begun(t, s).Jobs, jobs[1:2])
	})

	t.Run("keeps the specification", func(t *testing.T) {
		s := openers(t)(t)
		submitted(t, s)
		spec, batch, err := s.Spec(t.Context(), 2)
		if err != nil || batch != "hello" {
			t.Errorf("batch %q, error %v", batch, err)
		}
		equal(t, "spec", spec, hello().Jobs[1])
		if _, _, err := s.Spec(t.Context(), 9); drover.KindOf(err) != drover.KindNotFound {
			t.Errorf("error %v, want not found", err)
		}
	})

	t.Run("refuses a batch that refers to a missing name, and uses no number", func(t *testing.T) {
		s := openers(t)(t)
		bad := hello()
		bad.Jobs[2].After = []string{"nobody"}
		if _, err := s.Submit(t.Context(), drover.Submission{Batch: bad}, Terms{}); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("error %v, want invalid", err)
		}
		if jobs := submitted(t, s); len(jobs) != 3 || jobs[0].Number != 1 {
			t.Errorf("jobs %+v, want three from number 1", jobs)
		}
	})
}

func commitSuite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("keeps nothing of a failed commit", func(t *testing.T) {
		s := openers(t)(t)
		jobs := submitted(t, s)
		for name, bad := range map[string]engine.Write{
			"a missing job":                 {Job: &engine.Job{Number: 99}},
			"an attempt on no instance":     {Attempt: &engine.AttemptRow{Attempt: attempt(3, -1, 1)}},
			"the end of a missing instance": {Gone: &engine.InstanceEnd{ID: 7}},
			"the end of a missing job":      {Ended: &engine.JobEnd{Number: 99}},
			"an element of a missing job":   {Element: &engine.ElementRow{Job: 99}},
		} {
			if err := s.Commit(t.Context(), []engine.Write{{Job: &jobs[0]}, {Closing: true}, bad}); err == nil {
				t.Errorf("%s is accepted", name)
			}
		}
		if state := begun(t, s); state.Closing || len(state.Jobs) != 0 {
			t.Errorf("state %+v, want no part of the failed commits", state)
		}
	})

	t.Run("keeps nothing if its context ends", func(t *testing.T) {
		s := openers(t)(t)
		jobs := submitted(t, s)
		ctx, cancel := cancelled(t)
		cancel()
		if err := s.Commit(ctx, []engine.Write{{Job: &jobs[0]}}); err == nil {
			t.Error("no error")
		}
		if state := begun(t, s); len(state.Jobs) != 0 {
			t.Errorf("jobs %+v, want none", state.Jobs)
		}
	})

	t.Run("returns what was committed", func(t *testing.T) { checkModel(t, openers) })
}

func wishSuite(t *testing.T, openers func(testing.TB) opener) {
	t.Run("stay until granted", func(t *testing.T) {
		s := openers(t)(t)
		wish := engine.CancelAsked{Job: drover.JobID{Number: 2, Index: 5}, Reason: drover.Reason{Code: drover.ReasonCancelled, Text: "enough"}}
		for want := int64(1); want <= 2; want++ {
			if id, err := s.Wish(t.Context(), wish); err != nil || id != want {
				t.Fatalf("id %d, error %v; want %d", id, err, want)
			}
		}
		commit(t, s, engine.Write{Reply: &engine.Reply{Wish: 1}})
		wishes, err := s.Wishes(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		wish.Wish = 2
		equal(t, "wishes", wishes, []Wish{{2, wish}})
	})

	t.Run("are read from a row on, whatever their kind", func(t *testing.T) {
		s := openers(t)(t)
		why := drover.Reason{Code: drover.ReasonOperator, Text: "as they say"}
		bodies := []engine.Body{
			engine.CancelAsked{Job: drover.JobID{Number: 2, Index: -1}, Reason: why},
			engine.InstructAsked{Instance: 3, Verb: drover.VerbKill, Reason: why}, engine.QueueAsked{Resume: true, Reason: why}, engine.PriorityAsked{Wish: 77, Job: 1, Priority: 4, Reason: why},
			engine.ResizeAsked{Pool: "web", Count: 3, Reason: why},
			engine.GroupAsked{Group: "web", Verb: engine.GroupDelete, Nodes: []engine.NodeKey{{Instance: 3}}, Asked: 5, Reason: why},
		}
		for _, body := range bodies {
			if _, err := s.Wish(t.Context(), body); err != nil {
				t.Fatal(err)
			}
		}
		wishes, err := s.Wishes(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "wishes", wishes, []Wish{{2, engine.Wished(bodies[1], 2)}, {3, engine.Wished(bodies[2], 3)}, {4, engine.Wished(bodies[3], 4)}, {5, engine.Wished(bodies[4], 5)}, {6, engine.Wished(bodies[5], 6)}})
		if _, err := s.Wish(t.Context(), engine.Ticked{}); err == nil {
			t.Error("an event that is not a wish is accepted")
		}
	})

	t.Run("can be for every job", func(t *testing.T) {
		s := openers(t)(t)
		wish := engine.CancelAsked{All: true, Reason: drover.Reason{Code: drover.ReasonCancelled}}
		if _, err := s.Wish(t.Context(), wish); err != nil {
			t.Fatal(err)
		}
		wishes, err := s.Wishes(t.Context(), 0)
		wish.Wish = 1
		if err != nil || len(wishes) != 1 {
			t.Fatalf("wishes %v, error %v", wishes, err)
		}
		equal(t, "wish", wishes[0], Wish{1, wish})
	})
}
