// Package cli is the commands of drover. A command parses its line, talks to a controller through drover.Service, and prints.
package cli

import (
	"context"
	"io/fs"
	"os"

	"drover/driver"
)

// Program is what a main package compiles in.
type Program struct {
	Version string
	Drivers map[string]Kind
	Runners fs.FS // the programs that go to instances: runners/linux-ARCH.gz, as far as there are any
}

// Kind is a kind of cloud.
type Kind struct {
	Open driver.Opener
	Keys any  // of the type into which it decodes its own keys of the configuration; a [booted] where that is known before a cloud is open
	Here bool // it is on this host, so that asking it needs no network
}

// Main runs this process's command line and returns the exit code.
func Main(p Program) int {
	if code, is := runRole(os.Args, os.Stdin, os.Stdout, os.Stderr); is {
		return code
	}
	return run(context.Background(), p, os.Args[1:], os.Stdout, os.Stderr)
}
