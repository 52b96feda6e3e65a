// Command drover drives a herd of cloud VMs: it brings them in when there is work and sends them away when there is none.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"drover/driver/local"
	"drover/internal/runner"
)

func main() {
	os.Exit(dispatch(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// dispatch is the whole program. This binary is also what local instances run, and, in a build that has no smaller ones, the runner
// that goes to them.
func dispatch(args []string, stdin *os.File, stdout, stderr *os.File) int {
	switch {
	case strings.HasPrefix(filepath.Base(args[0]), "drover-runner"):
		return runner.Main(args[1:], stdin, stdout, stderr)
	case len(args) > 1 && args[1] == "local-instance":
		return local.InstanceMain(args[2:])
	}
	return run(context.Background(), args[1:], stdout, stderr)
}
