package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (p Program) version() versionInfo {
	v := versionInfo{Version: p.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	return v
}

// line is the version for people.
func (v versionInfo) line() string {
	return fmt.Sprintf("drover %s (%s, %s/%s)", v.Version, v.Go, v.OS, v.Arch)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  drover version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := a.program.version()
			if a.forPrograms() {
				return a.print(v)
			}
			_, err := fmt.Fprintln(a.out, v.line())
			return err
		},
	}
}
