package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/configimport"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check a configuration, compare two, or print an example",
		Example: "  drover config check drover.yaml",
	}
	cmd.AddCommand(
		a.configCheck(),
		a.exampleCommand("Print an example configuration with every key", "  drover config example > drover.yaml", config.Example()),
		a.schemaCommand("Print the JSON Schema of configurations, for editors", "  drover config schema > drover.schema.json",
			func() ([]byte, error) { return config.Schema(a.program.Keys()) }),
		a.configImport(), a.configDiff())
	return cmd
}

func (a *app) configCheck() *cobra.Command {
	return unformatted(onlyExitCode, &cobra.Command{
		Use:     "check [FILE]",
		Short:   "Check a configuration and report each error with its location",
		Long:    "Check a configuration and report each error with its location. It does not contact the clouds;\ndrover doctor does.",
		Example: "  drover config check drover.yaml",
		Args:    wantArgs(0, 1, "one FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := a.config
			if len(args) == 1 {
				file = args[0]
			}
			if file == "" {
				return drover.Errorf(drover.KindInvalid, "no configuration specified").WithHint("drover config check FILE")
			}
			if _, err := a.checkedConfig(cmd.Context(), file); err != nil {
				return err
			}
			fmt.Fprintf(a.err, "%s is valid\n", file)
			return nil
		},
	})
}

// exampleCommand prints an example of a file.
func (a *app) exampleCommand(short, example, text string) *cobra.Command {
	return unformatted("it prints a file", &cobra.Command{
		Use: "example", Short: short, Example: example, Args: wantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprint(a.out, text)
			return nil
		},
	})
}

// schemaCommand prints the JSON Schema of a file.
func (a *app) schemaCommand(short, example string, of func() ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: short, Example: example, Args: wantArgs(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			schema, err := of()
			if err == nil {
				fmt.Fprintf(a.out, "%s\n", schema)
			}
			return err
		},
	}
}

func (a *app) configImport() *cobra.Command {
	var kind, files string
	cmd := unformatted("it prints a file", &cobra.Command{
		Use:   "import FILE --from KIND",
		Short: "Convert another program's configuration to pools",
		Long: `Convert another program's configuration to pools, and print the result. KIND is prevmtable (its
rjson document), kip (provider.yaml or its list of standby cells) or groups (lines
min:max:type:name). Parts that cannot be converted are listed on stderr. FILE may be - for stdin.`,
		Example: "  drover config import prevmtable.rjson --from prevmtable --files . > drover.yaml\n  drover config import groups.txt --from groups",
		Args:    wantArgs(1, 1, "a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := readSource(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			result, err := configimport.Import(kind, data, files != "")
			if err != nil {
				return fmt.Errorf("importing %s: %w", args[0], err)
			}
			return a.printImported(result, files)
		},
	})
	cmd.Flags().StringVar(&kind, "from", "", "the `kind` of the file: "+strings.Join(configimport.Kinds(), ", "))
	cmd.Flags().StringVar(&files, "files", "", "write scripts and templates into this `folder`, and refer to them in the configuration")
	require(cmd, "from")
	complete(cmd, "from", completeWords(configimport.Kinds()...))
	return cmd
}

// mostSource is the maximum size of a file to import.
const mostSource = 1 << 20

func readSource(name string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "%v", err).WithHint("the path is relative to the current folder")
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, mostSource+1))
	if err == nil && len(data) > mostSource {
		err = drover.Errorf(drover.KindInvalid, "%s is larger than 1 MiB", name)
	}
	return data, err
}

// printImported writes the files that come with a configuration, lists what was not carried over, and prints the
// configuration.
func (a *app) printImported(r configimport.Result, folder string) error {
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		path := filepath.Join(folder, name)
		write := func(w io.Writer) error { _, err := io.WriteString(w, r.Files[name]); return err }
		if err := writeFile(path, os.O_EXCL, write); err != nil {
			return drover.Errorf(drover.KindInvalid, "%v", err).WithHint("use another folder, or move the file elsewhere")
		}
		fmt.Fprintf(a.err, "wrote %s\n", path)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(a.err, drover.Sanitize(note))
	}
	_, err := a.out.Write(r.YAML)
	return err
}
