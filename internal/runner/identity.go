package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"drover/internal/atomicfile"
)

// identity is the fleet and name of this instance. The first controller to connect fixes it for the folder's life.
type identity struct {
	Fleet    string `json:"fleet"`
	Instance string `json:"instance"`
}

// settleIdentity returns the folder's identity. If the folder has none, it stores the given one.
func settleIdentity(given identity) (identity, error) {
	var known identity
	if err := readJSON("identity", &known); !errors.Is(err, fs.ErrNotExist) {
		return known, err
	}
	if given.Fleet == "" || given.Instance == "" {
		return known, errors.New("no controller has assigned a fleet and an instance name yet")
	}
	text, err := json.Marshal(given)
	if err != nil {
		return known, err
	}
	return given, atomicfile.WriteDurably("identity", text)
}

// lockFile opens the file at path and takes its lock, waiting for it only if wait is set. Closing the file releases the
// lock, and so does the process's death.
func lockFile(path string, flags int, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), how)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}

// bootID returns the id of the VM's current boot.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}
