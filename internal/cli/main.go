// Package cli implements the commands of drover. A command parses its arguments, calls a controller through
// drover.Service, and prints.
package cli

import (
	"context"
	"os"

	"drover/internal/daemon"
)

// Main runs this process's command line and returns the exit code.
func Main(p daemon.Program) int {
	if code, is := runRole(os.Args, os.Stdin, os.Stdout, os.Stderr); is {
		return code
	}
	return run(context.Background(), p, os.Args[1:], os.Stdout, os.Stderr)
}
