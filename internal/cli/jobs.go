package cli

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
)

// jobsFlags are the flags of `drover jobs`.
type jobsFlags struct {
	states   []string
	batch    string
	user     string
	labels   []string
	elements bool
	all      bool
	since    string
	watch    watchFlag
}

func (a *app) jobsCommand() *cobra.Command {
	var f jobsFlags
	cmd := named(&cobra.Command{
		Use:        "jobs [JOB…]",
		SuggestFor: []string{"ps", "ls", "list", "queue"},
		Short:      "List the jobs or show the ones you name",
		Long: `List the jobs that are not final or that ended in the last day, newest first, with one line per
array; or show one job in full. An element of an array is JOB.INDEX.

For a waiting job, the table shows only the start of the reason; drover explain JOB shows it in full.
With -o wide, the table also shows priorities, instances, costs, times and labels.`,
		Example: `  drover jobs
  drover jobs --state queued,running --user ada --watch
  drover jobs --batch hello --elements -o wide
  drover jobs 17.3`,
		Args: cobra.ArbitraryArgs,
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			args = f.watch.takeInterval(args)
			return f.watch.show(ctx, a, "drover jobs", func(a *app) error { return a.jobs(ctx, svc, f, args) })
		}),
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "only jobs in this `state`, or in several: queued,running,succeeded,failed,cancelled")
	flags.StringVar(&f.batch, "batch", "", "only jobs of batches with this `name`")
	flags.StringVar(&f.user, "user", "", "only jobs of this `user`")
	flags.StringArrayVar(&f.labels, "label", nil, "only jobs with the label `NAME=VALUE`; may be repeated")
	flags.BoolVar(&f.all, "all", false, "also show jobs that ended more than a day ago")
	flags.StringVar(&f.since, "since", "", "only jobs that are not final or that ended since this `time`: a date such as 2026-11-20, or how long ago, such as 36h or 7d")
	flags.BoolVar(&f.elements, "elements", false, "show each element of an array")
	f.watch.add(cmd)
	cmd.AddCommand(a.pruneCommand())
	cmd.ValidArgsFunction = a.completeJobs()
	complete(cmd, "state", completeWords(jobStates()...))
	complete(cmd, "batch", a.completeBatches)
	return cmd
}

func (a *app) pruneCommand() *cobra.Command {
	var older string
	cmd := &cobra.Command{
		Use:   "prune --older-than TIME",
		Short: "Delete the logs and outputs of jobs that ended long ago",
		Long: `Delete the logs and outputs of jobs that ended long ago; the jobs and their costs stay listed. With
results: {keep: 30d} in its configuration, the controller does this automatically.`,
		Example: "  drover jobs prune --older-than 30d",
		Args:    wantArgs(0, 0, ""),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
			before, err := timeFlag("older-than", older, time.Now())
			if err != nil {
				return err
			}
			if before == 0 {
				return drover.Errorf(drover.KindInvalid, "--older-than is missing").WithHint("drover jobs prune --older-than 30d")
			}
			pruned, err := svc.Prune(ctx, before)
			if err != nil {
				return err
			}
			if a.forPrograms() {
				return a.print(pruned)
			}
			if pruned.Jobs == 0 {
				fmt.Fprintln(a.out, "there are no results of jobs that ended before then")
			} else {
				fmt.Fprintf(a.out, "deleted the results of %s, about %s\n", human.Plural(pruned.Jobs, "job"), human.Size(drover.Bytes(pruned.Bytes)))
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&older, "older-than", "", "delete results of jobs that ended before this `time`: a date such as 2026-11-20, or how long ago, such as 36h or 30d")
	return cmd
}

func jobStates() []string {
	return []string{
		string(drover.JobQueued), string(drover.JobRunning), string(drover.JobSucceeded), string(drover.JobFailed), string(drover.JobCancelled),
	}
}

// filter returns the filter that the flags describe. Of named jobs, only elements are filtered.
func (f jobsFlags) filter(named bool) (drover.JobFilter, error) {
	filter := drover.JobFilter{Batch: f.batch, User: f.user, Elements: f.elements}
	if named && !f.elements && (f.batch+f.user+f.since != "" || len(f.states)+len(f.labels) > 0) {
		return filter, drover.Errorf(drover.KindInvalid, "a JOB cannot be used together with --state, --batch, --user, --label or --since").WithHint("name the jobs, or filter all of them")
	}
	for _, s := range f.states {
		if !slices.Contains(jobStates(), s) {
			return filter, drover.Errorf(drover.KindInvalid, "--state %s is not valid", s).WithHint("use one or more of %s", strings.Join(jobStates(), ", "))
		}
		filter.States = append(filter.States, drover.JobState(s))
	}
	var err error
	if filter.Labels, err = pairs("label", f.labels); err != nil || f.all {
		return filter, err
	}
	now := time.Now()
	if filter.Since, err = timeFlag("since", f.since, now); err == nil && f.since == "" && f.batch == "" && !named {
		filter.Since = drover.TimeOf(now.Add(-24 * time.Hour))
	}
	return filter, err
}

func (a *app) jobs(ctx context.Context, svc drover.Queue, f jobsFlags, args []string) error {
	filter, err := f.filter(len(args) > 0)
	if err != nil {
		return err
	}
	ids, err := jobIDs(args)
	if err != nil {
		return err
	}
	jobs := allJobs(ctx, svc, filter)
	if len(ids) > 0 {
		jobs = namedJobs(ctx, svc, ids, filter)
	}
	if f.elements {
		return printList(a, jobListing, jobs)
	}
	list, err := gather(jobs)
	if err != nil {
		return err
	}
	switch {
	case len(ids) == 0:
		slices.Reverse(list)
		return printList(a, jobListing, each(list))
	case len(ids) == 1 && a.forPeople():
		return a.showJob(list[0])
	}
	return printNamed(a, jobListing, list)
}

// namedJobs returns the jobs with these ids. If the filter asks for elements, it returns an array's elements instead of
// the array.
func namedJobs(ctx context.Context, svc drover.Queue, ids []drover.JobID, f drover.JobFilter) iter.Seq2[drover.Job, error] {
	return func(yield func(drover.Job, error) bool) {
		for _, id := range ids {
			if !f.Elements || id.Index >= 0 {
				if job, err := svc.Job(ctx, id); !yield(job, err) || err != nil {
					return
				}
				continue
			}
			f.Job = id.Number
			for job, err := range allJobs(ctx, svc, f) {
				if !yield(job, err) || err != nil {
					return
				}
			}
		}
	}
}

var jobListing = listing[drover.Job]{
	name: func(j drover.Job) string { return j.ID.String() },
	none: "no jobs",
	columns: []column[drover.Job]{
		{title: "ID", text: func(j drover.Job) string { return j.ID.String() }},
		{title: "NAME", text: func(j drover.Job) string { return j.Name }},
		{title: "BATCH", text: func(j drover.Job) string { return j.Batch }},
		{title: "USER", text: func(j drover.Job) string { return j.User }},
		{title: "STATE", text: jobStateWords, color: func(j drover.Job) color { return jobColor(j.State) }},
		{title: "AGE", text: func(j drover.Job) string { return human.AgeOf(&j.Submitted) }},
		{title: "PRIORITY", text: func(j drover.Job) string { return fmt.Sprint(j.Priority) }, wide: true, right: true},
		{title: "INSTANCE", text: lastInstance, wide: true},
		{title: "COST", text: func(j drover.Job) string { return human.Dollars(j.Cost) }, wide: true, right: true},
		{title: "STARTED", text: func(j drover.Job) string { return human.Stamp(j.Started) }, wide: true},
		{title: "ENDED", text: func(j drover.Job) string { return human.Stamp(j.Ended) }, wide: true},
		{title: "LABELS", text: func(j drover.Job) string { return pairWords(j.Labels) }, wide: true},
		{title: "REASON", text: jobReasonWords},
	},
}

// jobStateWords returns the state of a job and, for an array, its progress: "running 12/1000 done, 3 failed" once
// twelve are final. For a final array, it returns how many succeeded.
func jobStateWords(j drover.Job) string {
	if j.Array == nil {
		return string(j.State)
	}
	switch {
	case j.State == drover.JobSucceeded:
		return fmt.Sprintf("%s %d/%d", j.State, j.Counts[drover.JobSucceeded], j.Array.Size())
	case j.State.Final():
		return fmt.Sprintf("%s, %d/%d succeeded", j.State, j.Counts[drover.JobSucceeded], j.Array.Size())
	}
	text := fmt.Sprintf("%s %d/%d done", j.State, finals(j.Counts), j.Array.Size())
	for _, s := range []drover.JobState{drover.JobFailed, drover.JobCancelled} {
		if n := j.Counts[s]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, s)
		}
	}
	return text
}

// finals returns how many elements are in a final state.
func finals(counts map[drover.JobState]int) (n int) {
	for state, count := range counts {
		if state.Final() {
			n += count
		}
	}
	return n
}

func lastInstance(j drover.Job) string {
	if len(j.Attempts) == 0 {
		return ""
	}
	return j.Attempts[len(j.Attempts)-1].Instance
}

// jobReasonWords returns why a job is in its state. For a waiting job it is the code and the start of the reason;
// drover explain shows the rest.
func jobReasonWords(j drover.Job) string {
	if j.State != drover.JobQueued || j.Reason == nil {
		return reasonWords(j.Reason)
	}
	text, _, _ := strings.Cut(j.Reason.Text, "; ")
	text, _, _ = strings.Cut(text, ": ")
	return j.Reason.Code + ": " + text
}

func reasonWords(r *drover.Reason) string {
	if r == nil {
		return ""
	}
	return r.Text + human.UntilWords(*r, drover.TimeOf(time.Now()))
}

// pairWords formats a map, such as labels, by name: a=1,b=2.
func pairWords[V any](values map[string]V) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		words = append(words, fmt.Sprintf("%s=%v", name, values[name]))
	}
	return strings.Join(words, ",")
}
