package sim

import (
	"bytes"
	"os"
	"testing"
	"time"

	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/record"
)

// begin makes the engine that a recording is replayed on.
func begin(t *testing.T) func(engine.State) record.Decider {
	return func(s engine.State) record.Decider {
		e, err := engine.New(s)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

func replay(t *testing.T, recording []byte) record.Result {
	t.Helper()
	result, err := record.Replay(bytes.NewReader(recording), begin(t))
	if err != nil {
		t.Fatal(err)
	}
	if d := result.Differs; d != nil {
		t.Fatalf("decision %d differs from the recorded one:\nevent %+v\ndecision now %+v", d.Index, d.Event, d.Decision)
	}
	return result
}

// testdata/hello.rec was recorded by a real `drover run examples/hello.yaml`; CONTRIBUTING.md says how to make it anew when decisions
// are meant to change.
func TestARecordedRunOfHelloIsDecidedTheSame(t *testing.T) {
	recording, err := os.ReadFile("testdata/hello.rec")
	if err != nil {
		t.Fatal(err)
	}
	if result := replay(t, recording); result.Events < 60 || result.Cut {
		t.Errorf("only %d events were replayed (cut short: %v); 20 jobs have at least 3 each", result.Events, result.Cut)
	}
}

func TestAWorldFullOfFaultsIsDecidedTheSame(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		var lives []*life
		w := NewWorld(seed, bad, settings(), jobs())
		w.Record = func(s engine.State) loop.Recorder {
			lives = append(lives, newLife(t, s))
			return lives[len(lives)-1]
		}
		if err := w.Run(12 * time.Hour); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, l := range lives {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			replay(t, l.file.Bytes())
		}
	}
}

// life is the recording of one controller's life.
type life struct {
	*record.Writer
	file *bytes.Buffer
}

func newLife(t *testing.T, s engine.State) *life {
	var file bytes.Buffer
	w, err := record.NewWriter(&file, record.Header{}, s)
	if err != nil {
		t.Fatal(err)
	}
	return &life{w, &file}
}
