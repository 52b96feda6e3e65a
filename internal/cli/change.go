package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
)

// changeFlags choose the jobs to change.
type changeFlags struct {
	reason string
	ofBatch
	all bool
}

func (a *app) cancelCommand() *cobra.Command {
	var f changeFlags
	cmd := named(&cobra.Command{
		Use:   "cancel {JOB… | --batch NAME | --all}",
		Short: "Cancel jobs; running ones are stopped first",
		Example: `  drover cancel 17 18.3
  drover cancel --batch hello --reason 'wrong parameters'`,
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			ids, err := f.choose(ctx, svc, args)
			if err != nil {
				return err
			}
			return a.change(ids, stopWords, func(id drover.JobID) (drover.Job, error) { return svc.Cancel(ctx, id, f.reason) })
		}),
	})
	f.addReason(cmd)
	f.add(a, cmd, "every job")
	cmd.Flags().BoolVar(&f.all, "all", false, "all jobs")
	cmd.ValidArgsFunction = a.completeJobs(drover.JobQueued, drover.JobRunning)
	return cmd
}

func (a *app) retryCommand() *cobra.Command {
	var f changeFlags
	var with string
	cmd := named(&cobra.Command{
		Use:   "retry [--with BATCH.yaml] JOB…",
		Short: "Requeue jobs that failed or were cancelled",
		Long: `Requeue failed or cancelled jobs, or the failed or cancelled elements of an array. Their attempt
counts start again from zero.

With --with, each job takes its command, inputs, resources and so on from the job of the same name in
the batch file. It keeps its labels; its array or foreach, gang and after must not have changed.
Elements that succeeded do not run again.`,
		Example: `  drover retry 17
  drover retry 18.3 --reason 'the disk was full'
  drover retry --with examples/hello.yaml 17`,
		Args: wantArgs(1, -1, "a JOB"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			var again []drover.Job
			retry := func(id drover.JobID) (drover.Job, error) { return svc.Retry(ctx, id, f.reason) }
			if with != "" {
				batch, err := a.retryBatch(ctx, svc, with, ids)
				if err != nil {
					return err
				}
				retry = func(id drover.JobID) (drover.Job, error) { return svc.RetryWith(ctx, id, batch, f.reason) }
			}
			err = a.change(ids, jobStateWords, func(id drover.JobID) (drover.Job, error) {
				job, err := retry(id)
				if err == nil {
					again = append(again, job)
				}
				return job, err
			})
			if away(err) {
				return err
			}
			return errors.Join(err, forEach(again, func(job drover.Job) error { return a.tellFollowers(ctx, svc, job, ids) }))
		}),
	})
	f.addReason(cmd)
	cmd.Flags().StringVar(&with, "with", "", "rerun them as this batch `file` now defines them")
	complete(cmd, "with", completeBatch)
	cmd.ValidArgsFunction = a.completeJobs(drover.JobFailed, drover.JobCancelled)
	return cmd
}

// retryBatch returns the batch of a file for retrying the jobs, after uploading its inputs. Only the names of its other
// jobs matter.
func (a *app) retryBatch(ctx context.Context, svc drover.Queue, path string, ids []drover.JobID) (drover.Batch, error) {
	file, err := config.LoadBatch(path)
	if err != nil {
		return drover.Batch{}, err
	}
	w := work{batch: file.Batch, file: file}
	retried := map[string]bool{}
	for _, id := range ids {
		was, err := svc.Job(ctx, drover.JobID{Number: id.Number, Index: -1})
		if err != nil {
			return drover.Batch{}, err
		}
		var array drover.Array
		if was.Array != nil {
			array = *was.Array
		}
		now, err := file.Batch.Job(was.Name)
		if err != nil {
			return drover.Batch{}, w.fault("", "jobs", fmt.Sprintf("job %v is named %s, but the file has no job with that name", id, was.Name), "restore the job's name in the file, or submit the batch")
		}
		// Only the controller knows the files that the elements were for, and it checks them.
		as := drover.JobSpec{Array: array, Gang: was.Gang, Foreach: now.Foreach, After: was.After, AfterAny: was.AfterAny}
		if key, err := now.CheckRetry(as); err != nil {
			e := drover.AsError(err, drover.KindInvalid)
			return drover.Batch{}, w.fault(now.Name, key, e.Message, e.Hint)
		}
		retried[was.Name] = true
	}
	for i := range file.Batch.Jobs {
		if job := &file.Batch.Jobs[i]; !retried[job.Name] {
			job.Inputs, job.Foreach, job.ForeachPaths, job.After, job.AfterAny = nil, nil, nil, nil, nil
		}
	}
	return file.Batch, a.upload(ctx, svc, &file.Batch)
}

// tellFollowers names the jobs that were to run after a retried one and were cancelled because it did not succeed.
// Different batches may have the same name, but not the same submission time.
func (a *app) tellFollowers(ctx context.Context, svc drover.Queue, job drover.Job, retried []drover.JobID) error {
	filter := drover.JobFilter{Batch: job.Batch, States: []drover.JobState{drover.JobCancelled}}
	for other, err := range allJobs(ctx, svc, filter) {
		if err != nil {
			return err
		}
		if !slices.Contains(other.After, job.Name) || !other.Submitted.Equal(job.Submitted) || slices.Contains(retried, other.ID) {
			continue
		}
		fmt.Fprintln(a.err, drover.Sanitize(fmt.Sprintf("dependent job %v (%s) stays cancelled; to requeue it: drover retry %v", other.ID, other.Name, other.ID)))
	}
	return nil
}

func (a *app) priorityCommand() *cobra.Command {
	cmd := named(&cobra.Command{
		Use:   "priority JOB… N",
		Short: "Change the priority of jobs",
		Long: `Change the priority of jobs; jobs with a higher priority start first. Priority 0 stops a job's
attempt and keeps the job queued until you raise its priority.`,
		Example: "  drover priority 17 50\n  drover priority 17 18 0",
		Args:    wantArgs(2, -1, "a JOB and a number"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			last := args[len(args)-1]
			priority, err := strconv.Atoi(last)
			if err != nil {
				return drover.Errorf(drover.KindInvalid, "%s is not a priority", last).WithHint("the last argument must be a whole number: drover priority 17 50")
			}
			ids, err := jobIDs(args[:len(args)-1])
			if err != nil {
				return err
			}
			return a.change(ids, priorityWords, func(id drover.JobID) (drover.Job, error) { return svc.SetPriority(ctx, id, priority) })
		}),
	})
	cmd.ValidArgsFunction = a.completeJobs(drover.JobQueued, drover.JobRunning)
	return cmd
}

func (f *changeFlags) addReason(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.reason, "reason", "", "`text` to record with the job")
}

// choose returns the named jobs, or those of a batch or of the whole queue that are not final.
func (f changeFlags) choose(ctx context.Context, svc drover.Queue, args []string) ([]drover.JobID, error) {
	switch ways := min(len(args), 1) + count(f.batch != "") + count(f.all); {
	case ways == 0:
		return nil, drover.Errorf(drover.KindInvalid, "no jobs specified").WithHint("name a JOB, or use --batch NAME or --all")
	case ways > 1:
		return nil, drover.Errorf(drover.KindInvalid, "a JOB, --batch and --all cannot be used together").WithHint("use one of them")
	case len(args) > 0:
		return jobIDs(args)
	}
	living := f.filter()
	living.States = []drover.JobState{drover.JobQueued, drover.JobRunning}
	ids, err := idsOf(allJobs(ctx, svc, living))
	if err != nil || len(ids) > 0 || f.batch == "" {
		return ids, err
	}
	whole := f.filter()
	whole.Limit = 1
	page, err := svc.Jobs(ctx, whole)
	if err == nil && len(page.Items) == 0 {
		err = noBatch(f.batch)
	}
	return nil, err
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// change changes jobs, and prints the result of each.
func (a *app) change(ids []drover.JobID, words func(drover.Job) string, do func(drover.JobID) (drover.Job, error)) error {
	if len(ids) == 0 {
		fmt.Fprintln(a.err, "no jobs")
	}
	line := func(job drover.Job) string { return fmt.Sprintf("job %v (%s): %s", job.ID, job.Name, words(job)) }
	return changeEach(a, jobListing, ids, do, line)
}

// changeEach changes things one after the other, and prints a line about each for people.
func changeEach[ID, T any](a *app, l listing[T], ids []ID, do func(ID) (T, error), line func(T) string) error {
	changed := []T{}
	failed := forEach(ids, func(id ID) error {
		v, err := do(id)
		if err != nil {
			return err
		}
		changed = append(changed, v)
		if a.forPeople() {
			_, err = fmt.Fprintln(a.out, drover.Sanitize(line(v)))
		}
		return err
	})
	if a.forPeople() {
		return failed
	}
	return errors.Join(printList(a, l, each(changed)), failed)
}

// forEach does something for each item. It continues after an error about one item, but not if the controller is away,
// or the command is interrupted or cannot write its output. Such an error comes first, where it determines the exit code.
func forEach[T any](items []T, do func(T) error) (failed error) {
	for _, item := range items {
		err := do(item)
		if _, answered := errors.AsType[*drover.Error](err); err != nil && !answered || away(err) {
			return errors.Join(err, failed)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// stopWords describes how far a job's stop has come.
func stopWords(j drover.Job) string {
	if !j.State.Final() {
		return jobStateWords(j) + ", being stopped"
	}
	if why := reasonWords(j.Reason); why != "" {
		return jobStateWords(j) + ": " + why
	}
	return jobStateWords(j)
}

func priorityWords(j drover.Job) string {
	return fmt.Sprintf("%s, priority %d", jobStateWords(j), j.Priority)
}
