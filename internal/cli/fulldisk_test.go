//go:build chaos || e2e

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/control"
	"drover/internal/daemon"
)

// smallDisk returns a folder on its own disk, and functions that fill and empty that disk.
func smallDisk(t *testing.T) (path string, fill func(), free func()) {
	t.Helper()
	path = t.TempDir()
	fill, free = mountSmallDisk(t, path)
	return path, fill, free
}

// mountSmallDisk is smallDisk for an existing folder.
func mountSmallDisk(t *testing.T, path string) (fill, free func()) {
	t.Helper()
	if err := unix.Mount("drover-test", path, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(path, unix.MNT_DETACH) })
	filler := filepath.Join(path, "filler")
	fill = func() {
		if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !control.IsFull(err) {
			t.Fatalf("the disk is not full: %v", err)
		}
	}
	return fill, func() { os.Remove(filler) }
}

// covers D9
func TestAControllerWaitsForRoomOnAFullDisk(t *testing.T) {
	t.Parallel()
	p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
	p.state = t.TempDir()
	records := filepath.Join(p.state, "drover", "lab")
	instances, err := filepath.EvalSymlinks(t.TempDir()) // they do not use the small disk
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(records, 0o700), os.Chmod(instances, 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(records) }) // after it is unmounted
	fill, free := mountSmallDisk(t, records)
	if err := os.Symlink(instances, filepath.Join(records, "drover.d")); err != nil {
		t.Fatal(err)
	}
	finish := filepath.Join(t.TempDir(), "finish")
	p.write("drover.yaml", p.configuration("", ""))
	p.write("first.yaml", "jobs: [{name: first, command: [sh, -c, 'until [ -e "+finish+" ]; do sleep 0.05; done']}]\n")
	p.write("second.yaml", "jobs: [{name: second, command: [\"true\"]}]\n")
	p.serve()
	p.drover("submit", "first.yaml")
	eventually(t, 30*time.Second, "the first job runs", func() bool { return p.jobs()[0].State == drover.JobRunning })

	fill()
	if err := os.WriteFile(finish, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const full = "disk with the controller's records is full"
	eventually(t, 30*time.Second, "the controller waits for room", func() bool { return strings.Contains(p.process.err.tail(), full) })
	if code := p.readyz(); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz returned %d", code)
	}
	if r := p.run("-c", "drover.yaml", "doctor"); r.code() != exitWorkFailed || !strings.Contains(r.out.String(), full) {
		t.Errorf("doctor exited with %d and printed %s", r.code(), r.out.String())
	}
	r := p.run("-c", "drover.yaml", "submit", "--retry-for", "1s", "second.yaml")
	if r.code() != 3 || !strings.Contains(r.err.tail(), full) {
		t.Errorf("submit exited with %d and printed %s", r.code(), r.err.tail())
	}
	if len(p.instances()) != 1 || isClosed(p.process.ended) {
		t.Fatal("the controller lost its instance, or ended")
	}

	free()
	eventually(t, 30*time.Second, "the controller is ready again", func() bool { return p.readyz() == http.StatusOK })
	p.drover("submit", "second.yaml")
	p.drover("wait", "--batch", "second")
	p.drover("wait", "--batch", "first")
	for _, j := range p.jobs() {
		if j.State != drover.JobSucceeded || len(j.Attempts) != 1 {
			t.Errorf("job %v is %s after %d attempts", j.ID, j.State, len(j.Attempts))
		}
	}
	p.end()
}

// readyz returns the status code of /readyz.
func (p *daemonPlace) readyz() int {
	p.t.Helper()
	r, err := http.Get("http://" + p.address + "/readyz")
	if err != nil {
		p.t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

func TestAControllerDoesNotStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		t.Run(map[bool]string{false: "new fleet", true: "existing fleet"}[known], func(t *testing.T) {
			p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
			var fill, free func()
			p.state, fill, free = smallDisk(t)
			p.write("drover.yaml", p.configuration("", ""))
			starts := func() {
				t.Helper()
				p.serve()
				p.process.signal(syscall.SIGTERM)
				if code := p.process.wait(20 * time.Second); code != 0 {
					t.Errorf("it exited with %d: %s", code, p.process.err.tail())
				}
			}
			if known {
				starts()
			}
			fill()
			full := p.start("serve", "-c", "drover.yaml")
			said := func() string { return full.err.tail() }
			if code := full.wait(20 * time.Second); code != 3 || !strings.Contains(said(), "is full") || !strings.Contains(said(), "hint: free up space there") {
				t.Errorf("it exited with %d and printed %s", code, said())
			}
			free()
			starts()
		})
	}
}

func TestKeepFileDoesNotRewriteTheSameContents(t *testing.T) {
	disk, fill, free := smallDisk(t)
	path := filepath.Join(disk, "file")
	if err := daemon.KeepFile(path, []byte("as it is")); err != nil {
		t.Fatal(err)
	}
	fill()
	if err := daemon.KeepFile(path, []byte("as it is")); err != nil {
		t.Errorf("the same contents: %v", err)
	}
	if err := daemon.KeepFile(path, []byte(strings.Repeat("x", 1<<16))); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("other contents: %v", err)
	}
	free()
	if text, err := os.ReadFile(path); string(text) != "as it is" {
		t.Error(fmt.Sprintf("it holds %q", text), err)
	}
	if _, err := os.Stat(path + ".new"); err == nil {
		t.Error("half a file is left")
	}
}
