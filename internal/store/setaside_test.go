package store

import (
	"math"
	"strings"
	"testing"

	"drover"
	"drover/internal/engine"
)

// TestUnreadableRowsAreSetAside begins with rows that a controller may have written after taking over an attempt with
// the highest possible number.
func TestUnreadableRowsAreSetAside(t *testing.T) {
	s := sqliteOpeners(t)(t)(t)
	begun(t, s)
	jobs := submitted(t, s)
	j := jobs[0]
	j.Queued = nil
	index := -1
	if j.Array.Set {
		index = j.Array.First
	}
	in := engine.Instance{ID: 1, Name: "lab-1", Cloud: "here", State: drover.InstanceRunning}
	sound := attempt(j.Number, index, 4)
	sound.State = drover.AttemptLost
	foul := attempt(j.Number, index, math.MinInt64)
	commit(t, s, engine.Write{Instance: &in}, engine.Write{Job: &j}, engine.Write{Attempt: &engine.AttemptRow{Attempt: sound}},
		engine.Write{Attempt: &engine.AttemptRow{Attempt: foul}},
		engine.Write{Element: &engine.ElementRow{Job: j.Number, Element: engine.Element{Index: index, Number: math.MinInt64}, State: drover.JobRunning}})

	state := begun(t, s)
	if len(state.Attempts) != 0 || len(state.Jobs) != 1 {
		t.Fatalf("Begin returns attempts %+v and jobs %+v", state.Attempts, state.Jobs)
	}
	if got := state.Jobs[0]; got.Priority != 0 || !got.Queued.Has(index) || got.Tried[0].Number != 4 {
		t.Errorf("the job is not held in its queue, or its numbers continue elsewhere: %+v", got)
	}
	wantAside := func(n int) {
		t.Helper()
		aside, err := s.SetAside(t.Context())
		if err != nil || len(aside) != n || n > 0 && !strings.Contains(aside[0], "-9223372036854775808") {
			t.Errorf("set aside: %q, error %v; want %d", aside, err, n)
		}
	}
	wantAside(1)
	state = begun(t, s)
	wantAside(1)
	again := state.Jobs[0]
	again.Priority = 1
	commit(t, s, engine.Write{Job: &again})
	wantAside(0)
}

func TestAnElementWithAnImpossibleNumberIsHeld(t *testing.T) {
	s := sqliteOpeners(t)(t)(t)
	begun(t, s)
	j := submitted(t, s)[0]
	index := j.Queued[0].First
	commit(t, s, engine.Write{Job: &j},
		engine.Write{Element: &engine.ElementRow{Job: j.Number, Element: engine.Element{Index: index, Number: math.MaxInt64}, State: drover.JobQueued}})
	got := begun(t, s).Jobs[0]
	if got.Priority != 0 || !got.Queued.Has(index) || got.Queued.Count() != j.Queued.Count() || got.Tried[0].Number != 0 {
		t.Errorf("it is not held, or its numbers continue elsewhere: %+v", got)
	}
}
