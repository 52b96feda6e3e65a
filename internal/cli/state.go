package cli

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/record"
	"drover/internal/store"
)

// runFolder is where one `drover run` keeps what it needs to go on after a crash: the records, the fleet key, inputs, and what the
// clouds' drivers keep. It goes when the run has come to its end.
type runFolder struct {
	id   string // also the fleet
	path string
	lock *store.Lock

	fresh   bool      // made by this process
	touched time.Time // when its records were last written to, before it was locked
}

// stateHome is the user's folder for the state of runs.
func stateHome() (string, error) {
	home := os.Getenv("XDG_STATE_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", drover.Errorf(drover.KindInvalid, "there is no place for the state of runs: %v", err).WithHint("set HOME or XDG_STATE_HOME")
		}
		home = filepath.Join(user, ".local", "state")
	}
	return filepath.Join(home, "drover"), nil
}

// newRunFolder makes and locks the folder of a new run.
func newRunFolder() (*runFolder, error) {
	home, err := stateHome()
	if err != nil {
		return nil, err
	}
	id := "run-" + strings.ToLower(rand.Text()[:6])
	path := filepath.Join(home, id)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	f, err := lockRunFolder(id, path)
	if err == nil {
		f.fresh = true
	}
	return f, err
}

// findRunFolder locks the folder of a run that did not come to its end.
func findRunFolder(id string) (*runFolder, error) {
	home, err := stateHome()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(home, id)
	if _, err := os.Stat(filepath.Join(path, "run.json")); err != nil {
		left := "no run is left to resume"
		if _, err := os.Stat(filepath.Join(endedHome(home), id, "run.json")); err == nil {
			return nil, drover.Errorf(drover.KindConflict, "run %s came to its end", id).WithHint("to run again what failed: drover run --resume %s --failed", id)
		}
		if ids := unfinishedRuns(home); len(ids) > 0 {
			left = "those that can be resumed: " + strings.Join(ids, ", ")
		}
		return nil, drover.Errorf(drover.KindNotFound, "there is no unfinished run %s", id).WithHint("%s", left)
	}
	return lockRunFolder(id, path)
}

func lockRunFolder(id, path string) (*runFolder, error) {
	lock, err := store.LockFile(filepath.Join(path, "drover.db"))
	if err != nil {
		return nil, err
	}
	f := &runFolder{id: id, path: path, lock: lock}
	for _, name := range []string{"drover.db", "drover.db-wal"} {
		if info, err := os.Stat(f.file(name)); err == nil && info.ModTime().After(f.touched) {
			f.touched = info.ModTime()
		}
	}
	return f, nil
}

// unfinishedRuns lists the runs whose folders are there.
func unfinishedRuns(home string) (ids []string) {
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

func (f *runFolder) file(name string) string { return filepath.Join(f.path, name) }

// Close gives the run's lock back; the folder stays.
func (f *runFolder) Close() error { return f.lock.Unlock() }

// remove takes the folder away: nothing is left of the run that could be resumed or would have to be cleaned up.
func (f *runFolder) remove() error { return os.RemoveAll(f.path) }

// keptRecordings is of how many runs that came to their end the flight recordings are kept, if they take no more than record.DefaultLimit.
const keptRecordings = 20

// recordingOf is where the recording of a run is kept that came to its end.
func recordingOf(home, id string) string { return filepath.Join(home, "recordings", id) }

// keptFailed is of how many runs that came to their end with failures the records are kept, so that what failed can be run again.
const keptFailed = 20

// endedHome is where the records of such runs are.
func endedHome(home string) string { return filepath.Join(home, "ended") }

// finish takes the folder of a run away that came to its end, but for its recording, which is kept beside those of the last others, and if jobs
// of it failed, its records.
func (f *runFolder) finish(failed bool) error {
	kept := recordingOf(filepath.Dir(f.path), f.id)
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	if err := os.Rename(f.file("recording"), kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := prune(filepath.Dir(kept), keptRecordings, record.DefaultLimit)
	if !failed {
		return errors.Join(err, f.remove())
	}
	return errors.Join(err, f.archive())
}

// archive moves the folder to those of ended runs, without what only instances needed.
func (f *runFolder) archive() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := os.RemoveAll(f.file(e.Name())); err != nil {
				return err
			}
		}
	}
	ended := endedHome(filepath.Dir(f.path))
	if err := os.MkdirAll(ended, 0o700); err != nil {
		return err
	}
	if err := os.Rename(f.path, filepath.Join(ended, f.id)); err != nil {
		return err
	}
	return prune(ended, keptFailed, math.MaxInt64)
}

// prune removes the oldest folders of a folder until only so many are left, of so many bytes in all; the last one always stays.
func prune(folder string, keep int, most int64) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for i, e := range byAge(entries) {
		path := filepath.Join(folder, e.Name())
		most -= sizeOf(path)
		if i > 0 && (i >= keep || most < 0) {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// byAge sorts the entries of a folder, the latest first.
func byAge(entries []os.DirEntry) []os.DirEntry {
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

// sizeOf is how much the files of a folder take.
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

// runPlan is what a run was asked to do. It is written down before anything is rented, so that the run can be resumed.
type runPlan struct {
	Batch    drover.Batch `json:"batch"`
	File     string       `json:"file,omitempty"`   // of the batch; empty if it came from the command line
	Spot     string       `json:"spot,omitempty"`   // what was asked for in place of what File says
	Folder   string       `json:"folder"`           // in which it was begun
	Out      string       `json:"out"`              // folder for the results
	Config   string       `json:"config,omitempty"` // file; empty for this machine
	Limits   runLimits    `json:"limits"`
	New      bool         `json:"new,omitempty"`      // Out may still have the results of an earlier run
	Streamed bool         `json:"streamed,omitempty"` // one job from the command line, whose output goes to this one's
	Began    time.Time    `json:"began,omitzero"`
}

// runLimits are the flags that bound a run.
type runLimits struct {
	Cloud        string        `json:"cloud,omitempty"`
	MaxInstances int           `json:"max_instances,omitempty"`
	MaxCost      drover.Money  `json:"max_cost,omitempty"`
	Keep         time.Duration `json:"keep,omitempty"`
}

func (l runLimits) check() error {
	switch {
	case l.MaxInstances < 0:
		return drover.Errorf(drover.KindInvalid, "--max-instances %d is less than nothing", l.MaxInstances).WithHint("leave it out for no limit")
	case l.Keep < 0:
		return drover.Errorf(drover.KindInvalid, "--keep %v is less than nothing", l.Keep).WithHint("write --keep 30m")
	}
	return nil
}

func (f *runFolder) save(p runPlan) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	temporary := f.file("run.json.new")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, f.file("run.json"))
}

func (f *runFolder) load() (p runPlan, err error) {
	data, err := os.ReadFile(f.file("run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return p, drover.Errorf(drover.KindNotFound, "run %s was never begun", f.id)
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil || !p.Began.IsZero() {
		return p, err
	}
	info, err := os.Stat(f.file("run.json")) // by a version that did not say when the run began
	if err != nil {
		return p, err
	}
	p.Began = info.ModTime()
	return p, nil
}
