package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"drover"
	"drover/internal/wire"
)

// FuzzControlStream checks that, whatever arrives on a control stream, the daemon answers with valid messages or hangs
// up, and keeps no trace of it.
func FuzzControlStream(f *testing.F) {
	const hello = `{"hello":{"version":1,"epoch":3,"fleet":"lab","instance":"lab-1"}}` + "\n"
	for _, seed := range []string{
		"", "\n", "{}\n", hello,
		`{"hello":{"version":9}}` + "\n",
		`{"hello":{"version":1,"epoch":-1,"fleet":"lab","instance":"lab-1"}}` + "\n",
		hello + `{"ping":{"n":7}}` + "\n" + `{"stop":{"id":"17.3/1","grace":-5}}` + "\n" + `{"forget":{"id":"17/2"}}` + "\n",
		hello + `{"start":{"id":"1/1","command":["true"],"env":{"A":"b"},"files":[{"path":"../x","hash":"ab","size":-1}],"outputs":["/etc/*","[a"],"timeout":-1,"grace":9223372036854775807}}` + "\n",
		hello + `{"start":{"id":"1/1","image":"docker.io/x:1"}}` + "\n",
		hello + `{"orders":{"orphan":-1,"notices":"ec2","health":"true","interval":1,"deadline":-1,"grace":1,"runtime":"x"}}` + "\n" + `{"orders":null}` + "\n",
		hello + `{"orders":{"orphan":"1h"}}` + "\n",
		hello + hello,
		hello + `{"start":{}}` + "\n" + `{"stop":{}}` + "\n" + `{"forget":{}}` + "\n",
		hello + `{"start":{"id":"1/1","command":["true"]}}` + "\n" + `{"ping":{"n":-1}}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	d := newDaemonIn(f, f.TempDir())
	f.Cleanup(func() { d.api.listener.Close() })
	// Fuzzed commands must never run: while a notice is in force, no attempt begins.
	d.interruption = &interruption{Notice: drover.Notice{Cause: "fuzzed"}, cancel: func() {}}

	f.Fuzz(func(t *testing.T, data []byte) {
		t.Chdir(d.folder)
		d.epoch = 0
		ours, theirs := net.Pipe()
		_ = ours.SetDeadline(time.Now().Add(10 * time.Second))
		served := make(chan struct{})
		go func() {
			defer close(served)
			defer theirs.Close()
			d.serveControl(theirs, wire.NewConn(theirs, theirs))
		}()
		go func() {
			// The daemon may hang up before it has read everything.
			_, _ = ours.Write(append(bytes.TrimSuffix(data, []byte("\n")), lastWord...))
		}()
		wantMessages(t, ours)
		if err := ours.Close(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		select {
		case <-served:
		case <-ctx.Done():
			t.Fatal("it still serves a controller that is gone")
		}
		if len(d.attempts) > 0 || d.session != nil {
			t.Errorf("%d attempts and session %v are left", len(d.attempts), d.session)
		}
	})
}

// newDaemonIn makes a daemon of a folder, then changes back to the original folder, where the fuzzer must store what it
// finds.
func newDaemonIn(f *testing.F, folder string) *daemon {
	back, err := os.Getwd()
	if err == nil {
		err = os.Chdir(folder)
	}
	if err != nil {
		f.Fatal(err)
	}
	d, err := newDaemon(options{dir: ".", identity: identity{"lab", "lab-1"}})
	if err = errors.Join(err, os.Chdir(back)); err != nil {
		f.Fatal(err)
	}
	d.log.SetOutput(io.Discard)
	return d
}

// lastWord is a Ping, which a daemon that has not hung up answers.
const lastWord = "\n" + `{"ping":{"n":4711}}` + "\n"

// wantMessages reads until the daemon has answered the last word, or hangs up.
func wantMessages(t *testing.T, r io.Reader) {
	t.Helper()
	lines := wire.NewConn(r, nil)
	for {
		var m wire.Message
		err := lines.Read(&m)
		if errors.Is(err, io.EOF) || err == nil && m.Pong != nil && m.Pong.N == 4711 {
			return
		}
		if err != nil {
			t.Fatalf("it sent an invalid message: %v", err)
		}
	}
}

// FuzzStart checks that the daemon accepts or refuses any Start without panicking.
func FuzzStart(f *testing.F) {
	f.Add("true", "A", "b", "in/x", "out/*", "docker.io/library/busybox:1", int64(1))
	f.Add("a\x00b", "A=B", "\x00", "../x", "/etc/*", "", int64(-1))
	f.Add("", "", "", ".", "[", "-x", int64(0))
	f.Fuzz(func(t *testing.T, command, key, value, path, pattern, image string, size int64) {
		m := wire.Start{
			Command: []string{command}, Image: image, Env: map[string]string{key: value}, Outputs: []string{pattern},
			Files: []drover.File{{Path: path, Size: size, Hash: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}},
		}
		for _, err := range []error{checkCommand(m), checkPatterns(m.Outputs), checkFiles(m.Files)} {
			if err != nil && err.Error() == "" {
				t.Error("refused without a reason")
			}
		}
	})
}
