package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/internal/daemon"
	"drover/internal/engine"
	"drover/internal/record"
)

// segmentOf writes a segment with two events that led to no decisions.
func (p *place) segmentOf(name, program string) {
	p.t.Helper()
	var b bytes.Buffer
	w, err := record.NewWriter(&b, record.Header{Program: program}, engine.State{Version: engine.StateVersion, Fleet: "f", Nonce: "n"})
	if err != nil {
		p.t.Fatal(err)
	}
	w.Append(engine.Event{At: 1e18, Body: engine.Ticked{}}, engine.Decision{})
	settings := engine.Settings{Clouds: []engine.CloudSettings{{Name: "here", ListInterval: time.Minute}}}
	w.Append(engine.Event{At: 2e18, Body: engine.Configured{Settings: settings}}, engine.Decision{})
	if err := w.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.write(name, b.String())
}

func TestReplayOfADifferentDecision(t *testing.T) {
	p := newPlace(t)
	p.segmentOf("other.gz", "0.9")
	p.segmentOf("same.gz", "development")
	t.Run("prints the event and the difference, and exits with 1", func(t *testing.T) {
		r := p.run("replay", "other.gz")
		want := []string{
			"differently", "happened:    configured settings (clouds: 1", "recorded:    no writes, no effects", "now:         does list offerings, list instances",
			"differs in:  effects", "effect:      list instances cloud here",
		}
		for _, text := range want {
			if !strings.Contains(r.out.String(), text) {
				t.Errorf("the output lacks %q:\n%s", text, r.out.String())
			}
		}
		if r.code() != 1 || !strings.Contains(r.err.String(), "event 1 of other.gz differs from the recorded one") {
			t.Errorf("exit code %d: %s", r.code(), r.err.String())
		}
	})
	t.Run("is reported as a bug, unless another version recorded it", func(t *testing.T) {
		for name, text := range map[string]string{"other.gz": "it was recorded by drover 0.9, but this is drover development", "same.gz": "the version is the same: unless the builds differ, this is a bug in Drover"} {
			if r := p.run("replay", name, "-o", "json"); r.code() != 1 || !strings.Contains(r.err.String(), text) || !strings.Contains(r.out.String(), `"differs":["`) {
				t.Errorf("%s: exit code %d: %s%s", name, r.code(), r.out.String(), r.err.String())
			}
		}
	})
}

func TestAReplayPrintsVCPUs(t *testing.T) {
	if got, want := brief(drover.Resources{CPU: 2500, Memory: drover.GiB}), "cpu 2.5, memory bytes 1Gi"; got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
}

// recorded returns everything that the daemon has recorded so far, decompressed.
func (p *daemonPlace) recorded() string {
	p.t.Helper()
	paths, err := record.NewFolder(p.file("drover.d/recording"), record.DefaultLimit).Segments()
	if err != nil || len(paths) == 0 {
		p.t.Fatalf("segments %q (%v)", paths, err)
	}
	var all strings.Builder
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			p.t.Fatal(err)
		}
		defer file.Close()
		stream, err := gzip.NewReader(file)
		if err == nil {
			_, err = io.Copy(&all, stream)
		}
		if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) { // the controller is still writing
			p.t.Fatal(err)
		}
	}
	return all.String()
}

func TestTheRecordingOfAKilledController(t *testing.T) {
	t.Parallel()
	p := newDaemonPlace(t, "", "")
	const marker = "hunter2-marker"
	p.write("input", marker)
	p.write("batch.yaml", `jobs:
  - name: tells
    command: ["sh", "-c", "echo $SECRET; echo $SECRET >&2; cat input; echo $DROVER_TOKEN >token; exit 3; : `+marker+`"]
    env: {SECRET: `+marker+`}
    inputs: [{path: input}]
    outputs: [token]
`)
	person := p.drover("token", "create", "--user", "ada", "--role", "admin", "-o", "json")
	p.run("submit", "-c", "drover.yaml", "--wait", "batch.yaml")
	p.drover("outputs", "1", "--to", "got")
	eventually(t, 10*time.Second, "the end of the job is on disk", func() bool { return strings.Contains(p.recorded(), `"kind":"collected"`) })
	p.process.kill()

	t.Run("replays the same, but is cut short", func(t *testing.T) {
		r := p.run("replay", "-c", "drover.yaml")
		if r.code() != 0 || !strings.Contains(r.out.String(), "the same, but the recording is cut short") {
			t.Errorf("exit code %d: %s", r.code(), r.out.String())
		}
	})

	t.Run("contains no secret", func(t *testing.T) {
		key := p.bytes(p.file("drover.d/fleet.key"))
		token, _, _ := strings.Cut(person[strings.Index(person, `"token":"`)+len(`"token":"`):], `"`)
		all := p.recorded()
		for what, secret := range map[string]string{
			"the marker in environment, command, input and output": marker,
			"an attempt's token":       strings.TrimSpace(string(p.bytes(filepath.Join(p.dir, "got", "token")))),
			"a person's token":         token,
			"the owner's token":        strings.TrimSpace(string(p.bytes(p.file("drover.d/token")))),
			"the fleet key":            strings.TrimSpace(string(key)),
			"the fleet key in hex":     hex.EncodeToString(key),
			"the fleet key in base 64": base64.StdEncoding.EncodeToString(key),
		} {
			if len(secret) < 10 {
				t.Errorf("%s is %q, too short to search for", what, secret)
			} else if strings.Contains(all, secret) {
				t.Errorf("%s is in the recording", what)
			}
		}
		if !strings.Contains(all, "tells") {
			t.Error("not even the job's name is in the recording")
		}
	})
}

// bytes returns a file's content.
func (p *place) bytes(path string) []byte {
	p.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

func TestPrune(t *testing.T) {
	folder := t.TempDir()
	now := time.Now()
	for i, name := range []string{"d", "c", "b", "a"} { // the latest is a
		path := filepath.Join(folder, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "00000001.jsonl.gz"), make([]byte, 100), 0o600),
			os.Chtimes(path, now, now.Add(time.Duration(i)*time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	left := func(keep int, most int64) (names string) {
		t.Helper()
		if err := daemon.Prune(folder, keep, most); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names += e.Name()
		}
		return names
	}
	for _, c := range []struct {
		what string
		keep int
		most int64
		want string
	}{{"all fit", 4, 400, "abcd"}, {"limit on the number", 3, 400, "abc"}, {"limit on the size", 3, 299, "ab"}, {"the last stays, however large", 3, 50, "a"}} {
		if got := left(c.keep, c.most); got != c.want {
			t.Errorf("%s: %s is left, not %s", c.what, got, c.want)
		}
	}
}
