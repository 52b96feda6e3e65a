package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/local"
	"drover/internal/blob"
	"drover/internal/engine"
	"drover/internal/remote"
	"drover/internal/runner"
	"drover/internal/store"
)

// TestMain makes the test binary serve also as the program of local instances and as their runner.
func TestMain(m *testing.M) {
	switch {
	case strings.HasPrefix(filepath.Base(os.Args[0]), "drover-runner") && len(os.Args) > 1 && (os.Args[1] == "control" || os.Args[1] == "bulk") && hostile():
		beHostile(os.Args[1])
		os.Exit(0)
	case strings.HasPrefix(filepath.Base(os.Args[0]), "drover-runner"):
		os.Exit(runner.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case len(os.Args) > 1 && os.Args[1] == local.Command:
		os.Exit(local.InstanceMain(os.Args[2:]))
	}
	os.Exit(runAll(m))
}

// shared is what all fixtures use. It is prepared once, to save time.
var shared struct {
	folder  string        // with the runner that instances use
	runner  remote.Runner // this binary, as a runner
	records []byte        // of a fleet that has not started
}

func runAll(m *testing.M) int {
	folder, err := os.MkdirTemp("", "drover-test-")
	if err == nil {
		defer os.RemoveAll(folder)
		err = share(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// share prepares shared in a folder.
func share(folder string) (err error) {
	shared.folder = folder
	if shared.runner, err = runnerIn(folder); err != nil {
		return err
	}
	path := filepath.Join(folder, "drover.db")
	s, err := store.Open(context.Background(), path)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	shared.records, err = os.ReadFile(path)
	return errors.Join(err, os.Mkdir(filepath.Join(folder, "bin"), 0o700))
}

// runnerIn makes a runner that is quick to upload: a script that starts this binary under a name that makes it a
// runner.
func runnerIn(folder string) (remote.Runner, error) {
	self, err := os.Executable()
	if err != nil {
		return remote.Runner{}, err
	}
	program := filepath.Join(folder, "drover-runner")
	if os.Link(self, program) != nil { // on another disk
		content, err := os.ReadFile(self)
		if err := errors.Join(err, os.WriteFile(program, content, 0o700)); err != nil {
			return remote.Runner{}, err
		}
	}
	script := "#!/bin/sh\nexec '" + program + "' \"$@\"\n"
	return remote.NewRunner(func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(script)), nil })
}

// fixture is what controllers of one fleet share: records, a cloud on this host, results.
type fixture struct {
	t     *testing.T
	cfg   Config
	store *store.Store
	logs  string
	close func() // destroys the remaining instances, and releases everything
}

func newFixture(t *testing.T) *fixture {
	folder := t.TempDir()
	f := &fixture{t: t, logs: filepath.Join(folder, "out", "logs")}
	if err := errors.Join(
		os.Mkdir(filepath.Join(folder, "here"), 0o700),
		os.Symlink(filepath.Join(shared.folder, "bin"), filepath.Join(folder, "here", ".bin")),
		os.WriteFile(filepath.Join(folder, "drover.db"), shared.records, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	cloud := must(local.Open(t.Context(), driver.Options{Name: "here", Fleet: "test", Folder: filepath.Join(folder, "here")}))(t)
	f.store = must(store.Open(t.Context(), filepath.Join(folder, "drover.db")))(t)
	f.cfg = Config{
		Fleet: "test",
		Setup: Setup{
			Clouds: []Cloud{{Name: "here", Driver: cloud}},
			Probe:  "true",
			Settings: engine.Settings{
				Clouds: []engine.CloudSettings{{Name: "here", MaxInstances: 2, MaxCreating: 2, ListInterval: time.Minute}},
				Lifecycle: engine.Lifecycle{
					BootTimeout: time.Minute, ProbeInterval: time.Second, ProbeTimeout: 10 * time.Second, IdleTimeout: time.Minute,
					TermTimeout: 5 * time.Second, ShutdownTimeout: time.Second,
				},
			},
		},
		Store:   f.store,
		Key:     must(remote.LoadOrCreateFleetKey(filepath.Join(folder, "fleet.key")))(t),
		Inputs:  must(blob.OpenDir(filepath.Join(folder, "inputs")))(t),
		Results: must(blob.OpenResults(filepath.Join(folder, "out"), blob.DefaultLimits()))(t),
		Spool:   t.TempDir(),
		Runners: func(drover.Arch) (remote.Runner, error) { return shared.runner, nil },
		Log:     slog.New(slog.DiscardHandler),
	}
	f.close = sync.OnceFunc(func() {
		list, err := cloud.List(context.Background(), nil)
		for _, in := range list {
			err = errors.Join(err, cloud.Destroy(context.Background(), in.ID))
		}
		if err := errors.Join(err, cloud.Close(), f.store.Close(), f.cfg.Inputs.Close(), f.cfg.Results.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(f.close)
	return f
}

// must returns a value that a test needs, or ends the test with the error.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// begin runs a controller. The returned function stops it and returns Run's error.
func (f *fixture) begin() (*Controller, func() error) {
	f.t.Helper()
	c := must(New(f.t.Context(), f.cfg))(f.t)
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, func() error {
		cancel()
		return <-ended
	}
}

// submit submits jobs that each run a command, under the names a, b, c, ….
func (f *fixture) submit(c *Controller, commands ...string) {
	f.t.Helper()
	batch := drover.Batch{Name: "batch"}
	for i, command := range commands {
		batch.Jobs = append(batch.Jobs, drover.JobSpec{
			Name: string(rune('a' + i)), Command: []string{"sh", "-c", command}, Priority: 1, Attempts: 3, Spot: drover.SpotPrefer,
			Resources: drover.Resources{CPU: 500, Memory: 32 * drover.MiB, Disk: drover.MiB},
		})
	}
	must(c.Submit(f.t.Context(), drover.Submission{Batch: batch}))(f.t)
}

// until waits until a condition on the engine is true.
func (f *fixture) until(c *Controller, what string, is func(*engine.Engine) bool) {
	f.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var yes bool
		err := c.Query(f.t.Context(), func(e *engine.Engine) {
			done := make(chan struct{})
			go func() { // a Fatal in it ends this goroutine, not the controller's loop
				defer close(done)
				yes = is(e)
			}()
			<-done
		})
		if err != nil {
			f.t.Fatal(err)
		}
		if f.t.Failed() {
			f.t.FailNow()
		}
		if yes {
			return
		}
	}
	f.t.Fatalf("timed out waiting until %s", what)
}

func runs(n int) func(*engine.Engine) bool {
	return func(e *engine.Engine) bool {
		running := 0
		for _, a := range e.Attempts() {
			if a.State == drover.AttemptRunning {
				running++
			}
		}
		return running == n
	}
}

// allFinal queries the records, which have submitted jobs before the engine takes them.
func (f *fixture) allFinal(*engine.Engine) bool {
	counts := must(f.store.Counts(f.t.Context()))(f.t)
	return counts[drover.JobQueued]+counts[drover.JobRunning] == 0
}

func (f *fixture) log(name string) string {
	f.t.Helper()
	return string(must(os.ReadFile(filepath.Join(f.logs, name)))(f.t))
}

func TestABatchRunsAndLeavesNothingBehind(t *testing.T) {
	before := holdings(t)
	f := newFixture(t)
	c, stop := f.begin()
	f.submit(c, "echo hello", "echo oh no >&2; exit 3", "echo third")
	f.until(c, "all jobs are final", f.allFinal)
	counts := must(f.store.Counts(t.Context()))(t)
	if counts[drover.JobSucceeded] != 2 || counts[drover.JobFailed] != 1 {
		t.Errorf("counts are %v, want 2 succeeded and 1 failed", counts)
	}
	if out, err := f.log("a.out"), f.log("b.err"); out != "hello\n" || err != "oh no\n" {
		t.Errorf("logs are %q and %q", out, err)
	}
	c.CloseFleet(t.Context(), false)
	f.until(c, "the fleet is at rest", (*engine.Engine).AtRest)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if list := must(f.cfg.Clouds[0].Driver.List(t.Context(), nil))(t); len(list) > 0 {
		t.Errorf("the cloud still has %v", list)
	}
	f.close()
	before.wantBack(t)
}

func TestAControllerContinuesWhatTheLastOneStarted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, stop := f.begin()
	gate := filepath.Join(t.TempDir(), "gate")
	f.submit(c, "while [ ! -e "+gate+" ]; do sleep 0.02; done; echo once")
	f.until(c, "the job runs", runs(1))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, stop = f.begin()
	f.until(c, "all jobs are final", f.allFinal)
	sum := must(f.store.Summary(t.Context(), drover.TimeOf(time.Now())))(t)
	if sum.Succeeded != 1 || sum.Attempts != 1 || f.log("a.out") != "once\n" {
		t.Errorf("%d succeeded in %d attempts with log %q, want 1 in 1", sum.Succeeded, sum.Attempts, f.log("a.out"))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestARefusedCommitEndsTheControllerButNotItsJobs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := must(New(t.Context(), f.cfg))(t)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(t.Context()) }()
	f.submit(c, "sleep 60")
	f.until(c, "the job runs", runs(1))
	f.store.Close()
	c.post(t.Context(), engine.CancelAsked{All: true})
	if err := <-ended; err == nil {
		t.Error("the controller ended without an error although nothing could be written")
	}
	list := must(f.cfg.Clouds[0].Driver.List(t.Context(), nil))(t)
	if len(list) != 1 {
		t.Errorf("%d instances are listed, want the one with the job", len(list))
	}
}

func TestTheClockNeverGoesBack(t *testing.T) {
	k := clock{last: drover.TimeOf(time.Now().Add(time.Hour)), at: time.Now()}
	first := k.last
	if now := k.now(); now < first {
		t.Errorf("the clock went from %v to %v when the wall clock was set back", first, now)
	}
}

func TestAClockBehindTheRecordsIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var log bytes.Buffer
	f.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, ahead := range []time.Duration{0, 9000 * time.Hour} {
		must(f.store.Begin(t.Context(), f.cfg.Fleet))(t)
		asked := drover.TimeOf(time.Now().Add(ahead))
		err := f.store.Commit(t.Context(), []engine.Write{{Instance: &engine.Instance{ID: 1, Name: "test-1", Cloud: "here", State: drover.InstanceIdle, Asked: asked}}})
		if err != nil {
			t.Fatal(err)
		}
		must(New(t.Context(), f.cfg))(t)
		if got := strings.Contains(log.String(), "the clock is behind the newest record"); got != (ahead > 0) {
			t.Errorf("with a record %v ahead: %s", ahead, log.String())
		}
	}
}

func TestAListYieldsAddedAndRemovedInstances(t *testing.T) {
	list := func(ids ...string) map[string]driver.Instance {
		all := map[string]driver.Instance{}
		for _, id := range ids {
			in := driver.Instance{State: driver.Running}
			switch strings.TrimLeft(id, "abc") {
			case "!":
				in.State = driver.Stopped
			case "?":
				in.Failed = drover.Errorf(drover.KindCapacity, "no room")
			}
			in.ID = strings.TrimRight(id, "!?")
			all[in.ID] = in
		}
		return all
	}
	cl := &cloudView{seen: map[string]driver.Instance{}, created: map[string]driver.Instance{"b": {ID: "b"}}}
	for _, step := range []struct {
		name           string
		list           map[string]driver.Instance
		added, removed string
	}{
		{"the first list adds everything", list("a", "b"), "ab", ""},
		{"an unchanged list changes nothing", list("a", "b"), "", ""},
		{"one instance is new and one is missing", list("b", "c"), "c", "a"},
		{"a stopped instance counts as added", list("b!", "c"), "b", ""},
		{"so does one that could not be created", list("b!", "c?"), "c", ""},
		{"an empty list removes everything", list(), "", "bc"},
	} {
		added, removed := cl.replace(step.list)
		ids := ""
		for _, in := range added {
			ids += in.ID
		}
		if ids != step.added || strings.Join(removed, "") != step.removed {
			t.Errorf("%s: added %q, removed %q; want %q and %q", step.name, ids, removed, step.added, step.removed)
		}
	}
	if len(cl.created) != 0 {
		t.Error("a listed instance is still kept as created")
	}
}

func TestAnInstanceThatNoListHadIsForgotten(t *testing.T) {
	f := newFixture(t)
	c := must(New(t.Context(), f.cfg))(t)
	cl := must(c.cloud("here"))(t)
	cl.remember(driver.Instance{ID: "i-1"})
	in := engine.Instance{ID: 1, Cloud: "here", ProviderID: "i-1"}
	err := committer{c, must(c.newLoop())(t)}.Commit(t.Context(), []engine.Write{
		{Instance: &in}, {Gone: &engine.InstanceEnd{ID: 1, Departed: &engine.Departed{Instance: in}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := cl.find("i-1"); known {
		t.Error("it is kept as created")
	}
	if _, known := cl.recall("i-1"); !known {
		t.Error("a hook cannot find it")
	}
}

// fullRecorder is full after every event, and keeps the State of each segment.
type fullRecorder struct{ begun []engine.State }

func (r *fullRecorder) Begin(s engine.State)                 { r.begun = append(r.begun, s) }
func (r *fullRecorder) Append(engine.Event, engine.Decision) {}
func (r *fullRecorder) Full() bool                           { return true }

func TestAFullRecordingContinuesInTheNextSegment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	recorder := &fullRecorder{}
	f.cfg.Record = recorder
	c, stop := f.begin()
	f.submit(c, "echo a", "echo b")
	f.until(c, "all jobs are final", f.allFinal)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	sum := must(f.store.Summary(t.Context(), drover.TimeOf(time.Now())))(t)
	if sum.Succeeded != 2 || sum.Attempts != 2 {
		t.Errorf("%d succeeded in %d attempts", sum.Succeeded, sum.Attempts)
	}
	begun := recorder.begun
	if len(begun) < 5 || begun[0].Now != 0 || begun[len(begun)-1].Now == 0 {
		t.Errorf("%d segments have begun", len(begun))
	}
}
