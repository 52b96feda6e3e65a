package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"drover/internal/store"
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
			disk, fill, free := smallDisk(t)
			t.Setenv("XDG_STATE_HOME", disk)
			config := filepath.Join(t.TempDir(), "drover.yaml")
			text := "version: 1\nfleet: lab\nlisten: 127.0.0.1:0\nclouds:\n  here: {driver: local, max_instances: 1}\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			serve := func() (code int, said string) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel() // one that starts ends at once
				out, err := os.Create(filepath.Join(t.TempDir(), "out"))
				if err != nil {
					t.Fatal(err)
				}
				defer out.Close()
				code = run(ctx, []string{"serve", "-c", config}, out, out)
				text, _ := os.ReadFile(out.Name())
				return code, string(text)
			}
			records := filepath.Join(disk, "lab", "drover.db")
			if known {
				serve()
			}
			fill()
			code, said := serve()
			if code != 3 || !strings.Contains(said, "is full") || !strings.Contains(said, "hint: make room there") {
				t.Errorf("it ends with %d and says %s", code, said)
			}
			free()
			if code, said := serve(); code == 3 {
				t.Errorf("once there is room it ends with %d and says %s", code, said)
			}
			if s, err := store.Open(t.Context(), records); err != nil {
				t.Errorf("the records: %v", err)
			} else {
				s.Close()
			}
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
