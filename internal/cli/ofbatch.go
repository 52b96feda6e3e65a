package cli

import (
	"github.com/spf13/cobra"

	"drover"
)

// ofBatch chooses the jobs of batches by name. Names are not unique, so it chooses among the caller's own batches, or
// among one user's.
type ofBatch struct{ batch, user string }

// add adds the flags. what describes the choice of --batch, such as "every job".
func (f *ofBatch) add(a *app, cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.batch, "batch", "", what+" of your batches with this `name`")
	cmd.Flags().StringVar(&f.user, "user", "", "with --batch: search this `user`'s batches instead of yours")
	complete(cmd, "batch", a.completeBatches)
}

// filter returns a filter for the jobs; all jobs if no batch is named.
func (f ofBatch) filter() drover.JobFilter {
	return drover.JobFilter{Batch: f.batch, User: f.user, Mine: f.batch != "" && f.user == ""}
}
