package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"drover"
	"drover/internal/config"
)

// Exit codes that scripts may rely on. The table of package drover has those of errors.
const (
	exitDone        = 0
	exitWorkFailed  = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// exit ends a command with a code after everything has been printed.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// code prints an error and returns its exit code.
func (a *app) code(err error) int {
	var quiet exit
	var onFile *fs.PathError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.Is(err, syscall.EPIPE) && errors.As(err, &onFile) && onFile.Path == os.Stdout.Name():
		return exitBrokenPipe
	}
	if faults, ok := errors.AsType[config.Faults](err); ok {
		fmt.Fprintln(a.err, faults.Error())
		return exitUsage
	}
	e := drover.AsError(err, drover.KindInvalid)
	fmt.Fprintf(a.err, "drover: %s\n", drover.SanitizeLines(e.Message))
	if e.Hint != "" {
		fmt.Fprintf(a.err, "    hint: %s\n", drover.SanitizeLines(e.Hint))
	}
	return e.Kind.ExitCode()
}
