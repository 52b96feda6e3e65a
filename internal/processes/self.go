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

// keepPrograms is how long a copy that nobody asked for stays, so that a development build a day does not fill the
// disk.
const keepPrograms = 24 * time.Hour

// CopySelf copies the program that runs into a folder, unless it is there, and returns the copy's path. The program
// itself may be replaced while it runs, and under "go run" is deleted when it ends; a copy named by its content is
// neither.
func CopySelf(folder string) (string, error) {
	// The link in /proc leads to the very file that runs, even where its name is gone or another's.
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

// place copies the program under a name of its own and renames it, so that no one ever runs half of it. A hard link
// would be cheaper, but whoever writes over the original would write over it too.
func place(self *os.File, path string) error {
	if _, err := self.Seek(0, io.SeekStart); err != nil {
		return err
	}
	// A process that is forked meanwhile would hold the copy open for writing, and the kernel executes no such file.
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

// forgetPrograms takes old copies away. Instances that run from one keep it open; whoever needs it again copies it
// again.
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
