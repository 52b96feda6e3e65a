package cli

import (
	"os"
	"path/filepath"
	"strings"

	"drover/driver/local"
	"drover/internal/runner"
)

// runRole runs what this program is besides a command: what local instances run, and, in a build that has no smaller
// ones, the runner that goes to them.
func runRole(args []string, stdin, stdout, stderr *os.File) (code int, is bool) {
	switch {
	case strings.HasPrefix(filepath.Base(args[0]), "drover-runner"):
		return runner.Main(args[1:], stdin, stdout, stderr), true
	case len(args) > 1 && args[1] == "local-instance":
		return local.InstanceMain(args[2:]), true
	}
	return 0, false
}
