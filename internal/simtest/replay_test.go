package simtest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
	"drover/internal/loop"
	"drover/internal/record"
)

var (
	recordTo   = flag.String("record", "", "record a world into this file, for another architecture to replay")
	replayFrom = flag.String("replay", "", "replay this file, and compare the world that it was recorded of with that of here")
)

// begin creates the engine that replays a recording.
func begin(s engine.State) (record.Decider, error) { return engine.New(s) }

func replay(t *testing.T, recording []byte) record.Result {
	t.Helper()
	result, err := record.Replay(bytes.NewReader(recording), begin)
	if err != nil {
		t.Fatal(err)
	}
	if d := result.Differs; d != nil {
		t.Fatalf("decision %d differs from the recorded one, in its %v:\nevent %+v\nrecorded %s\nnow %s, %+v",
			d.Index, d.Recorded.Differs(d.Now), d.Event, d.Recorded.Outline, d.Now.Outline, d.Decision)
	}
	return result
}

// testdata/hello.rec was recorded by a real `drover run examples/hello.yaml`; CONTRIBUTING.md says how to record it
// again when decisions change on purpose.
func TestRecordedRunOfHelloIsDecidedTheSame(t *testing.T) {
	recording, err := os.ReadFile("testdata/hello.rec")
	if err != nil {
		t.Fatal(err)
	}
	if result := replay(t, recording); result.Events < 60 || result.Cut {
		t.Errorf("only %d events were replayed (cut short: %v); 20 jobs have at least 3 each", result.Events, result.Cut)
	}
}

func TestAWorldFullOfFaultsIsDecidedTheSame(t *testing.T) {
	worlds := min(*seeds, 60)
	if testing.Short() {
		worlds = min(worlds, 2)
	}
	for seed := uint64(1); seed <= uint64(worlds); seed++ {
		var lives []*life
		w := NewWorld(unlucky(seed))
		w.Record = func(s engine.State) loop.Recorder {
			lives = append(lives, newLife(t, s))
			return lives[len(lives)-1]
		}
		if err := w.Run(longest); err != nil {
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

// elsewhere returns an eventful world with a single controller.
func elsewhere() *World {
	luck := Bad().With(People).Without(Crash, HalfDone, CommitFails, CommitLost, Outage)
	luck.Until = 40 * time.Minute
	return NewWorld(Recipe{Seed: 7, Luck: luck, Settings: cloudsCD(), Jobs: jobs()})
}

func recordElsewhere(t *testing.T) []byte {
	var l *life
	w := elsewhere()
	w.Record = func(s engine.State) loop.Recorder {
		l = newLife(t, s)
		return l
	}
	if err := w.Run(longest); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.file.Bytes()
}

// TestRecordAWorld makes a recording on request: see make recordings and make replay-arch.
func TestRecordAWorld(t *testing.T) {
	if *recordTo == "" {
		t.Skip("records only on request: run by make recordings")
	}
	if err := os.WriteFile(*recordTo, recordElsewhere(t), 0o644); err != nil {
		t.Fatal(err)
	}
}

// testdata/arm64.rec was recorded on arm64, where the compiler fuses multiplications with additions; make recordings
// records it again.
func TestAWorldRecordedOnAnotherArchitectureIsDecidedTheSame(t *testing.T) {
	recording, err := os.ReadFile(cmp.Or(*replayFrom, "testdata/arm64.rec"))
	if err != nil {
		t.Fatal(err)
	}
	result := replay(t, recording)
	t.Logf("%d events recorded by %s", result.Events, result.Header.Program)
	if result.Events < 500 || result.Cut {
		t.Errorf("only %d events were replayed (cut short: %v)", result.Events, result.Cut)
	}
	if *replayFrom != "" {
		compareWorlds(t, recording)
	} else if result.Header.Program != "sim on arm64" {
		t.Errorf("the recording is by %s, not from arm64", result.Header.Program)
	}
}

// compareWorlds checks that the world here equals the recorded one: what it computes, such as plans, is the same on
// every processor.
func compareWorlds(t *testing.T, recording []byte) {
	here, err := record.NewReader(bytes.NewReader(recordElsewhere(t)))
	if err != nil {
		t.Fatal(err)
	}
	there, err := record.NewReader(bytes.NewReader(recording))
	for i := 0; err == nil; i++ {
		var a, b record.Record
		if b, err = there.Next(); err == nil {
			a, err = here.Next()
		}
		if diff := gocmp.Diff(a, b); diff != "" {
			t.Fatalf("event %d differs here (-here +there):\n%s", i, diff)
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
}

// program names what made a recording: the architecture, and the level of it that the compiler could use.
func program() string {
	name := "sim on " + runtime.GOARCH
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "GOAMD64" {
				name += " " + s.Value
			}
		}
	}
	return name
}

// life is the recording of one controller's life.
type life struct {
	*record.Writer
	file *bytes.Buffer
}

func newLife(t *testing.T, s engine.State) *life {
	var file bytes.Buffer
	w, err := record.NewWriter(&file, record.Header{Program: program()}, s)
	if err != nil {
		t.Fatal(err)
	}
	return &life{w, &file}
}

// busy records what a busy fleet of real instances would report: jobs with resource usage, host keys with proofs, and a
// disk that is written to about every second.
type busy struct {
	*life
	rng    *rand.Rand
	events int
}

func (b *busy) Append(ev engine.Event, d engine.Decision) {
	switch body := ev.Body.(type) {
	case engine.Exited:
		body.Exit.Started, body.Exit.Ended = ev.At.Add(-time.Duration(b.rng.Int64N(int64(time.Hour)))), ev.At.Add(-time.Duration(b.rng.Int64N(int64(time.Second))))
		body.Exit.CPU, body.Exit.MaxRSS = time.Duration(b.rng.Int64N(int64(time.Hour)))/1000*1000, drover.Bytes(b.rng.Int64N(1<<20))*4096
		body.Exit.StdoutLen = b.rng.Int64N(5000)
		ev.Body = body
	case engine.Connected:
		body.HostKey = fmt.Sprintf("SHA256:%016x%016x", b.rng.Uint64(), b.rng.Uint64())
		ev.Body = body
	}
	ev.At = ev.At.Add(time.Duration(b.rng.Int64N(int64(time.Millisecond))))
	b.life.Append(ev, d)
	if b.events++; b.events%30 == 0 {
		b.Flush()
	}
}

func TestRecordingTakesLittleSpacePerEvent(t *testing.T) {
	const most = 64.0 // bytes
	s, j := settings(), jobs()
	s.Clouds[0].MaxInstances, s.Clouds[0].MaxCreating = 100, 50
	j[0].Array.Last = 1499
	j[0].Queued = engine.Ranges{{First: 0, Last: j[0].Array.Last}}
	luck := Luck{Until: time.Hour}
	luck.Odds[CreateFails], luck.Odds[ListFails], luck.Odds[Death], luck.Odds[Cut] = 10, 20, 200, 100
	w := NewWorld(Recipe{Seed: 1, Luck: luck, Settings: s, Jobs: j})
	var b *busy
	w.Record = func(s engine.State) loop.Recorder {
		b = &busy{life: newLife(t, s), rng: rand.New(rand.NewPCG(1, 0))}
		return b
	}
	if err := w.Run(longest); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	each := float64(b.file.Len()) / float64(b.events)
	t.Logf("%d instances, %d events, %.1f bytes an event", w.Made, b.events, each)
	if each > most || b.events < 4500 || w.Made < 70 {
		t.Errorf("%d events of %d instances take %.1f bytes each, more than %v or too few to tell", b.events, w.Made, each, most)
	}
}

// BenchmarkReplay reads a recording of a world full of faults and decides it again.
func BenchmarkReplay(b *testing.B) {
	recording, err := os.ReadFile("testdata/arm64.rec")
	if err != nil {
		b.Fatal(err)
	}
	events := 0
	for b.Loop() {
		result, err := record.Replay(bytes.NewReader(recording), begin)
		if err != nil {
			b.Fatal(err)
		}
		events += result.Events
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
