package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the man pages, for packages and `make man`.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages to a folder",
		Example: "  drover man share/man/man1",
		Hidden:  true,
		Args:    wantArgs(1, 1, "a DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.InitDefaultCompletionCmd()
			root.DisableAutoGenTag = true // otherwise the pages of one version would differ by date
			header := &doc.GenManHeader{Section: "1", Source: "drover " + a.program.Version, Manual: "Drover"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("writing the man pages: %w", err)
			}
			return nil
		},
	}
}
