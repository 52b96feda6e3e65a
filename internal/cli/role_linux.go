package cli

import (
	"os"
	"path/filepath"
	"strings"

	"drover/driver/local"
	"drover/internal/runner"
)

// runRole runs this program's other roles: the processes of local instances and, in a build without smaller runners,
// the runner that is sent to them.
func runRole(args []string, stdin, stdout, stderr *os.File) (code int, is bool) {
	switch {
	case strings.HasPrefix(filepath.Base(args[0]), "drover-runner"):
		return runner.Main(args[1:], stdin, stdout, stderr), true
	case len(args) > 1 && args[1] == "local-instance":
		return local.InstanceMain(args[2:]), true
	}
	return 0, false
}
