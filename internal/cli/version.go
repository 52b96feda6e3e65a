package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"drover/internal/daemon"
)

// versionLine formats the version for people.
func versionLine(v daemon.Build) string {
	return fmt.Sprintf("drover %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  drover version -o json",
		Args:    wantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			v := a.program.Build()
			if a.forPrograms() {
				return a.print(v)
			}
			_, err := fmt.Fprintln(a.out, versionLine(v))
			return err
		},
	}
}
