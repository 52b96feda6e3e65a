package main

import (
	"context"
	"fmt"
	"iter"
	"path"
	"strconv"

	"github.com/spf13/cobra"

	"drover"
)

func (a *app) outputsCommand() *cobra.Command {
	var to string
	cmd := named(&cobra.Command{
		Use:   "outputs [flags] JOB",
		Short: "List the files that a job has left, or fetch them",
		Long: `List the files that a job has left, or with --to fetch them into a folder, which is made if it is not there. Those of an array are laid in a
folder for each element, called by its index. What is fetched is checked, and nothing is ever written outside of the folder.`,
		Example: "  drover outputs 17\n  drover outputs 17 --to results",
		Args:    wantArgs(1, 1, "a JOB"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			files := outputsOf(ctx, svc, ids[0])
			if to != "" {
				files = a.fetched(ctx, svc, files, to)
			}
			return printList(a, outputListing, files)
		}),
	})
	cmd.Flags().StringVar(&to, "to", "", "fetch them into this `folder`")
	cmd.ValidArgsFunction = a.completeJobs
	if err := cmd.MarkFlagDirname("to"); err != nil {
		panic(err) // a flag that is not there
	}
	return cmd
}

// jobOutput is a file that a job, or an element of an array, has left.
type jobOutput struct {
	Job  drover.JobID `json:"job"`
	Path string       `json:"path"`
	Size int64        `json:"size_bytes"`
	Hash string       `json:"sha256,omitempty"`

	place string // where it is laid, below the folder that is named
	file  drover.File
}

var outputListing = listing[jobOutput]{
	name: func(o jobOutput) string { return o.place },
	none: "no outputs",
	columns: []column[jobOutput]{
		{title: "JOB", text: func(o jobOutput) string { return o.Job.String() }},
		{title: "SIZE", text: func(o jobOutput) string { return size(drover.Bytes(o.Size)) }, right: true},
		{title: "PATH", text: func(o jobOutput) string { return o.place }},
	},
}

// outputsOf lists what a job has left; of an array as a whole, what each of its elements has.
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

// yieldOutputs yields what one job or element has left, and reports whether more is wanted.
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
