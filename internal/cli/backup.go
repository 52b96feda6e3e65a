package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/store"
)

func (a *app) backupCommand() *cobra.Command {
	return unformatted(onlyExitCode, &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the controller's records, even while it is running",
		Long: `Copy the controller's records to a new file that only you can read. Run this command on the
controller's own host, with its configuration; the controller may be running. To restore a copy, see
"Restoring a backup" in docs/operations.md.`,
		Example: "  drover backup -c drover.yaml drover-2026-11-23.db",
		Args:    wantArgs(1, 1, "a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.config == "" {
				return drover.Errorf(drover.KindInvalid, "no configuration specified, so the records cannot be found").WithHint("drover backup -c drover.yaml FILE")
			}
			_, folder, err := a.daemon()
			if err != nil {
				return err
			}
			if _, err := os.Stat(folder.DB()); err != nil {
				return drover.Errorf(drover.KindInvalid, "there are no records to back up: %v", err).WithHint("drover serve creates them")
			}
			if err := store.Backup(cmd.Context(), folder.DB(), args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.err, "wrote %s, a copy of %s\n", args[0], folder.DB())
			return err
		},
	})
}
