package local

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// unprivileged makes a folder of a user without privileges, and has the rest of the test use files as that user.
func unprivileged(t *testing.T) (folder string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if os.Geteuid() != 0 {
		return folder
	}
	const nobody = 65534
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	unix.Setfsuid(nobody)
	t.Cleanup(func() { unix.Setfsuid(0); runtime.UnlockOSThread() })
	return folder
}

func TestRemoveAll(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	gone := func(t *testing.T, path string, err error) {
		t.Helper()
		if _, still := os.Lstat(path); err != nil || still == nil {
			t.Errorf("got %v, and %s remains: %t", err, path, still == nil)
		}
	}
	t.Run("removes what a job made read-only", func(t *testing.T) {
		instance := filepath.Join(unprivileged(t), "one")
		inner := filepath.Join(instance, "home", "pkg", "mod")
		must(t, os.MkdirAll(inner, 0o700))
		must(t, os.WriteFile(filepath.Join(inner, "file"), nil, 0o400))
		must(t, os.Chmod(inner, 0o500))
		must(t, os.Chmod(filepath.Dir(inner), 0))
		gone(t, instance, removeAll(t.Context(), instance))
	})
	t.Run("has podman remove what belongs to other users", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can make another user's files")
		}
		bin := t.TempDir()
		must(t, os.WriteFile(filepath.Join(bin, "podman"), []byte("#!/bin/sh\n[ \"$1\" = unshare ] && shift && exec \"$@\"\n"), 0o755))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		must(t, os.Chmod(filepath.Dir(bin), 0o755))
		folder := unprivileged(t)
		instance := filepath.Join(folder, "one")
		must(t, os.MkdirAll(filepath.Join(instance, "layer"), 0o755))
		unix.Setfsuid(0)
		must(t, os.MkdirAll(filepath.Join(instance, "layer", "root", "private"), 0o700))
		unix.Setfsuid(65534)
		gone(t, instance, removeAll(t.Context(), instance))
	})
}
