package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"drover"
	"drover/internal/daemon"
)

// app is the state that every command uses.
type app struct {
	program daemon.Program

	out io.Writer // data
	err io.Writer // progress and messages

	terminal bool // err is a terminal
	screen   bool // out is a terminal
	color    bool // out may have colours

	config     string
	configFlag bool // it is from the command line, not the environment
	server     string
	tokenFrom  string
	output     output
	lists      priceLists // replace the clouds' own offerings

	connect  func(context.Context) (drover.Service, error) // returns the controller that commands call
	patience time.Duration                                 // how long to wait for it
	patient  bool                                          // the command line sets patience
	answered *atomic.Bool                                  // the controller has answered this command
	toldAway *atomic.Bool                                  // the user was told that the controller does not answer
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, p daemon.Program, args []string, stdout, stderr *os.File) int {
	// If the reader closes the pipe, this process must not die while instances run. Catch the signal rather than ignore
	// it, since child processes inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	out := &checked{Writer: stdout}
	a := &app{program: p, answered: new(atomic.Bool), toldAway: new(atomic.Bool), out: out, err: stderr, terminal: isTerminal(stderr), screen: isTerminal(stdout)}
	a.color = a.screen && os.Getenv("NO_COLOR") == ""
	a.connect = a.service
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = out.err
	}
	return a.code(err)
}

// checked is a writer that keeps its first error, so that only endless output needs a check of each write.
type checked struct {
	io.Writer
	err error
}

// Write writes, and keeps an error.
func (c *checked) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Drive a herd of cloud VMs: bring them in when there is work, send them away when there is none",
		Version:       versionLine(a.program.Build()),
		SilenceErrors: true,
		SilenceUsage:  true,
		Long: `Drover drives a herd of cloud VMs: it brings them in when there is work and sends them away when there is none.

'drover run' and some other commands need no controller. The others need the controller's URL and
your token: set --server and --token, or DROVER_SERVER and DROVER_TOKEN. On the controller's own host,
its configuration is enough: set -c FILE or DROVER_CONFIG. -c overrides DROVER_SERVER; DROVER_CONFIG
does not.

Exit codes: 0 success, 1 a job failed or a check found faults, 2 invalid command or configuration,
3 the controller or a cloud could not be reached, 4 not allowed, 130 interrupted.`,
		Example: "  drover run examples/hello.yaml\n  drover run -- sh -c 'echo hello from $(hostname)'",
	}
	root.SetVersionTemplate("{{.Version}}\n")
	a.addFlags(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if a.patient = cmd.Flags().Changed("retry-for"); cmd.Flags().Lookup("retry-for") == nil {
			a.patience = 0
		}
		a.configFlag = cmd.Flags().Changed("config")
		return cmp.Or(missingFlags(cmd), a.output.check(cmd))
	}
	a.addCommands(root)
	root.SetFlagErrorFunc(flagFault)
	root.SetGlobalNormalizationFunc(presentName)
	return root
}

// formerFlags are the previous version's flag names. They still work but are not listed.
var formerFlags = map[string]pflag.NormalizedName{"patience": "retry-for", "output-file": "collect"}

func presentName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if present, former := formerFlags[name]; former {
		return present
	}
	return pflag.NormalizedName(name)
}

// addFlags adds the flags that every command has.
func (a *app) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVarP(&a.config, "config", "c", os.Getenv("DROVER_CONFIG"), "configuration `file`; without one, use this computer instead of a cloud")
	flags.Lookup("config").DefValue = "" // the help is the same for all users
	flags.StringVar(&a.server, "server", "", "`URL` of the controller")
	flags.StringVar(&a.tokenFrom, "token", "", "file that contains your token, as `file:PATH`")
	flags.StringVarP((*string)(&a.output), "output", "o", "", "output format: json, yaml, name or wide; default: a table")
	complete(root, "output", completeWords("json", "yaml", "name", "wide"))
	complete(root, "token", completeWords("file:"))
}

// addCommands adds the commands in groups.
func (a *app) addCommands(root *cobra.Command) {
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Without a controller:", []*cobra.Command{a.runCommand(), a.runsCommand(), a.planCommand(), a.simulateCommand(), a.gcCommand(), a.replayCommand(), a.batchCommand(), a.configCommand(), a.driverCommand()}},
		{"A controller:", []*cobra.Command{a.serveCommand(), a.tokenCommand(), a.backupCommand(), a.doctorCommand(), a.kubernetesCommand()}},
		{"The queue:", []*cobra.Command{
			a.submitCommand(), a.jobsCommand(), a.explainCommand(), a.logsCommand(), a.outputsCommand(), a.cancelCommand(), a.retryCommand(),
			a.priorityCommand(), a.waitCommand(), a.queueCommand(),
		}},
		{"The fleet:", append(a.verbCommands(), a.instancesCommand(), a.poolsCommand(), a.poolCommand(), a.sshCommand(), a.offersCommand(), a.costCommand(), a.eventsCommand(), a.topCommand(), a.openCommand())},
		{"More:", []*cobra.Command{a.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}
	root.SetCompletionCommandGroupID("More:")
	root.SetHelpCommandGroupID("More:")
	root.AddCommand(a.manCommand())
	refuseUnknownTopics(root)
	root.InitDefaultCompletionCmd("completion")
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Example = "  source <(drover completion bash)"
		}
	}
	refuseUnknownCommands(root)
}

// output is the format in which a command prints its result.
type output string

// The formats. JSON and YAML are for programs, the others for people.
const (
	outputTable output = ""
	outputWide  output = "wide"
	outputName  output = "name"
	outputJSON  output = "json"
	outputYAML  output = "yaml"
)

// hasNames marks a command that has -o name.
const hasNames = "has names"

// named gives a command -o name.
func named(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{hasNames: "yes"}
	return cmd
}

// hasNoFormats marks a command that has no -o, and says why.
const hasNoFormats = "has no formats"

// onlyExitCode is why most such commands have none.
const onlyExitCode = "its only result is the exit code"

// unformatted makes a command refuse output formats for programs.
func unformatted(why string, cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{hasNoFormats: why}
	return cmd
}

func (o output) check(cmd *cobra.Command) error {
	switch o {
	case outputTable, outputWide:
		return nil
	case outputJSON, outputYAML:
		if why := cmd.Annotations[hasNoFormats]; why != "" {
			return drover.Errorf(drover.KindInvalid, "-o does not apply to %s: %s", cmd.CommandPath(), why).WithHint("leave out -o")
		}
		return nil
	case outputName:
		if cmd.Annotations[hasNames] != "" {
			return nil
		}
		return drover.Errorf(drover.KindInvalid, "%s does not support -o name", cmd.CommandPath()).WithHint("use -o json, yaml or wide, or leave out -o")
	}
	return drover.Errorf(drover.KindInvalid, "--output %s is not valid", string(o)).WithHint("use -o json, yaml, name or wide, or leave out -o")
}

// forPrograms reports whether the output is for a program.
func (a *app) forPrograms() bool { return a.output == outputJSON || a.output == outputYAML }

// forPeople reports whether the output is a table or a text.
func (a *app) forPeople() bool { return a.output == outputTable || a.output == outputWide }

// print prints v for programs; YAML uses the names of the JSON fields.
func (a *app) print(v any) error {
	data, err := a.encode(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", data)
	return err
}

// printOneOf prints one of several values that are printed as they arrive.
func (a *app) printOneOf(v any) error {
	if a.output == outputYAML {
		if _, err := fmt.Fprintln(a.out, "---"); err != nil {
			return err
		}
	}
	return a.print(v)
}

func (a *app) encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	switch {
	case err != nil:
	case a.output == outputYAML:
		data, err = jsonToYAML(data)
	default:
		data = escapeJSON(data)
	}
	return bytes.TrimSpace(data), err
}

// element encodes v as an element of an array.
func (a *app) element(v any) ([]byte, error) {
	if a.output != outputYAML {
		return a.encode(v)
	}
	data, err := a.encode([]any{v})
	return append(data, '\n'), err
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
