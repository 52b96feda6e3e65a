package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drover"
)

func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "queue", Short: "Pause or resume the queue", Example: "  drover queue pause\n  drover queue resume"}
	cmd.AddCommand(
		a.pausingCommand(true, &cobra.Command{
			Use:   "pause",
			Short: "Stop starting queued jobs and renting instances for them",
			Long: `Stop starting queued jobs and renting instances for them. Running jobs keep running, jobs can still be
submitted, and idle instances are destroyed as usual. The queue stays paused until it is resumed, even
if the controller restarts.`,
			Example: "  drover queue pause --reason 'the file server is being moved'",
		}),
		a.pausingCommand(false, &cobra.Command{
			Use:     "resume",
			Short:   "Start queued jobs again",
			Example: "  drover queue resume",
		}))
	return cmd
}

func (a *app) pausingCommand(paused bool, cmd *cobra.Command) *cobra.Command {
	var reason string
	cmd.Args = wantArgs(0, 0, "")
	cmd.Flags().StringVar(&reason, "reason", "", "`text` for drover explain and the log")
	cmd.RunE = a.ask(func(ctx context.Context, svc drover.Service, _ []string) error {
		status, err := svc.SetPaused(ctx, paused, reason)
		if err != nil {
			return err
		}
		if a.forPrograms() {
			return a.print(status)
		}
		if paused {
			fmt.Fprintf(a.out, "the queue is paused: %d running, %d waiting\n", status.Jobs[drover.JobRunning], status.Jobs[drover.JobQueued])
		} else {
			fmt.Fprintln(a.out, "the queue has been resumed")
		}
		return nil
	})
	return cmd
}
