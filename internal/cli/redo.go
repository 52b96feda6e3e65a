package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"drover"
	"drover/internal/blob"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/store"
)

// redo resumes a finished run with the jobs that failed or were cancelled, using the current batch file and inputs.
func (a *app) redo(ctx context.Context, f runFlags) (*daemon.RunFolder, daemon.RunPlan, error) {
	id := f.resume
	home, err := daemon.StateHome()
	if err != nil {
		return nil, daemon.RunPlan{}, err
	}
	if slices.Contains(daemon.UnfinishedRuns(home), id) {
		return nil, daemon.RunPlan{}, notEnded(id)
	}
	path := filepath.Join(daemon.EndedHome(home), id)
	if _, err := os.Stat(filepath.Join(path, "run.json")); err != nil {
		return nil, daemon.RunPlan{}, drover.Errorf(drover.KindNotFound, "run %s does not exist or has no failed jobs", id).WithHint("drover runs lists all runs")
	}
	folder, err := daemon.LockRunFolder(id, path)
	if err != nil {
		return nil, daemon.RunPlan{}, err
	}
	p, err := a.redoIn(ctx, folder, f)
	if err == nil {
		err = os.Rename(path, filepath.Join(home, id))
	}
	if err != nil {
		return nil, p, errors.Join(err, folder.Close())
	}
	folder.Path = filepath.Join(home, id)
	if err := os.Rename(daemon.RecordingOf(home, id), folder.File("recording")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, p, errors.Join(err, folder.Close())
	}
	return folder, p, nil
}

func (a *app) redoIn(ctx context.Context, folder *daemon.RunFolder, f runFlags) (p daemon.RunPlan, err error) {
	if p, err = folder.Load(); err != nil {
		return p, err
	}
	if err := f.asBegun(a.config, p); err != nil {
		return p, err
	}
	c, err := a.loadConfig(p.Config, p.Limits.Cloud)
	if err != nil {
		return p, err
	}
	records, err := store.Open(ctx, folder.File("drover.db"))
	if err != nil {
		return p, err
	}
	defer records.Close()
	failed, err := failedNames(ctx, records)
	if err != nil {
		return p, err
	}
	w, err := today(p, failed)
	if err != nil {
		return p, err
	}
	again := drover.Batch{Name: w.batch.Name}
	for _, job := range w.batch.Jobs {
		if slices.Contains(failed, job.Name) {
			again.Jobs = append(again.Jobs, job)
		}
	}
	if err := a.checkFits(ctx, c, w, again); err != nil {
		return p, err
	}
	inputs, err := blob.OpenDir(folder.File("inputs"))
	if err != nil {
		return p, err
	}
	defer inputs.Close()
	if err := keepInputs(ctx, &again, inputs); err != nil {
		return p, err
	}
	if _, err := records.Redo(ctx, again.Jobs); err != nil {
		return p, err
	}
	p.Batch = w.batch
	return p, folder.Save(p)
}

// failedNames returns the names of the jobs that did not succeed.
func failedNames(ctx context.Context, records *store.Store) (names []string, err error) {
	jobs, err := records.Jobs(ctx, 0, drover.JobFilter{States: []drover.JobState{drover.JobFailed, drover.JobCancelled}, Limit: -1})
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	return names, err
}

// today returns the batch from its current file. The failed jobs must still be in it, with the same arrays and in the
// same order.
func today(p daemon.RunPlan, failed []string) (work, error) {
	if p.File == "" {
		return work{batch: p.Batch, streamed: p.Streamed}, nil
	}
	file, err := config.LoadBatch(p.File)
	if err != nil {
		return work{}, err
	}
	w := work{batch: file.Batch, file: file}
	if err := overrideSpot(&w.batch, p.Spot); err != nil {
		return work{}, err
	}
	for _, name := range failed {
		was, err := p.Batch.Job(name)
		if err != nil {
			return work{}, err
		}
		hint := "commands, inputs and resources may change, but not the list of jobs; to rerun everything: drover run " + p.File
		now, err := w.batch.Job(name)
		if err != nil {
			return work{}, drover.Errorf(drover.KindInvalid, "job %s, which did not succeed, is no longer in %s", name, p.File).WithHint("%s", hint)
		}
		if key, err := now.CheckRetry(was); err != nil {
			return work{}, w.fault(name, key, drover.AsError(err, "").Message, hint)
		}
	}
	return w, nil
}

// notEnded is the error for rerunning the failed jobs of an unfinished run.
func notEnded(id string) error {
	return drover.Errorf(drover.KindConflict, "run %s has not ended", id).WithHint("resume it first: drover run --resume %s", id)
}
