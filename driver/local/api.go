package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/driver"
	"drover/internal/atomicfile"
	"drover/internal/backoff"
)

// The files of an instance's folder.
const (
	recordFile = "record.json"
	tagsFile   = "tags.json"
	pidFile    = "pid"
	logFile    = "log"
	homeFolder = "home"
	tempFolder = "tmp"
	binFolder  = "bin"
)

// record is what there is to say of an instance, but for its tags.
type record struct {
	Candidate driver.Candidate `json:"candidate"`
	Address   string           `json:"address"`
	User      string           `json:"user"`
	HostKey   string           `json:"host_key"` // the public one, in SSH wire format, base64
	Created   drover.Time      `json:"created"`
	Boots     drover.Time      `json:"boots"` // when it stops pending, after its last start
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

// validName says whether a fleet or an instance may be called this: it becomes a folder's name and half of an id.
func validName(s string) bool { return namePattern.MatchString(s) }

// idOf names an instance for life: its fleet and its name.
func idOf(fleet, name string) string { return fleet + "." + name }

// path is the folder of the instance with this id, KindNotFound for an id that this driver never gave.
func (c *cloud) path(id string) (string, error) {
	fleet, name, _ := strings.Cut(id, ".")
	if !validName(fleet) || !validName(name) {
		return "", drover.Errorf(drover.KindNotFound, "there is no instance %q", id)
	}
	return filepath.Join(c.fleetFolder(fleet), name), nil
}

func readRecord(path string) (r record, err error) {
	return r, readJSON(filepath.Join(path, recordFile), &r)
}

// readInstance reads all that there is to say of the instance in a folder.
func readInstance(fleet, path string) (driver.Instance, error) {
	r, err := readRecord(path)
	if err != nil {
		return driver.Instance{}, err
	}
	var tags map[string]string
	if err := readJSON(filepath.Join(path, tagsFile), &tags); err != nil {
		return driver.Instance{}, err
	}
	in := driver.Instance{
		ID:           idOf(fleet, filepath.Base(path)),
		Tags:         tags,
		ProviderType: r.Candidate.ProviderType,
		Zone:         r.Candidate.Zone,
		Market:       r.Candidate.Market,
		State:        driver.Running,
		Reclaimed:    has(path, noticesFile),
		Addresses:    driver.Addresses{Private: r.Address, Public: r.Address, User: r.User},
		Created:      r.Created,
	}
	if drover.TimeOf(time.Now()) < r.Boots {
		in.State = driver.Pending
	}
	return in, nil
}

func readJSON(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// writeJSON puts a whole file in the place of the old one. Nothing is synced: no instance outlives this host's memory.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, b)
}

// lockInterval is the pause between two tries for a lock. Waiting in the kernel instead would ignore the context.
const lockInterval = 2 * time.Millisecond

// lock waits for the exclusive lock on a folder. The lock is the open file's: it passes to processes that inherit the file and ends
// when the last of them closes it, or at once by unlock.
func lock(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := tryLock(path)
		if f != nil || err != nil {
			return f, err
		}
		if err := backoff.For(ctx, lockInterval); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

// tryLock returns nil if the folder is locked by another, or was replaced while it was being locked.
func tryLock(path string) (*os.File, error) {
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

// unlock ends a lock for every process that shares it.
func unlock(f *os.File) {
	unix.Flock(int(f.Fd()), unix.LOCK_UN) // closing ends it too, but not before a fork under way has reached its exec
	f.Close()
}

// lockFleet makes a fleet's folder if need be and locks it.
func (c *cloud) lockFleet(ctx context.Context, fleet string) (*os.File, error) {
	path := c.fleetFolder(fleet)
	for {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, err
		}
		// The folder may be taken away again in between, by a Close that found it empty.
		f, err := lock(ctx, path)
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
	}
}

// lives says whether the instance in a folder is locked by its processes. Those who ask share a lock, so they do not take each
// other for an instance.
func lives(path string) (bool, error) {
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
