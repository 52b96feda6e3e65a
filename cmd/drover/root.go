package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
)

// Exit codes, as PRODUCT promises them to scripts. Those of errors stand in the table of package drover.
const (
	exitDone        = 0
	exitWorkFailed  = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// exit ends a command with a code when all that is to be said has been said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// app is what every command works with.
type app struct {
	out io.Writer // data
	err io.Writer // progress and chatter

	terminal bool // err is one
	config   string
	output   output
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr *os.File) int {
	// A reader who leaves is no reason to die with instances running. Caught and not ignored: processes started here would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	a := &app{out: stdout, err: stderr, terminal: isTerminal(stderr)}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.code(root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Drive a herd of cloud VMs: bring them in when there is work, send them away when there is none",
		SilenceErrors: true,
		SilenceUsage:  true,
		Long: `Drover drives a herd of cloud VMs: it brings them in when there is work and sends them away when there is none.

Exit codes: 0 done, 1 the work failed, 2 wrong usage or configuration, 3 the controller or a cloud could not be reached,
4 not allowed, 130 interrupted.`,
		Example: "  drover run examples/hello.yaml\n  drover run -- sh -c 'echo hello from $(hostname)'",
	}
	root.PersistentFlags().StringVarP(&a.config, "config", "c", os.Getenv("DROVER_CONFIG"), "configuration `file`; without one, this machine is the cloud")
	root.PersistentFlags().StringVarP((*string)(&a.output), "output", "o", "", "what to print: json or yaml; without it, tables for people")
	complete(root, "output", completeWords("json", "yaml"))
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.output.check() }
	root.AddCommand(a.runCommand(), a.planCommand(), a.gcCommand(), a.configCommand(), a.versionCommand())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return drover.Errorf(drover.KindInvalid, "%v", err).WithHint("%s --help shows every flag", cmd.CommandPath())
	})
	return root
}

// code says what went wrong and turns it into an exit code.
func (a *app) code(err error) int {
	var quiet exit
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &quiet):
		return int(quiet)
	}
	var faults config.Faults
	if errors.As(err, &faults) {
		fmt.Fprintln(a.err, faults.Error())
		return exitUsage
	}
	e := drover.AsError(err, drover.KindInvalid)
	fmt.Fprintf(a.err, "drover: %s\n", e.Message)
	if e.Hint != "" {
		fmt.Fprintf(a.err, "    hint: %s\n", e.Hint)
	}
	return e.Kind.ExitCode()
}

// output is how the result of a command is printed.
type output string

// The outputs. Tables are for people, the others for programs.
const (
	outputTable output = ""
	outputJSON  output = "json"
	outputYAML  output = "yaml"
)

func (o output) check() error {
	switch o {
	case outputTable, outputJSON, outputYAML:
		return nil
	}
	return drover.Errorf(drover.KindInvalid, "--output %s is not known", string(o)).WithHint("write -o json or -o yaml, or leave it out")
}

// forPrograms reports whether a program reads what is printed.
func (a *app) forPrograms() bool { return a.output != outputTable }

// print prints v for programs, which YAML names as JSON does.
func (a *app) print(v any) error {
	data, err := json.Marshal(v)
	if err == nil && a.output == outputYAML {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", bytes.TrimSpace(data))
	return err
}
