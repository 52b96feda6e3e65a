package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/daemon"
	"drover/internal/human"
	"drover/internal/store"
)

func (a *app) runsCommand() *cobra.Command {
	return named(&cobra.Command{
		Use:   "runs",
		Short: "List your active and resumable runs",
		Long: `List your active and resumable runs, newest first.

    running   a process controls it
    detached  no process controls it; its instances may still exist, and running jobs keep running
    stopped   no process controls it, and it has no instances
    failed    it ended, and some jobs failed or were cancelled; the last 20 such runs are kept

'drover run --resume RUN' continues a run; with --failed, it reruns failed jobs. 'drover gc --fleet
RUN --destroy' abandons an unfinished run.`,
		Example: "  drover runs\n  drover runs -o json",
		Args:    wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := listRuns(cmd.Context())
			list = slices.DeleteFunc(list, func(r runRow) bool { return r.State == runUnread })
			return errors.Join(printList(a, runListing, each(list)), err)
		},
	})
}

// runState describes whether a process drives a run, and how far the run has got.
type runState string

const (
	runRunning  runState = "running"
	runDetached runState = "detached"
	runStopped  runState = "stopped"
	runFailed   runState = "failed"
	runUnread   runState = "" // its records could not be read
)

// runRow is one run of `drover runs`.
type runRow struct {
	Run       string    `json:"run"`
	Batch     string    `json:"batch"`
	State     runState  `json:"state"`
	Jobs      int       `json:"jobs"`
	Queued    int       `json:"queued"`
	Running   int       `json:"running"`
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"`
	Cancelled int       `json:"cancelled"`
	Instances int       `json:"instances"`
	Begun     time.Time `json:"begun"`
	Folder    string    `json:"folder"` // where it was started
	Out       string    `json:"out"`
}

var runListing = listing[runRow]{
	name: func(r runRow) string { return r.Run },
	none: "there is no run to resume or rerun",
	columns: []column[runRow]{
		{title: "RUN", text: func(r runRow) string { return r.Run }},
		{title: "BATCH", text: func(r runRow) string { return r.Batch }},
		{title: "STATE", text: func(r runRow) string { return string(r.State) }},
		{title: "FINAL", text: func(r runRow) string { return fmt.Sprintf("%d/%d", r.Succeeded+r.Failed+r.Cancelled, r.Jobs) }, right: true},
		{title: "FAILED", text: func(r runRow) string { return fmt.Sprint(r.Failed) }, right: true},
		{title: "INSTANCES", text: func(r runRow) string { return fmt.Sprint(r.Instances) }, right: true},
		{title: "AGE", text: func(r runRow) string { return human.AgeOf(&r.Begun) }, right: true},
		{title: "RESULTS", text: func(r runRow) string { return relative(r.Out) }},
		{title: "FOLDER", text: func(r runRow) string { return r.Folder }, wide: true},
	},
}

// listRuns reads this user's runs, newest first. The error says why some could not be read.
func listRuns(ctx context.Context) ([]runRow, error) {
	home, err := daemon.StateHome()
	if err != nil {
		return nil, err
	}
	list, unread := []runRow{}, error(nil)
	for _, place := range []string{home, daemon.EndedHome(home)} {
		for _, id := range daemon.UnfinishedRuns(place) {
			row, err := readRun(ctx, &daemon.RunFolder{ID: id, Path: filepath.Join(place, id)})
			if drover.KindOf(err) == drover.KindNotFound {
				continue // it has just finished
			}
			switch {
			case err != nil:
				unread = errors.Join(unread, fmt.Errorf("reading run %s: %w", id, err))
				if row.State = runUnread; row.Run == "" { // not even where and when it began is known
					continue
				}
			case place != home:
				row.State = runFailed
			}
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b runRow) int { return b.Begun.Compare(a.Begun) })
	return list, unread
}

func readRun(ctx context.Context, f *daemon.RunFolder) (row runRow, err error) {
	p, err := f.Load()
	if err != nil {
		return row, err
	}
	row = runRow{Run: f.ID, Batch: p.Batch.Name, State: runStopped, Begun: p.Began.UTC(), Folder: p.Folder, Out: p.Out}
	if err := row.count(ctx, f.File("drover.db")); err != nil {
		return row, err
	}
	if row.Jobs == 0 { // its batch was not submitted yet
		row.Jobs = elements(p.Batch)
		row.Queued = row.Jobs
	}
	switch {
	case store.InUse(f.File("drover.db")):
		row.State = runRunning
	case row.Instances > 0:
		row.State = runDetached
	}
	return row, nil
}

// count reads a run's counts from its records.
func (r *runRow) count(ctx context.Context, db string) error {
	if _, err := os.Stat(db); err != nil {
		return nil // it was killed before it started
	}
	s, err := store.Open(ctx, db)
	if err != nil {
		return err
	}
	defer s.Close()
	counts, err := s.Counts(ctx)
	if err != nil {
		return err
	}
	r.Queued, r.Running = counts[drover.JobQueued], counts[drover.JobRunning]
	r.Succeeded, r.Failed, r.Cancelled = counts[drover.JobSucceeded], counts[drover.JobFailed], counts[drover.JobCancelled]
	r.Jobs = allOf(counts)
	instances, err := s.Instances(ctx, drover.TimeOf(time.Now()), drover.InstanceFilter{Limit: -1})
	r.Instances = len(instances)
	return err
}

// lastRun returns the latest run that was started in a folder and that no process drives: a finished one with failures,
// or an unfinished one. If there are others that cannot be read, it prints which.
func (a *app) lastRun(ctx context.Context, folder string, failed bool) (string, error) {
	list, unread := listRuns(ctx)
	list = slices.DeleteFunc(list, func(r runRow) bool { return r.Folder != folder })
	for _, r := range list {
		if r.State == runUnread {
			break // it may be the wanted one
		}
		if r.State != runRunning && failed == (r.State == runFailed) {
			if unread != nil {
				fmt.Fprintf(a.err, "resuming run %s; some other runs cannot be read: %s\n", r.Run, drover.SanitizeLines(unread.Error()))
			}
			return r.Run, nil
		}
	}
	if unread != nil {
		return "", unread // it may be the wanted one
	}
	none := drover.Errorf(drover.KindNotFound, "no run that began in this folder can be resumed")
	switch {
	case len(list) == 0:
		return "", none.WithHint("drover runs lists the runs of every folder")
	case list[0].State == runRunning:
		return "", drover.Errorf(drover.KindConflict, "run %s is still running", list[0].Run).WithHint("to start another run now, leave out --resume")
	case failed:
		return "", notEnded(list[0].Run)
	}
	return "", none.WithHint("to rerun failed jobs: drover run --resume %s --failed", list[0].Run)
}
