package loop

import (
	"context"
	"errors"
	"slices"
	"testing"

	"drover"
	"drover/internal/engine"
)

// journal is a Store and an Outside. It records the order of its calls.
type journal struct {
	lines  []string
	writes int
	fail   error
}

func (j *journal) Commit(_ context.Context, writes []engine.Write) error {
	j.lines = append(j.lines, "commit")
	j.writes += len(writes)
	return j.fail
}

func (j *journal) Release(effects []engine.Effect, _ []engine.Note) {
	if len(effects) > 0 {
		j.lines = append(j.lines, "release")
	}
}

func newLoop(t *testing.T, j *journal) *Loop {
	t.Helper()
	e, err := engine.New(engine.State{Version: engine.StateVersion, Fleet: "f", Nonce: "n"})
	if err != nil {
		t.Fatal(err)
	}
	return &Loop{Engine: e, Store: j, Outside: j}
}

var (
	settings = engine.Configured{Settings: engine.Settings{Clouds: []engine.CloudSettings{{Name: "c", MaxInstances: 1}}}}
	job      = engine.Submitted{Jobs: []engine.Job{{Number: 1, Priority: 1, Queued: engine.Ranges{{First: -1, Last: -1}}}}}
)

// covers L4
func TestEffectsAreReleasedOnlyAfterTheCommit(t *testing.T) {
	j := &journal{}
	if _, err := newLoop(t, j).Step(t.Context(), []engine.Event{{At: 1, Body: settings}, {At: 2, Body: job}}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"commit", "release"}; !slices.Equal(j.lines, want) {
		t.Errorf("order was %v, want %v, with one commit for both events", j.lines, want)
	}
}

func TestAFailedCommitReleasesNothingAndBreaksTheLoop(t *testing.T) {
	j := &journal{fail: errors.New("disk full")}
	l := newLoop(t, j)
	events := []engine.Event{{At: 1, Body: settings}, {At: 2, Body: job}}
	for range 2 {
		if _, err := l.Step(t.Context(), events); !errors.Is(err, j.fail) {
			t.Fatalf("error is %v, want %v", err, j.fail)
		}
	}
	if want := []string{"commit"}; !slices.Equal(j.lines, want) {
		t.Errorf("did %v, want %v: nothing after the failure", j.lines, want)
	}
}

func TestTimeNeverDecreases(t *testing.T) {
	l := newLoop(t, &journal{})
	events := []engine.Event{{At: 100, Body: settings}, {At: 50, Body: engine.Ticked{}}}
	if _, err := l.Step(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	if now := l.Engine.Status().Now; now != drover.Time(100) {
		t.Errorf("the engine's time is %d after an event stamped 50 followed one stamped 100", now)
	}
}
