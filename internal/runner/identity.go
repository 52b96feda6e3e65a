package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// identity says whose instance this is. The first controller that comes fixes it for the folder's life.
type identity struct {
	Fleet    string `json:"fleet"`
	Instance string `json:"instance"`
}

// settleIdentity returns the folder's identity, which becomes the given one if it has none yet.
func settleIdentity(given identity) (identity, error) {
	var known identity
	text, err := os.ReadFile("identity")
	if err == nil {
		return known, json.Unmarshal(text, &known)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return known, err
	}
	if given.Fleet == "" || given.Instance == "" {
		return known, errors.New("no controller has yet said which fleet and instance this is")
	}
	text, err = json.Marshal(given)
	if err != nil {
		return known, err
	}
	return given, writeDurably("identity", text)
}

// writeAtomically replaces the file at path: a reader sees the old content or the new, whole.
func writeAtomically(path string, content []byte) error { return replaceFile(path, content, false) }

// writeDurably is writeAtomically that also survives a power failure.
func writeDurably(path string, content []byte) error { return replaceFile(path, content, true) }

func replaceFile(path string, content []byte, durable bool) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil || !durable {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockFile opens the file at path and takes its lock, waiting for it unless asked not to. Closing the file releases the lock, and so
// does the process's death.
func lockFile(path string, flags int, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}

// bootID names the present boot of the VM.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
