package cli

import (
	"context"
	"fmt"
	"iter"
	"path"
	"strconv"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
)

// outputsFlags are the flags of `drover outputs`.
type outputsFlags struct {
	ofBatch
	to string
}

func (a *app) outputsCommand() *cobra.Command {
	var f outputsFlags
	cmd := named(&cobra.Command{
		Use:   "outputs [flags] [JOB] [PATTERN]",
		Short: "List or fetch the output files of jobs",
		Long: `List the output files of a job or of every job of a batch. With --to, fetch them into a folder, with
a subfolder per job of a batch and per element of an array. A pattern, such as '**/*.csv', selects
files. Fetched files are verified, and nothing is written outside the folder.`,
		Example: "  drover outputs 17\n  drover outputs 17 --to results\n  drover outputs --batch hello '*.csv' --to results",
		Args:    cobra.RangeArgs(0, 2),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			files, err := a.outputs(ctx, svc, f, args)
			if err != nil {
				return err
			}
			if f.to != "" {
				files = a.fetched(ctx, svc, files, f.to)
			}
			return printList(a, outputListing, files)
		}),
	})
	f.add(a, cmd, "list or fetch the outputs of every job")
	cmd.Flags().StringVar(&f.to, "to", "", "fetch the files into this `folder`")
	a.addPatience(cmd)
	cmd.ValidArgsFunction = a.completeJobs()
	if err := cmd.MarkFlagDirname("to"); err != nil {
		panic(err) // only if the flag does not exist
	}
	return cmd
}

// outputs returns the files that the arguments name.
func (a *app) outputs(ctx context.Context, svc drover.Service, f outputsFlags, args []string) (iter.Seq2[jobOutput, error], error) {
	var files iter.Seq2[jobOutput, error]
	if f.batch != "" {
		files = outputsOfBatch(ctx, svc, f.filter())
	} else if len(args) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "no job specified").WithHint("drover outputs JOB, or drover outputs --batch NAME")
	} else {
		ids, err := jobIDs(args[:1])
		if err != nil {
			return nil, err
		}
		files, args = outputsOf(ctx, svc, ids[0]), args[1:]
	}
	switch {
	case len(args) > 1:
		return nil, drover.Errorf(drover.KindInvalid, "a JOB and --batch cannot be used together").WithHint("leave one of them out")
	case len(args) == 0:
		return files, nil
	case !doublestar.ValidatePattern(args[0]):
		return nil, drover.Errorf(drover.KindInvalid, "%q is not a valid pattern", args[0]).WithHint("use, for example, '*.csv', or '**/*.csv' to include files in folders")
	}
	return func(yield func(jobOutput, error) bool) {
		for o, err := range files {
			if err != nil || doublestar.MatchUnvalidated(args[0], o.Path) {
				if !yield(o, err) {
					return
				}
			}
		}
	}, nil
}

// outputsOfBatch lists the outputs of a batch's jobs, each below its job's name.
func outputsOfBatch(ctx context.Context, svc drover.Service, batch drover.JobFilter) iter.Seq2[jobOutput, error] {
	return func(yield func(jobOutput, error) bool) {
		seen := map[string]bool{}
		for job, err := range allJobs(ctx, svc, batch) {
			if err != nil {
				yield(jobOutput{}, err)
				return
			}
			folder := job.Name
			if seen[folder] { // an earlier batch had the same name
				folder = fmt.Sprintf("%s-%v", job.Name, job.ID)
			}
			seen[job.Name] = true
			for o, err := range outputsOf(ctx, svc, job.ID) {
				o.place = path.Join(folder, o.place)
				if !yield(o, err) || err != nil {
					return
				}
			}
		}
		if len(seen) == 0 {
			yield(jobOutput{}, noBatch(batch.Batch))
		}
	}
}

// jobOutput is an output file of a job or an array element.
type jobOutput struct {
	Job  drover.JobID `json:"job"`
	Path string       `json:"path"`
	Size int64        `json:"size_bytes"`
	Hash string       `json:"sha256,omitempty"`

	place string // where it is written, below the named folder
	file  drover.File
}

var outputListing = listing[jobOutput]{
	name: func(o jobOutput) string { return o.place },
	none: "no outputs",
	columns: []column[jobOutput]{
		{title: "JOB", text: func(o jobOutput) string { return o.Job.String() }},
		{title: "SIZE", text: func(o jobOutput) string { return human.Size(drover.Bytes(o.Size)) }, right: true},
		{title: "PATH", text: func(o jobOutput) string { return o.place }},
	},
}

// outputsOf lists the outputs of a job, or of all elements of an array.
func outputsOf(ctx context.Context, svc drover.Queue, id drover.JobID) iter.Seq2[jobOutput, error] {
	return func(yield func(jobOutput, error) bool) {
		job, err := svc.Job(ctx, id)
		if err != nil {
			yield(jobOutput{}, err)
			return
		}
		if job.Array == nil || id.Index >= 0 {
			yieldOutputs(ctx, svc, id, "", yield)
			return
		}
		for element, err := range allJobs(ctx, svc, drover.JobFilter{Job: id.Number, Elements: true, Tried: true}) {
			if err != nil {
				yield(jobOutput{}, err)
				return
			}
			if !yieldOutputs(ctx, svc, element.ID, strconv.Itoa(element.ID.Index), yield) {
				return
			}
		}
	}
}

// yieldOutputs yields the outputs of one job or element, and reports whether more are wanted.
func yieldOutputs(ctx context.Context, svc drover.Queue, id drover.JobID, folder string, yield func(jobOutput, error) bool) bool {
	files, err := svc.Outputs(ctx, id)
	if err != nil {
		yield(jobOutput{}, fmt.Errorf("listing the outputs of job %v: %w", id, err))
		return false
	}
	for _, f := range files {
		if !yield(jobOutput{Job: id, Path: f.Path, Size: f.Size, Hash: f.Hash, place: path.Join(folder, f.Path), file: f}, nil) {
			return false
		}
	}
	return true
}
