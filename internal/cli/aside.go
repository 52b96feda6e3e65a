package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"drover/internal/blob"
	"drover/internal/daemon"
	"drover/internal/store"
)

// setAside renames the folder for a new run's results, if an earlier run has left some there or would continue there: to
// NAME.1, or the first free number. An earlier run that can be resumed finds its results under the new name.
func setAside(folder *daemon.RunFolder, p *daemon.RunPlan, ui *progress) error {
	if !p.New {
		return nil
	}
	to, err := rename(p.Out)
	if err != nil {
		return fmt.Errorf("preparing the folder for results: %w", err)
	}
	if to != "" && !p.Streamed {
		ui.say("the results of an earlier run are now in %s", relative(to))
	}
	p.New = false
	return folder.Save(*p)
}

// rename gives a folder of results its new name, unless it is empty and belongs to no run, or a run is writing to it.
func rename(out string) (to string, err error) {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	results, err := blob.OpenResults(out, blob.DefaultLimits())
	if err != nil {
		return "", err
	}
	defer results.Close()
	for n := 1; ; n++ {
		to = fmt.Sprintf("%s.%d", out, n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
	}
	redirected, err := redirect(out, to)
	if err != nil || len(entries) == 0 && !redirected {
		return "", err
	}
	return to, os.Rename(out, to)
}

// redirect makes the runs that would continue in a folder continue in another one, and reports whether there are any.
func redirect(out, to string) (redirected bool, err error) {
	home, err := daemon.StateHome()
	if err != nil {
		return false, err
	}
	for _, place := range []string{home, daemon.EndedHome(home)} {
		for _, id := range daemon.UnfinishedRuns(place) {
			folder := filepath.Join(place, id)
			if store.InUse(filepath.Join(folder, "drover.db")) {
				continue // it is running with another folder: nobody writes to this one
			}
			f, err := daemon.LockRunFolder(id, folder)
			if err != nil {
				continue
			}
			p, err := f.Load()
			if err == nil && p.Out == out && !p.New {
				p.Out, redirected = to, true
				err = f.Save(p)
			}
			if err := errors.Join(err, f.Close()); err != nil {
				return redirected, fmt.Errorf("updating run %s, to which these results belong: %w", id, err)
			}
		}
	}
	return redirected, nil
}
