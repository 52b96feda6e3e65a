package runner

import (
	"flag"
	"fmt"
	"io"
)

// Main runs the subcommand that args begin with and returns the exit code: 2 for wrong usage, 1 for any other failure.
// It changes the process's working folder.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, "usage: drover-runner control|bulk --dir DIR …")
		return 2
	}
	if args[0] == "init" && len(args) > 1 {
		return initiate(args[1:], stderr)
	}
	if args[0] == "apart" && len(args) > 2 {
		return initiateApart(args[1:])
	}
	o, err := parse(args, stderr)
	if err != nil {
		return 2
	}
	switch args[0] {
	case "control", "bulk":
		err = bridge(args[0], o, stdin, stdout)
	case "daemon":
		err = runDaemon(o)
	case "supervise":
		err = supervise()
	default:
		fmt.Fprintf(stderr, "drover-runner: unknown subcommand %q\n", args[0])
		return 2
	}
	if err != nil {
		fmt.Fprintf(stderr, "drover-runner: %v\n", err)
		return 1
	}
	return 0
}

// options are the subcommands' flags. Fleet and instance may be empty if the folder already has them.
type options struct {
	dir      string
	identity identity
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.dir, "dir", "", "the runner's folder")
	flags.StringVar(&o.identity.Fleet, "fleet", "", "this instance's fleet")
	flags.StringVar(&o.identity.Instance, "instance", "", "this instance's name")
	if err := flags.Parse(args[1:]); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.dir == "" && args[0] != "supervise" {
		err = fmt.Errorf("%s needs --dir and takes no further arguments", args[0])
		fmt.Fprintln(stderr, err)
	}
	return o, err
}
