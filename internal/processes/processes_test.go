package processes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWithMarker(t *testing.T) {
	marker := "DROVER_PROCESSES_TEST=" + t.TempDir()
	tree := exec.Command("sh", "-c", "env -i sleep 60 & env -i sleep 60 & wait")
	tree.Env = []string{marker, "PATH=" + os.Getenv("PATH")}
	if err := tree.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tree.Wait() }()
	var found []int
	for deadline := time.Now().Add(10 * time.Second); len(found) < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d processes are found", len(found))
		}
		var err error
		if found, err = WithMarker(marker); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("finds a process that started with the marker, and its descendants without it", func(t *testing.T) {
		if !slices.Contains(found, tree.Process.Pid) || slices.Contains(found, os.Getpid()) {
			t.Errorf("found %v, want process %d among them, but not this one", found, tree.Process.Pid)
		}
		if !Marked(tree.Process.Pid, marker) || Marked(os.Getpid(), marker) || Marked(tree.Process.Pid, marker+"x") {
			t.Error("Marked confuses the marker with others")
		}
	})
	t.Run("finds nothing after EndAll", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := EndAll(ctx, func() ([]int, error) { return WithMarker(marker) }); err != nil {
			t.Fatal(err)
		}
		<-ended
		if left, err := WithMarker(marker); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	})
}

func TestHandle(t *testing.T) {
	for _, c := range []struct {
		script        string
		any, grandson bool
	}{
		{"sleep 60 & wait", false, false},
		{"trap : TERM; sleep 60 & while :; do wait; done", true, false},
		{"(trap : TERM; while :; do sleep 0.1; done) & wait", true, true},
		{"trap '' TERM; sleep 60 & wait", false, false},
		{"env --block-signal=TERM sleep 60 & wait", true, true}, // as a program does that waits for it with sigwait
		{"while :; do /bin/true; done", false, false},           // blocks all signals while it forks
	} {
		tree := exec.Command("sh", "-c", "echo started; "+c.script)
		out, err := tree.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		var any, grandson bool
		looks := 0
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && (!c.any || any != c.any || grandson != c.grandson); {
			table, err := ReadTable()
			if err != nil {
				t.Fatal(err)
			}
			// This process has other children in other tests, so the table is cut to the tree.
			self := os.Getpid()
			table[self] = slices.DeleteFunc(table[self], func(p process) bool { return p.pid != tree.Process.Pid })
			any, grandson = table.Handle(self, unix.SIGTERM, false), table.Handle(self, unix.SIGTERM, true)
			if looks++; !c.any && (any || looks == 50) {
				break
			}
		}
		if any != c.any || grandson != c.grandson {
			t.Errorf("%s: handled is %v, and %v below its first process", c.script, any, grandson)
		}
		if err := EndAll(t.Context(), func() ([]int, error) {
			all, err := processes()
			return withDescendants(all, func(p process) bool { return p.pid == tree.Process.Pid }), err
		}); err != nil {
			t.Error(err)
		}
		_ = tree.Wait()
	}
}

func TestCopySelfCopiesOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bin")
	first, err := CopySelf(folder)
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.Stat(first)
	if err != nil || made.Mode() != 0o700 {
		t.Fatalf("%v, %v", made, err)
	}
	old := filepath.Join(folder, "drover-old")
	long := time.Now().Add(-2 * keepPrograms)
	if err := os.WriteFile(old, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	again, err := CopySelf(folder)
	if now, missing := os.Stat(again); err != nil || missing != nil || !os.SameFile(made, now) {
		t.Errorf("%s is not %s: %v, %v", again, first, err, missing)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if _, err := CopySelf(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("an unused copy is still there: %v", err)
	}
}
