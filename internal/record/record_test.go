package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/engine"
)

// counting is a Decider whose decisions depend on its state and on every earlier event.
type counting struct{ n int64 }

func (c *counting) Apply(ev engine.Event) engine.Decision {
	c.n++
	return engine.Decision{Wake: ev.At + drover.Time(c.n), Effects: []engine.Effect{{ID: c.n}}}
}

func beginCounting(st engine.State) (Decider, error) { return &counting{st.LastEffect}, nil }

func start() engine.State {
	return engine.State{Version: engine.StateVersion, Fleet: "lab", LastEffect: 7, Jobs: []engine.Job{{Number: 1, Name: "greet"}}}
}

// life returns the events of n jobs on one instance, one job after the other.
func life(n int) (events []engine.Event) {
	at := drover.Time(1_700_000_000_000_000_000)
	add := func(b engine.Body) {
		at += drover.Time(1_234_567 * (len(events)%7 + 1))
		events = append(events, engine.Event{At: at, Body: b})
	}
	add(engine.Configured{})
	add(engine.CancelAsked{All: true})
	for i := range n {
		id := drover.AttemptID{Job: drover.JobID{Number: 17, Index: i}, Number: 1}
		began := at
		add(engine.Started{Effect: int64(3*i + 1), Attempt: id})
		add(engine.Exited{Attempt: id, Exit: drover.Exit{
			Started: began, Ended: at, CPU: 3*time.Millisecond + time.Duration(i*7919%100_000), MaxRSS: drover.Bytes(4+i%5) * drover.MiB, StdoutLen: 40,
		}})
		add(engine.Collected{Effect: int64(3*i + 2), Attempt: id})
	}
	return events
}

func newWriter(t testing.TB, to io.Writer) *Writer {
	t.Helper()
	w, err := NewWriter(to, Header{Program: "1.0", Settings: "abc"}, start())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// recorded returns a whole segment of these events.
func recorded(t testing.TB, events []engine.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	w := newWriter(t, &b)
	decider := &counting{start().LastEffect}
	for i, ev := range events {
		w.Append(ev, decider.Apply(ev))
		if i%10 == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestReader(t *testing.T) {
	events := life(15)
	segment := recorded(t, events)

	t.Run("returns what was written", func(t *testing.T) {
		r, err := NewReader(bytes.NewReader(segment))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "header", r.Header, Header{Format: Format, State: engine.StateVersion, Program: "1.0", Settings: "abc", Jobs: 1})
		equal(t, "state", r.State, start())
		for _, want := range events {
			rec, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "event", rec.Event, want)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("error %v, want the end", err)
		}
	})

	t.Run("reads a segment cut at any byte up to its last complete record", func(t *testing.T) {
		if testing.Short() {
			events = events[:len(events)/2]
			segment = recorded(t, events)
		}
		before := 0
		for n := range segment {
			r, err := NewReader(bytes.NewReader(segment[:n]))
			read := 0
			for err == nil {
				var rec Record
				if rec, err = r.Next(); err == nil {
					equal(t, "event", rec.Event, events[read])
					read++
				}
			}
			if !errors.Is(err, ErrCut) && n > 0 {
				t.Fatalf("cut at %d: error %v, want the cut", n, err)
			}
			if read < before {
				t.Fatalf("cut at %d: %d records, fewer than before", n, read)
			}
			before = read
		}
		if before < len(events)-10 {
			t.Errorf("%d of %d records were read, although all were flushed", before, len(events))
		}
	})

	t.Run("refuses what it cannot read", func(t *testing.T) {
		state := start()
		state.Version++
		var b bytes.Buffer
		w, err := NewWriter(&b, Header{Program: "9.9"}, state)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = NewReader(&b)
		if e := drover.AsError(err, ""); e.Kind != drover.KindInvalid || !strings.Contains(e.Hint, "9.9") {
			t.Errorf("error %+v, want invalid, with a hint at the version", e)
		}
		for _, bad := range []string{"", "hello", strings.Repeat("x", 1000)} {
			if _, err := NewReader(strings.NewReader(bad)); err == nil {
				t.Errorf("%.10q is accepted as a recording", bad)
			}
		}
	})
}

func TestReplay(t *testing.T) {
	events := life(10)
	segment := recorded(t, events)

	t.Run("finds the same decisions", func(t *testing.T) {
		result, err := Replay(bytes.NewReader(segment), beginCounting)
		if err != nil || result.Events != len(events) || result.Cut || result.Differs != nil {
			t.Errorf("result %+v, error %v", result, err)
		}
	})

	t.Run("reports that the recording was cut", func(t *testing.T) {
		result, err := Replay(bytes.NewReader(segment[:len(segment)-1]), beginCounting)
		if err != nil || !result.Cut {
			t.Errorf("result %+v, error %v", result, err)
		}
	})

	t.Run("names the first decision that differs", func(t *testing.T) {
		result, err := Replay(bytes.NewReader(segment), func(st engine.State) (Decider, error) {
			return &erring{Decider: &counting{st.LastEffect}, at: 4}, nil
		})
		if err != nil || result.Differs == nil || result.Events != 4 {
			t.Fatalf("result %+v, error %v", result, err)
		}
		d := *result.Differs
		equal(t, "event", d.Event, events[4])
		if d.Index != 4 || d.Same() || d.Decision.Wake != 1 {
			t.Errorf("difference %+v", d)
		}
		equal(t, "differing parts", d.Recorded.Differs(d.Now), []string{"wake"})
	})
}

// erring decides differently after a number of events.
type erring struct {
	Decider
	at int
}

func (e *erring) Apply(ev engine.Event) engine.Decision {
	d := e.Decider.Apply(ev)
	if e.at--; e.at < 0 {
		d.Wake = 1
	}
	return d
}

// full is a disk with room for this many bytes.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errors.New("disk full")
	}
	f.left -= len(p)
	return len(p), nil
}

func TestWriter(t *testing.T) {
	t.Run("stops at the first error and keeps reporting it", func(t *testing.T) {
		w := newWriter(t, &full{left: 1000})
		var first error
		for _, ev := range life(1000) {
			w.Append(ev, engine.Decision{})
			if err := w.Flush(); err != nil {
				first = err
				break
			}
		}
		if first == nil || !strings.Contains(first.Error(), "disk full") {
			t.Fatalf("error %v, want that of the disk", first)
		}
		w.Append(life(1)[0], engine.Decision{})
		if err := w.Close(); !errors.Is(err, first) {
			t.Errorf("error %v, want the first", err)
		}
	})

	t.Run("stops before it holds too much, and what it holds is complete", func(t *testing.T) {
		var b bytes.Buffer
		w := newWriter(t, &b)
		big := engine.Event{Body: engine.Disconnected{Text: strings.Repeat("x", maxWaiting/4)}}
		for range 6 {
			w.Append(big, engine.Decision{})
		}
		if err := w.Flush(); err == nil || !strings.Contains(err.Error(), "too slow") {
			t.Errorf("error %v, want one that it is too slow", err)
		}
		r, err := NewReader(&b)
		for range 4 {
			if err == nil {
				_, err = r.Next()
			}
		}
		if err != nil {
			t.Errorf("error %v, want four records", err)
		}
		if _, err = r.Next(); !errors.Is(err, ErrCut) {
			t.Errorf("error %v, want the cut", err)
		}
	})
}

func TestFolder(t *testing.T) {
	t.Run("keeps the latest segments of all controllers within its limit", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "recordings")
		event := life(1)[0]
		for range 40 {
			s, err := NewFolder(path, 64<<10).begin(Header{}, start())
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; !s.full(); i++ {
				event.At += drover.Time(i * 7919)
				s.Append(event, engine.Decision{Wake: event.At})
				if err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		files, err := NewFolder(path, 0).Segments()
		if err != nil {
			t.Fatal(err)
		}
		var total int64
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != 0o600 {
				t.Errorf("%s has mode %v", file, info.Mode())
			}
			total += info.Size()
		}
		if total > 64<<10 || len(files) < 10 || filepath.Base(files[len(files)-1]) != "00000040"+suffix {
			t.Errorf("%d bytes in %q", total, files)
		}
	})

	t.Run("does not mistake other files for segments", func(t *testing.T) {
		path := t.TempDir()
		for _, name := range []string{"00000001" + suffix, "1" + suffix, "00000002", "notes.txt"} {
			if err := os.WriteFile(filepath.Join(path, name), make([]byte, 100), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := NewFolder(path, 50).begin(Header{}, start())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(path)
		if err != nil || len(left) != 4 || left[1].Name() != "00000002"+suffix {
			t.Errorf("%v is left (%v), want all but the first segment, and the new one", left, err)
		}
	})

	t.Run("a segment with a large state continues until its events are as large", func(t *testing.T) {
		state := start()
		for i := range 5000 {
			state.Jobs = append(state.Jobs, engine.Job{Number: int64(i + 2), Name: fmt.Sprint("job-", i*7919)})
		}
		s, err := NewFolder(t.TempDir(), 16<<10).begin(Header{}, state)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Flush(); err != nil || s.Size() < 4<<10 {
			t.Fatalf("the beginning has %d bytes (%v), too few for this test", s.Size(), err)
		}
		if s.full() {
			t.Error("it is already full when it begins")
		}
	})
}

// BenchmarkAppend reports what an event costs on disk, flushed every thousand events.
func BenchmarkAppend(b *testing.B) {
	var out bytes.Buffer
	w := newWriter(b, &out)
	events, decider, n := life(10_000), &counting{}, 0
	for b.Loop() {
		ev := events[n%len(events)]
		w.Append(ev, decider.Apply(ev))
		if n++; n%1000 == 0 {
			if err := w.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(w.Size())/float64(n), "bytes/event")
}
