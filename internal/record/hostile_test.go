package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"drover"
	"drover/internal/engine"
)

// pack makes a segment with these contents.
func pack(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for _, part := range parts {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readAll reads a segment to its end and returns how many records it has.
func readAll(segment []byte) (n int, err error) {
	r, err := NewReader(bytes.NewReader(segment))
	for err == nil {
		if _, err = r.Next(); err == nil {
			n++
		}
	}
	return n, err
}

var (
	headerText = fmt.Sprintf(`{"format":%d,"state":%d,"program":"1.0","settings":"abc"`, Format, engine.StateVersion)
	stateText  = fmt.Sprintf(`{"version":%d,"fleet":"f","nonce":"n"}`, engine.StateVersion) + "\n"
	begun      = headerText + "}\n" + stateText
)

func TestAReaderRefusesInputThatNeedsTooMuchMemory(t *testing.T) {
	many := strings.Repeat("{},", 1<<20)
	for name, parts := range map[string][]string{
		"a line without an end":  {begun, strings.Repeat(" ", maxLine+1)},
		"a state without an end": {headerText, "}\n", strings.Repeat("[", maxLine+1)},
		"a line of tiny jobs":    {begun, `{"e":{"at":1,"kind":"submitted","body":{"jobs":[`, many, `{}]}},"d":"x"}`, "\n"},
		"a state of tiny jobs":   {headerText, "}\n", `{"version":1,"jobs":[`, many, "{}]}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			segment := pack(t, parts...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readAll(segment)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*maxLine {
				t.Errorf("it took %d bytes", took)
			}
			if drover.KindOf(err) != drover.KindInvalid {
				t.Errorf("error %v, want a refusal", err)
			}
		})
	}
	t.Run("jobs that are short only because they resemble the previous one", func(t *testing.T) {
		jobs := newJobs()
		jobs.left = 1000
		name := map[string]json.RawMessage{"name": json.RawMessage(`"` + strings.Repeat("x", 300) + `"`)}
		_, first := jobs.next(name)
		_, second := jobs.next(nil)
		if errors.Join(first, second) != nil {
			t.Fatal(first, second)
		}
		_, _ = jobs.next(nil)
		if _, err := jobs.next(nil); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("error %v, want a refusal", err)
		}
	})
}

// FuzzReader reads arbitrary files: reading finishes at the end, at a cut or with an error, and what was read can be
// written again.
func FuzzReader(f *testing.F) {
	segment := recorded(f, life(3))
	f.Add(segment, true)
	f.Add(segment[:len(segment)/2], true)
	hello, err := os.ReadFile("../simtest/testdata/hello.rec")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hello, true)
	for _, text := range []string{
		"", "{}", begun, headerText + `,"jobs":2}` + "\n" + stateText + `{"number":1,"name":"a"}` + "\n" + `{"number":2}` + "\n",
		begun + `{"e":{"at":"2026-01-01T00:00:00Z","kind":"exited","body":{"attempt":"17.3/1"}},"d":"x"}` + "\n",
		begun + `{"e":{"at":1,"kind":"nothing","body":{}},"d":""}` + "\n", begun + `{"e":null}` + "\n", begun + "{}\n",
	} {
		f.Add([]byte(text), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, packed bool) {
		if !packed {
			data = pack(t, string(data))
		}
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		w := newWriter(t, io.Discard)
		for step, err := range r.Steps(&counting{}) {
			if err != nil {
				break
			}
			w.Append(step.Event, engine.Decision{})
		}
		if err := w.Flush(); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
