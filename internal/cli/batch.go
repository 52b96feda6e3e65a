package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"drover/internal/config"
	"drover/internal/human"
)

func (a *app) batchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "batch",
		Short:   "Check a batch file or print an example",
		Example: "  drover batch example > batch.yaml\n  drover batch check batch.yaml",
	}
	cmd.AddCommand(
		unformatted(onlyExitCode, &cobra.Command{
			Use:     "check FILE",
			Short:   "Check a batch file and report each error with its location",
			Long:    "Check a batch file and its inputs, and report each error with its location. To see whether the clouds\ncan run it, use drover plan.",
			Example: "  drover batch check batch.yaml",
			Args:    wantArgs(1, 1, "a FILE"),
			RunE: func(_ *cobra.Command, args []string) error {
				file, err := config.LoadBatch(args[0])
				if err != nil {
					return err
				}
				if err := checkInputs(file.Batch); err != nil {
					return err
				}
				elements := elements(file.Batch)
				fmt.Fprintf(a.err, "%s is valid: %s", args[0], human.Plural(len(file.Batch.Jobs), "job"))
				if elements > len(file.Batch.Jobs) {
					fmt.Fprintf(a.err, ", with %d elements in all", elements)
				}
				fmt.Fprintln(a.err)
				return nil
			},
		}),
		a.exampleCommand("Print an example batch file with every key", "  drover batch example > batch.yaml", config.BatchExample()),
		a.schemaCommand("Print the JSON Schema of batch files, for editors", "  drover batch schema > batch.schema.json", config.BatchSchema))
	return cmd
}
