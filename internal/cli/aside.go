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

// setAside renames the folder for a new run's results, if an earlier run has left some there: to NAME.1, or the first
// free number. An earlier run that can be resumed finds its results under the new name.
func setAside(folder *daemon.RunFolder, p *daemon.RunPlan, ui *progress) error {
	if !p.New {
		return nil
	}
	if entries, err := os.ReadDir(p.Out); len(entries) > 0 {
		to, err := rename(p.Out)
		if err != nil {
			return fmt.Errorf("moving the results of an earlier run: %w", err)
		}
		if !p.Streamed {
			ui.say("the results of an earlier run are now in %s", relative(to))
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.New = false
	return folder.Save(*p)
}

// rename gives a folder of results its new name, unless a run is writing to it.
func rename(out string) (to string, err error) {
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
	if err := redirect(out, to); err != nil {
		return "", err
	}
	return to, os.Rename(out, to)
}

// redirect makes the runs with results in a folder continue in another one.
func redirect(out, to string) error {
	home, err := daemon.StateHome()
	if err != nil {
		return err
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
				p.Out = to
				err = f.Save(p)
			}
			if err := errors.Join(err, f.Close()); err != nil {
				return fmt.Errorf("updating run %s, to which these results belong: %w", id, err)
			}
		}
	}
	return nil
}
