package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"drover"
)

// Lock is the right to be the only controller of a state. It ends with the process that holds it, however that ends.
type Lock struct{ f *os.File }

// lockPatience is how long LockFile waits for another process. A controller that was killed while it started another
// program can hold its lock for a moment longer, and InUse holds it for a moment.
const lockPatience = time.Second

// LockFile locks the state at path, or where links at path lead. The lock is a file beside the state. LockFile waits up
// to a second for another process to release it; then the error is of KindTransient and names that process.
func LockFile(path string) (*Lock, error) {
	for end := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		lock, err := tryLock(path)
		if drover.KindOf(err) != drover.KindTransient || time.Now().After(end) {
			return lock, err
		}
	}
}

// InUse reports whether a process holds the lock of the state at path.
func InUse(path string) bool {
	path, err := Resolve(path)
	if err != nil {
		return false
	}
	f, err := os.Open(path + ".lock")
	if err != nil {
		return false
	}
	defer f.Close()
	// A shared lock, so that concurrent callers do not mistake each other for the holder.
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

func tryLock(path string) (*Lock, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, fmt.Errorf("locking the state: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking the state: %w", err)
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the state: %w", err)
	}
	if err := take(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f}, nil
}

func take(f *os.File, path string) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return drover.Errorf(drover.KindTransient, "the state %s is in use by another controller%s", path, holder(f)).
			WithHint("stop that controller, or wait until it exits")
	}
	if err != nil {
		return fmt.Errorf("locking the state %s: %w", path, err)
	}
	// The number is for people only; the lock is the kernel's.
	n, err := f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	if err = errors.Join(err, f.Truncate(int64(n))); err != nil {
		return fmt.Errorf("locking the state %s: %w", path, err)
	}
	return nil
}

// holder names the process that holds the lock, if it has recorded its number.
func holder(f *os.File) string {
	pid, err := io.ReadAll(io.LimitReader(f, 20))
	if err != nil || len(pid) == 0 {
		return ""
	}
	return ", process " + strings.TrimSpace(string(pid))
}

// Unlock releases the lock. The file stays: deleting it would let two processes lock two files of one name.
func (l *Lock) Unlock() error { return l.f.Close() }
