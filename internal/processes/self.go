package processes

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// keepPrograms is how long an unused copy is kept, so that daily development builds do not fill the disk.
const keepPrograms = 24 * time.Hour

// CopySelf copies the running program into a folder, unless the copy exists, and returns the copy's path. The program's
// own file may be replaced while it runs, and under "go run" is deleted when it ends; a copy named by its content is
// neither replaced nor deleted.
func CopySelf(folder string) (string, error) {
	// The link in /proc leads to the running file, even if its name was deleted or reused.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer self.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, self); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "drover-"+hex.EncodeToString(hash.Sum(nil)[:16]))
	now := time.Now()
	if os.Chtimes(path, now, now) == nil {
		return path, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	forgetPrograms(folder, now.Add(-keepPrograms))
	return path, place(self, path)
}

// place copies the program under a temporary name and renames it, so that no one runs an incomplete copy. A hard link
// would be cheaper, but overwriting the original would overwrite it too.
func place(self *os.File, path string) error {
	if _, err := self.Seek(0, io.SeekStart); err != nil {
		return err
	}
	// A process forked during the copy would hold it open for writing, and the kernel does not execute such a file.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	next, err := os.CreateTemp(filepath.Dir(path), "next-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = io.Copy(next, self)
	if err := errors.Join(err, next.Chmod(0o700), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

// forgetPrograms removes old copies. Instances that run one keep it open; CopySelf makes a removed copy again if
// needed.
func forgetPrograms(folder string, before time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // there is nothing to forget
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}
