package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/wire"
)

// fillAttempts mounts a full disk over the folder of the attempts.
func fillAttempts(t *testing.T, i *instance) (room func()) {
	t.Helper()
	path := filepath.Join(i.dir, "attempts")
	mountSmall(t, path)
	return fill(t, path)
}

func mountSmall(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mount("drover-test", path, "tmpfs", 0, "size=64k,nr_inodes=64,mode=0700"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(path, unix.MNT_DETACH) })
}

// fill leaves no room on the disk under a folder.
func fill(t *testing.T, path string) (room func()) {
	t.Helper()
	full := filepath.Join(path, "full")
	if err := os.WriteFile(full, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	return func() {
		if err := os.Remove(full); err != nil {
			t.Error(err)
		}
	}
}

// checkNoOutputs checks that an attempt whose folder could not be filled sends no outputs instead of an error, after
// which the controller would ask again forever.
func checkNoOutputs(t *testing.T, i *instance) {
	t.Helper()
	if files, r := i.bulk().outputs(attempt(1, 1)); len(files) > 0 || r.Error != "" {
		t.Errorf("its outputs are %v, with %+v", files, r)
	}
}

func TestAnAttemptOnAFullDiskIsLost(t *testing.T) {
	i := newInstance(t)
	c := i.connect()
	room := fillAttempts(t, i)
	asked := sh(attempt(1, 1), "true")
	asked.Outputs = []string{"*"}
	c.start(asked)
	ailing := c.want("Ailing", func(m wire.Message) bool {
		if m.Exited != nil {
			t.Fatalf("the attempt ended before the instance was reported unhealthy, so another could begin: %+v", m.Exited)
		}
		return m.Ailing != nil
	}).Ailing
	if !strings.Contains(ailing.Text, "no space left") {
		t.Errorf("the instance reports %q", ailing.Text)
	}
	if e := c.exited(attempt(1, 1)); e.Cause != drover.CauseLost || !strings.Contains(e.Text, "no space left") {
		t.Errorf("got %+v", e)
	}
	checkNoOutputs(t, i)
	room()
	c.start(sh(attempt(1, 2), "true"))
	if e := c.exited(attempt(1, 2)); e.Code != 0 || e.Cause != "" {
		t.Errorf("after space was freed: %+v", e)
	}
}

func TestADaemonStartsOnAFullDisk(t *testing.T) {
	i := newInstance(t)
	if err := os.Mkdir(i.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mountSmall(t, i.dir)
	c := i.connect()
	c.ran(attempt(1, 1), "echo done")
	fill(t, i.dir)
	i.kill(i.daemon())
	c = i.connect()
	if got := c.hello.Attempts; len(got) != 1 || got[0].Exit == nil || got[0].Exit.Stdout != "done\n" {
		t.Errorf("got %+v", c.hello)
	}
	i.daemon() // its pid is on record
}

func TestANewControllerTakesOverAnInstanceWithAFullDisk(t *testing.T) {
	i := newInstance(t)
	if err := os.Mkdir(i.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mountSmall(t, i.dir)
	i.connect()
	fill(t, i.dir)
	next := hello
	next.Epoch = 10
	if c := i.connectAs(i.binary, next); c.hello.Error != "" {
		t.Fatalf("got %+v", c.hello)
	}
	i.kill(i.daemon())
	if c := i.connect(); c.hello.Error == "" || c.hello.Epoch != 10 {
		t.Errorf("an earlier controller got %+v", c.hello)
	}
}

func TestConflictingInputsAreTheJobsFault(t *testing.T) {
	i := newInstance(t)
	c := i.connect()
	a := file("a", "alpha\n", 0o644)
	inner := file("a/b", "alpha\n", 0o644)
	if r := i.bulk().put(a.Hash, "alpha\n"); r.Error != "" {
		t.Fatal(r.Error)
	}
	asked := sh(attempt(1, 1), "true").withFiles(a, inner)
	asked.Outputs = []string{"*"}
	c.start(asked)
	if e := c.exited(attempt(1, 1)); e.Cause != drover.CauseNoStart || !strings.Contains(e.Text, `"a/b"`) {
		t.Errorf("got %+v", e)
	}
	checkNoOutputs(t, i)
}

func TestAJobThatRemovesItsFolderHasNoOutputs(t *testing.T) {
	i := newInstance(t)
	c := i.connect()
	asked := sh(attempt(1, 1), `work=$PWD; cd /; rm -r "$work"`)
	asked.Outputs = []string{"*.txt"}
	c.start(asked)
	if e := c.exited(attempt(1, 1)); e.Code != 0 {
		t.Fatalf("got %+v", e)
	}
	if files, r := i.bulk().outputs(attempt(1, 1)); len(files) > 0 || r.Error != "" || !slices.Equal(r.Unmatched, []int{0}) {
		t.Errorf("its outputs are %v, with %+v", files, r)
	}
}
