package daemon

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/atomicfile"
	"drover/internal/record"
	"drover/internal/store"
)

// RunFolder is where one `drover run` keeps what it needs to continue after a crash: the records, the fleet key,
// inputs, and the drivers' files. It is removed when the run has ended.
type RunFolder struct {
	ID   string // also the fleet
	Path string
	lock *store.Lock

	Fresh   bool      // made by this process
	Touched time.Time // when its records were last written to, before it was locked
}

// TestFleet begins the name of every fleet that `drover driver test` makes. No controller has such a fleet.
const TestFleet = "drover-check-"

// StateHome returns the user's folder for the state of runs.
func StateHome() (string, error) {
	home := os.Getenv("XDG_STATE_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", drover.Errorf(drover.KindInvalid, "cannot find a folder for the state of runs: %v", err).WithHint("set HOME or XDG_STATE_HOME")
		}
		home = filepath.Join(user, ".local", "state")
	}
	return filepath.Join(home, "drover"), nil
}

// MakeStateHome returns StateHome, after creating it if it does not exist.
func MakeStateHome() (string, error) {
	home, err := StateHome()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", drover.Errorf(drover.KindInvalid, "creating the folder for the state of runs: %v", err).WithHint("set XDG_STATE_HOME to a folder that this user can write to")
	}
	return home, nil
}

// NewRunFolder creates and locks the folder of a new run.
func NewRunFolder() (*RunFolder, error) {
	home, err := MakeStateHome()
	if err != nil {
		return nil, err
	}
	id := "run-" + strings.ToLower(rand.Text()[:6])
	path := filepath.Join(home, id)
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	f, err := LockRunFolder(id, path)
	if err == nil {
		f.Fresh = true
	}
	return f, err
}

// FindRunFolder locks the folder of an unfinished run.
func FindRunFolder(id string) (*RunFolder, error) {
	home, err := StateHome()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(home, id)
	if _, err := os.Stat(filepath.Join(path, "run.json")); err != nil {
		left := "drover runs lists your runs; none can be resumed"
		if HasEnded(id) {
			return nil, drover.Errorf(drover.KindConflict, "run %s has ended", id).WithHint("to rerun failed jobs: drover run --resume %s --failed", id)
		}
		if ids := UnfinishedRuns(home); len(ids) > 0 {
			left = "runs that can be resumed: " + strings.Join(ids, ", ")
		}
		return nil, drover.Errorf(drover.KindNotFound, "there is no unfinished run %s", id).WithHint("%s", left)
	}
	return LockRunFolder(id, path)
}

// HasEnded reports whether the records of an ended run are kept.
func HasEnded(id string) bool {
	home, err := StateHome()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(EndedHome(home), id, "run.json"))
	return err == nil
}

// LockRunFolder locks the folder of a run for this process.
func LockRunFolder(id, path string) (*RunFolder, error) {
	lock, err := store.LockFile(filepath.Join(path, "drover.db"))
	if err != nil {
		return nil, err
	}
	f := &RunFolder{ID: id, Path: path, lock: lock}
	for _, name := range []string{"drover.db", "drover.db-wal"} {
		if info, err := os.Stat(f.File(name)); err == nil && info.ModTime().After(f.Touched) {
			f.Touched = info.ModTime()
		}
	}
	return f, nil
}

// UnfinishedRuns lists the runs whose folders exist.
func UnfinishedRuns(home string) (ids []string) {
	entries, err := os.ReadDir(home)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(home, e.Name(), "run.json")); err == nil {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids
}

// File returns the path of a file or folder in it.
func (f *RunFolder) File(name string) string { return filepath.Join(f.Path, name) }

// Close releases the run's lock; the folder stays.
func (f *RunFolder) Close() error { return f.lock.Unlock() }

// Remove removes the folder: nothing of the run is left to resume or clean up.
func (f *RunFolder) Remove() error { return os.RemoveAll(f.Path) }

// keptRecordings is the number of ended runs whose flight recordings are kept, if they take no more than
// record.DefaultLimit.
const keptRecordings = 20

// RecordingOf returns the path of the recording of an ended run.
func RecordingOf(home, id string) string { return filepath.Join(home, "recordings", id) }

// keptFailed is the number of ended runs with failures whose records are kept, so that failed jobs can be run again.
const keptFailed = 20

// EndedHome returns the folder for the records of such runs.
func EndedHome(home string) string { return filepath.Join(home, "ended") }

// Finish removes the folder of an ended run, but keeps its recording beside the last others and, if jobs failed, its
// records.
func (f *RunFolder) Finish(failed bool) error {
	kept := RecordingOf(filepath.Dir(f.Path), f.ID)
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	if err := os.Rename(f.File("recording"), kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := Prune(filepath.Dir(kept), keptRecordings, record.DefaultLimit)
	if !failed {
		return errors.Join(err, f.Remove())
	}
	return errors.Join(err, f.archive())
}

// archive moves the folder to those of ended runs, without its subfolders, which only instances needed.
func (f *RunFolder) archive() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := os.RemoveAll(f.File(e.Name())); err != nil {
				return err
			}
		}
	}
	ended := EndedHome(filepath.Dir(f.Path))
	if err := os.MkdirAll(ended, 0o700); err != nil {
		return err
	}
	if err := os.Rename(f.Path, filepath.Join(ended, f.ID)); err != nil {
		return err
	}
	return Prune(ended, keptFailed, math.MaxInt64)
}

// Prune removes the oldest entries of a folder until at most keep are left, with at most this many bytes in total; the
// newest always stays.
func Prune(folder string, keep int, most int64) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for i, e := range ByAge(entries) {
		path := filepath.Join(folder, e.Name())
		most -= sizeOf(path)
		if i > 0 && (i >= keep || most < 0) {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// ByAge sorts the entries of a folder, newest first.
func ByAge(entries []os.DirEntry) []os.DirEntry {
	age := func(e os.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age(b).Compare(age(a)) })
	return entries
}

// sizeOf returns the size of a folder's files.
func sizeOf(folder string) (total int64) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}

// RunPlan is what a run was asked to do. It is saved before anything is rented, so that the run can be resumed.
type RunPlan struct {
	Batch    drover.Batch `json:"batch"`
	File     string       `json:"file,omitempty"`   // of the batch; empty if it came from the command line
	Spot     string       `json:"spot,omitempty"`   // overrides the File's
	Folder   string       `json:"folder"`           // in which the run was started
	Out      string       `json:"out"`              // folder for the results
	Config   string       `json:"config,omitempty"` // file; empty for this host
	Limits   RunLimits    `json:"limits"`
	New      bool         `json:"new,omitempty"`      // Out may still have the results of an earlier run
	Streamed bool         `json:"streamed,omitempty"` // one job from the command line, whose output goes to this one's
	Began    time.Time    `json:"began,omitzero"`
}

// RunLimits are the flags that bound a run.
type RunLimits struct {
	Cloud        string        `json:"cloud,omitempty"`
	MaxInstances int           `json:"max_instances,omitempty"`
	MaxCost      drover.Money  `json:"max_cost,omitempty"`
	Keep         time.Duration `json:"keep,omitempty"`
}

// Check refuses limits that make no sense.
func (l RunLimits) Check() error {
	switch {
	case l.MaxInstances < 0:
		return drover.Errorf(drover.KindInvalid, "--max-instances is %d, but must not be negative", l.MaxInstances).WithHint("leave it out for no limit")
	case l.Keep < 0:
		return drover.Errorf(drover.KindInvalid, "--keep is %v, but must not be negative", l.Keep).WithHint("use --keep 30m")
	}
	return nil
}

// Save saves the plan.
func (f *RunFolder) Save(p RunPlan) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteDurably(f.File("run.json"), data)
}

// Load reads the plan of the run.
func (f *RunFolder) Load() (p RunPlan, err error) {
	data, err := os.ReadFile(f.File("run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return p, drover.Errorf(drover.KindNotFound, "run %s was never started", f.ID)
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("reading %s: %w", f.File("run.json"), err)
	}
	if !p.Began.IsZero() {
		return p, nil
	}
	info, err := os.Stat(f.File("run.json")) // from a version that did not record when the run began
	if err != nil {
		return p, err
	}
	p.Began = info.ModTime()
	return p, nil
}
