package remote

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/wire"
)

// events is a Handler that records its calls.
type events struct {
	exits   chan wire.Exited
	apis    chan wire.API
	logs    chan string
	notices chan drover.Notice
	ails    chan string
}

func newEvents() events {
	return events{make(chan wire.Exited, 100), make(chan wire.API, 100), make(chan string, 100), make(chan drover.Notice, 100), make(chan string, 100)}
}

func (e events) Exited(m wire.Exited)   { e.exits <- m }
func (e events) API(m wire.API)         { e.apis <- m }
func (e events) Notice(n drover.Notice) { e.notices <- n }
func (e events) Ailing(text string)     { e.ails <- text }
func (e events) Log(line string) {
	select {
	case e.logs <- line:
	default:
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// attempt returns the id of an attempt of a job that is not an array.
func attempt(job int64) drover.AttemptID {
	return drover.AttemptID{Job: drover.JobID{Number: job, Index: -1}, Number: 1}
}

// realInstance returns an instance that has a real shell in its own home and gets this test binary as its runner.
func realInstance(t testing.TB) Target {
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	i := newFakeInstance(t, "i-1")
	i.exec = realShell(home)
	target := target(i, "i-1")
	target.Runner = runnerOf(binary)
	t.Cleanup(func() { endDaemon(t, filepath.Join(home, ".drover")) })
	return target
}

// endDaemon ends the runner's daemon, whose pid is in the daemon's log.
func endDaemon(t testing.TB, folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "daemon.log"))
	if err != nil {
		return // it never started
	}
	found := regexp.MustCompile(`daemon (\d+) `).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no daemon in %q", text)
	}
	pid, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	waitUntil(t, "the daemon ends", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.Contains(status, []byte(") Z ")) // its new parent may not have reaped it yet
	})
}

// waitUntil polls, since the processes are not children of the test.
func waitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// covers D1
func TestARealRunner(t *testing.T) {
	target := realInstance(t)
	ctx := testContext(t)
	c, err := Connect(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := newEvents()
	go c.Run(ctx, e)
	if lines := c.LastLines(); len(lines) == 0 || !strings.Contains(lines[len(lines)-1], "is starting with 0 attempts") {
		t.Errorf("the runner's log ends %q", lines)
	}

	input := []byte("a small input")
	sum := sha256.Sum256(input)
	hash := hex.EncodeToString(sum[:])
	s := wire.Start{
		ID:      attempt(1),
		Command: []string{"sh", "-c", "cat in; head -c 100000 /dev/zero; echo done >out.txt; exit 3"},
		Files:   []drover.File{{Path: "in", Mode: 0o644, Size: int64(len(input)), Hash: hash}},
		Outputs: []string{"*.txt"},
		Grace:   time.Second,
	}
	err = c.Start(ctx, s, func(string) (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(input)), int64(len(input)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	exit := <-e.exits
	if exit.ID != s.ID || exit.Exit.Code != 3 {
		t.Errorf("exit %+v", exit)
	}
	log, err := c.FetchLog(ctx, s.ID, "stdout", 2, 11)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(log); err != nil || string(got) != "small input" {
		t.Errorf("log %q, %v", got, err)
	}
	var files []string
	if _, err := c.Outputs(ctx, s.ID, func(r io.Reader) error {
		for in := tar.NewReader(r); ; {
			h, err := in.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			files = append(files, h.Name)
		}
	}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"out.txt"}, files); diff != "" {
		t.Error(diff)
	}

	old := target
	old.Epoch = 0
	refused(t, old, drover.KindConflict, "epoch 0 is over")

	again, err := Connect(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if has := again.Hello().Attempts; len(has) != 1 || has[0].ID != s.ID || has[0].Exit == nil || has[0].Exit.Code != 3 {
		t.Errorf("the next controller gets %+v", has)
	}
	if err := again.Forget(s.ID, ""); err != nil {
		t.Error(err)
	}
}

// An instance may fail its boot probe while jobs run on it, when the controller that started them restarts.
// covers D4 L23
func TestARealRunnerWithAFailingBootProbe(t *testing.T) {
	target := realInstance(t)
	ctx := testContext(t)
	serve := func(t *testing.T, target Target) (*Conn, events) {
		t.Helper()
		c, err := Connect(ctx, target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		e := newEvents()
		go c.Run(ctx, e)
		return c, e
	}
	failing, hanging := target, target
	target.BootProbe, failing.BootProbe, hanging.BootProbe = "true", "echo no disk; exit 7", "exec sleep 5"
	hanging.Timeouts.BootProbe = 100 * time.Millisecond
	const (
		failed = "boot probe exited with 7: Welcome; to this host no disk"
		hung   = "boot probe: no answer within 100ms"
	)

	t.Run("an instance without attempts is refused", func(t *testing.T) {
		refused(t, failing, drover.KindTransient, failed)
		refused(t, hanging, drover.KindTransient, hung)
	})
	first, _ := serve(t, target)
	if said := first.ProbeFailed(); said != "" {
		t.Errorf("a probe that passed is reported as failed: %s", said)
	}
	s := wire.Start{ID: attempt(1), Command: []string{"sleep", "60"}, Grace: time.Second}
	if err := first.Start(ctx, s, nil); err != nil {
		t.Fatal(err)
	}
	first.Close()

	t.Run("an instance with an attempt is accepted, whether the probe fails or hangs", func(t *testing.T) {
		for _, c := range []struct {
			target Target
			says   string
		}{{failing, failed}, {hanging, hung}} {
			conn, _ := serve(t, c.target)
			if said := conn.ProbeFailed(); said != c.says {
				t.Errorf("the probe's failure is %q, want %q", said, c.says)
			}
			if has := conn.Hello().Attempts; len(has) != 1 || has[0].ID != s.ID || has[0].Exit != nil {
				t.Errorf("attempts %+v, want the one that runs", has)
			}
		}
	})
	t.Run("an ended attempt is reported until it is forgotten, and then the instance is refused again", func(t *testing.T) {
		conn, e := serve(t, failing)
		if err := conn.Stop(s.ID, time.Second); err != nil {
			t.Fatal(err)
		}
		if exit := <-e.exits; exit.ID != s.ID {
			t.Errorf("exit %+v", exit)
		}
		conn, _ = serve(t, failing)
		if has := conn.Hello().Attempts; len(has) != 1 || has[0].Exit == nil {
			t.Errorf("attempts %+v, want one that has ended", has)
		}
		if err := conn.Forget(s.ID, ""); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "it is forgotten", func() bool {
			c, err := Connect(ctx, failing)
			if err == nil {
				c.Close()
			}
			return err != nil
		})
		refused(t, failing, drover.KindTransient, failed)
	})
}

// BenchmarkConnect measures the time until a deployed runner has sent Hello.
func BenchmarkConnect(b *testing.B) {
	target := realInstance(b)
	c, err := Connect(testContext(b), target)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		c, err := Connect(testContext(b), target)
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
