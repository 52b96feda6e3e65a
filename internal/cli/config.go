package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check a configuration, or show what one looks like",
		Example: "  drover config check drover.yaml",
	}
	cmd.AddCommand(a.configCheck(), a.configExample(), a.configSchema())
	return cmd
}

func (a *app) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check [FILE]",
		Short:   "Say whether a configuration is good, and if not, where and why",
		Long:    "Say whether a configuration is good, and if not, where and why. No cloud is called for it: drover doctor does that.",
		Example: "  drover config check drover.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.nothingForPrograms("drover config check"); err != nil {
				return err
			}
			file := a.config
			if len(args) == 1 {
				file = args[0]
			}
			if file == "" {
				return drover.Errorf(drover.KindInvalid, "no configuration to check").WithHint("drover config check FILE")
			}
			c, err := a.loadConfig(file, "")
			if err != nil {
				return err
			}
			if err := a.checkKeys(cmd.Context(), c); err != nil {
				return err
			}
			fmt.Fprintf(a.err, "%s is good\n", file)
			return nil
		},
	}
}

func (a *app) configExample() *cobra.Command {
	return &cobra.Command{
		Use:     "example",
		Short:   "Print a configuration with every key there is",
		Example: "  drover config example > drover.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprint(a.out, config.Example())
			return nil
		},
	}
}

func (a *app) configSchema() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of configurations, for editors",
		Example: "  drover config schema > drover.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema(a.program.Keys())
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s\n", schema)
			return nil
		},
	}
}
