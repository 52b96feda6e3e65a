// Package folderlock locks folders against other processes. A lock ends when the last process that has its file open
// ends.
package folderlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"drover/internal/backoff"
)

// lockInterval is the pause between two tries for a lock. Waiting in the kernel instead would ignore the context.
const lockInterval = 2 * time.Millisecond

// Lock waits for the exclusive lock on a folder. The lock is the open file's: it passes to processes that inherit the
// file and ends when the last of them closes it, or at once by Unlock.
func Lock(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := Try(path)
		if f != nil || err != nil {
			return f, err
		}
		if err := backoff.For(ctx, lockInterval); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

// Try is Lock without the wait. It returns nil if the folder is already locked, or was replaced in the meantime.
func Try(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && stillAt(f, path) {
		return f, nil
	}
	f.Close()
	if err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, nil
}

func stillAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(opened, there)
}

// Unlock ends a lock for every process that shares it.
func Unlock(f *os.File) {
	unix.Flock(int(f.Fd()), unix.LOCK_UN) // closing ends it too, but not before a fork under way has reached its exec
	f.Close()
}

// Held reports whether a folder is locked. Its callers share a lock, so they do not mistake each other for the holder.
func Held(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return false, err
}
