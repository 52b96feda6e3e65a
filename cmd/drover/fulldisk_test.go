package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// smallDisk is a folder on a disk of its own, and a file that fills it.
func smallDisk(t *testing.T) (path string, fill func(), free func()) {
	t.Helper()
	path = t.TempDir()
	if err := unix.Mount("drover-test", path, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(path, unix.MNT_DETACH) })
	filler := filepath.Join(path, "filler")
	fill = func() {
		if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !isFull(err) {
			t.Fatalf("the disk is not full: %v", err)
		}
	}
	return path, fill, func() { os.Remove(filler) }
}

func TestAControllerDoesNotStartOnAFullDisk(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(map[bool]string{false: "of a fleet that is new", true: "of a fleet that it has kept before"}[known], func(t *testing.T) {
			p := &daemonPlace{place: newPlace(t), address: freeAddress(t)}
			var fill, free func()
			p.state, fill, free = smallDisk(t)
			p.write("drover.yaml", p.configuration("", ""))
			starts := func() {
				t.Helper()
				p.serve()
				p.process.signal(syscall.SIGTERM)
				if code := p.process.wait(20 * time.Second); code != 0 {
					t.Errorf("it ends with %d: %s", code, p.process.err.tail())
				}
			}
			if known {
				starts()
			}
			fill()
			full := p.start("serve", "-c", "drover.yaml")
			said := func() string { return full.err.tail() }
			if code := full.wait(20 * time.Second); code != 3 || !strings.Contains(said(), "is full") || !strings.Contains(said(), "hint: make room there") {
				t.Errorf("it ends with %d and says %s", code, said())
			}
			free()
			starts()
		})
	}
}

func TestWhatIsKeptAlreadyIsNotWrittenAgain(t *testing.T) {
	disk, fill, free := smallDisk(t)
	path := filepath.Join(disk, "file")
	if err := keepFile(path, []byte("as it is")); err != nil {
		t.Fatal(err)
	}
	fill()
	if err := keepFile(path, []byte("as it is")); err != nil {
		t.Errorf("what it holds already: %v", err)
	}
	if err := keepFile(path, []byte(strings.Repeat("x", 1<<16))); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("something else: %v", err)
	}
	free()
	if text, err := os.ReadFile(path); string(text) != "as it is" {
		t.Error(fmt.Sprintf("it holds %q", text), err)
	}
	if _, err := os.Stat(path + ".new"); err == nil {
		t.Error("half a file is left")
	}
}
