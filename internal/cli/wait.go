package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
)

// waitFlags are the flags of `drover wait`.
type waitFlags struct {
	ofBatch
	quiet bool // the jobs' output is shown, so print nothing about their state
}

func (a *app) waitCommand() *cobra.Command {
	var f waitFlags
	cmd := unformatted(onlyExitCode, &cobra.Command{
		Use:   "wait [JOB…]",
		Short: "Wait until jobs have ended",
		Long: `Wait until jobs have ended: the ones you name, all jobs of a batch, or all jobs now in the queue. The
exit code is 1 if one failed or was cancelled. If the controller stops, 'drover wait' waits for it to
return.`,
		Example: "  drover wait 17 18\n  drover wait --batch hello && echo done",
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			ids, err := a.waitList(ctx, svc, f, args)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				fmt.Fprintln(a.err, "nothing is queued or running")
				return nil
			}
			return a.waitFor(ctx, svc, ids, f)
		}),
	})
	f.add(a, cmd, "wait for every job")
	a.addPatience(cmd)
	cmd.ValidArgsFunction = a.completeJobs(drover.JobQueued, drover.JobRunning)
	return cmd
}

// waitList returns the jobs to wait for.
func (a *app) waitList(ctx context.Context, svc drover.Queue, f waitFlags, args []string) (ids []drover.JobID, err error) {
	if len(args) > 0 {
		return jobIDs(args)
	}
	filter := f.filter()
	if f.batch == "" {
		filter.States = []drover.JobState{drover.JobQueued, drover.JobRunning}
	}
	ids, err = idsOf(allJobs(ctx, svc, filter))
	if err == nil && f.batch != "" && len(ids) == 0 {
		return nil, noBatch(f.batch)
	}
	return ids, err
}

// noBatch is the error when no batch has a name.
func noBatch(name string) error {
	return drover.Errorf(drover.KindNotFound, "there are no jobs in batch %s", name).WithHint("drover jobs --all lists all jobs")
}

// waitFor waits until the jobs are final and prints how they ended, or that they continue if it is interrupted.
func (a *app) waitFor(ctx context.Context, svc drover.Service, ids []drover.JobID, f waitFlags) error {
	w := &waiting{left: slices.Clone(ids), jobs: map[drover.JobID]drover.Job{}}
	err := a.waitUntilFinal(ctx, svc, w, f)
	if ctx.Err() != nil {
		a.goesOn(w.left)
	}
	return err
}

// goesOn prints that the jobs continue although the command ends.
func (a *app) goesOn(ids []drover.JobID) {
	if a.terminal {
		fmt.Fprint(a.err, "\r") // overwrites what Ctrl-C has printed
	}
	switch len(ids) {
	case 0:
	case 1:
		fmt.Fprintf(a.err, "job %v continues; drover cancel %v cancels it\n", ids[0], ids[0])
	default:
		fmt.Fprintln(a.err, "the submitted jobs continue; drover cancel cancels them")
	}
}

func (a *app) waitUntilFinal(ctx context.Context, svc drover.Service, w *waiting, f waitFlags) error {
	show := a.showWaiting(f.quiet)
	defer show.close()
	a.err = show
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bell := newDoorbell()
	go bell.follow(ctx, svc, slices.Clone(w.left))
	for {
		if err := w.look(ctx, svc); err != nil {
			return err
		}
		if len(w.left) == 0 {
			show.close()
			return a.waitVerdict(ctx, svc, w, f)
		}
		show.update(w, w.words())
		if err := bell.wait(ctx); err != nil {
			return err
		}
	}
}

// waiting is the awaited jobs, as they were last seen.
type waiting struct {
	ids  []drover.JobID // of all that were seen, in order
	left []drover.JobID // not yet final
	jobs map[drover.JobID]drover.Job
}

// look gets the jobs that are left. An error does not undo those that it got before.
func (w *waiting) look(ctx context.Context, svc drover.Queue) error {
	if w.listed() {
		return w.list(ctx, svc)
	}
	for _, id := range slices.Clone(w.left) {
		job, err := svc.Job(ctx, id)
		if err != nil {
			return err
		}
		w.saw(id, job)
	}
	return nil
}

// listed reports whether listing the jobs takes fewer calls than getting each one that is left.
func (w *waiting) listed() bool {
	if slices.ContainsFunc(w.left, func(id drover.JobID) bool { return id.Index >= 0 }) {
		return false
	}
	first, last := w.span()
	return (last-first)/drover.MaxPage+1 < int64(len(w.left))
}

// span returns the lowest and the highest number of the jobs that are left.
func (w *waiting) span() (first, last int64) {
	byNumber := func(a, b drover.JobID) int { return cmp.Compare(a.Number, b.Number) }
	if len(w.left) == 0 {
		return 0, 0
	}
	return slices.MinFunc(w.left, byNumber).Number, slices.MaxFunc(w.left, byNumber).Number
}

func (w *waiting) list(ctx context.Context, svc drover.Queue) error {
	first, last := w.span()
	wanted := map[drover.JobID]bool{}
	for _, id := range w.left {
		wanted[id] = true
	}
	var f drover.JobFilter
	if first > 1 {
		f.After = drover.JobID{Number: first - 1, Index: -1}
	}
	for job, err := range allJobs(ctx, svc, f) {
		if err != nil {
			return err
		}
		if wanted[job.ID] {
			w.saw(job.ID, job)
			delete(wanted, job.ID)
		}
		if job.ID.Number >= last {
			break
		}
	}
	for id := range wanted {
		return drover.Errorf(drover.KindNotFound, "there is no job %v", id).WithHint("drover jobs --all lists all jobs")
	}
	return nil
}

// saw records a job's state.
func (w *waiting) saw(id drover.JobID, job drover.Job) {
	if _, seen := w.jobs[id]; !seen {
		w.ids = append(w.ids, id)
	}
	w.jobs[id] = job
	if job.State.Final() {
		w.left = slices.DeleteFunc(w.left, func(other drover.JobID) bool { return other == id })
	}
}

// counts returns how many elements of the jobs are in each state, and how many there are.
func (w *waiting) counts() (counts map[drover.JobState]int, total int) {
	counts = map[drover.JobState]int{}
	for _, j := range w.jobs {
		if j.Array == nil {
			total++
			counts[j.State]++
			continue
		}
		total += j.Array.Size()
		for state, n := range j.Counts {
			counts[state] += n
		}
	}
	return counts, total
}

func (w *waiting) words() string {
	counts, _ := w.counts()
	return countWords(counts)
}

// waitVerdict prints how the jobs ended, and names the first that did not succeed. The exit code is 1 if there are any.
func (a *app) waitVerdict(ctx context.Context, svc drover.Queue, w *waiting, f waitFlags) error {
	counts, total := w.counts()
	if !f.quiet && total > 0 {
		fmt.Fprintf(a.err, "%s: %s\n", human.Plural(total, "job"), w.words())
	}
	bad := counts[drover.JobFailed] + counts[drover.JobCancelled]
	if bad == 0 {
		return nil
	}
	named, err := w.failures(ctx, svc)
	if err != nil {
		return err
	}
	for _, j := range named {
		fmt.Fprintln(a.err, drover.Sanitize(failureWords(j)))
	}
	if more := bad - len(named); more > 0 {
		fmt.Fprintf(a.err, "and %d more\n", more)
	}
	return exit(exitWorkFailed)
}

// failures returns the first elements that failed or were cancelled.
func (w *waiting) failures(ctx context.Context, svc drover.Queue) (failed []drover.Job, err error) {
	for _, id := range w.ids {
		j := w.jobs[id]
		if len(failed) >= maxShown {
			break
		}
		if j.Array == nil {
			if j.State != drover.JobSucceeded {
				failed = append(failed, j)
			}
			continue
		}
		if j.Counts[drover.JobFailed]+j.Counts[drover.JobCancelled] == 0 {
			continue
		}
		page, err := svc.Jobs(ctx, drover.JobFilter{
			Job: id.Number, Elements: true, States: []drover.JobState{drover.JobFailed, drover.JobCancelled}, Limit: maxShown - len(failed),
		})
		if err != nil {
			return nil, err
		}
		failed = append(failed, page.Items...)
	}
	return failed, nil
}

func failureWords(j drover.Job) string {
	text := fmt.Sprintf("job %v (%s) %s", j.ID, j.Name, j.State)
	if words := reasonWords(j.Reason); words != "" && !strings.EqualFold(words, string(j.State)) {
		text += ": " + words
	}
	return text
}
