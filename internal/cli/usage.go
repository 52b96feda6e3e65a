package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover"
	"drover/internal/human"
)

// flagFault explains an error in a flag by what the flag accepts.
func flagFault(cmd *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	var without *pflag.ValueRequiredError
	var told *drover.Error
	switch {
	case errors.As(err, &told): // the value's own message
		return told
	case errors.As(err, &wrong):
		takes, example := flagTakes(wrong.GetFlag())
		return drover.Errorf(drover.KindInvalid, "--%s %s is not %s", wrong.GetFlag().Name, wrong.GetValue(), takes).
			WithHint("use --%s %s", wrong.GetFlag().Name, example)
	case errors.As(err, &without):
		takes, example := flagTakes(without.GetFlag())
		return drover.Errorf(drover.KindInvalid, "--%s needs %s", without.GetFlag().Name, takes).
			WithHint("use --%s %s", without.GetFlag().Name, example)
	}
	return drover.Errorf(drover.KindInvalid, "%v", err).WithHint("%s --help shows every flag", cmd.CommandPath())
}

// flagTakes describes what a flag accepts, with an example.
func flagTakes(f *pflag.Flag) (what, example string) {
	switch f.Value.Type() {
	case "duration":
		return "a duration with a unit", "5s or 5m"
	case "int":
		return "a whole number", "3"
	case "bool":
		return "true or false", "alone, or --" + f.Name + "=false"
	}
	name, _ := pflag.UnquoteUsage(f)
	return "a value", strings.ToUpper(name)
}

// refuseUnknownTopics makes help for an unknown command an error.
func refuseUnknownTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		show := help.Run
		help.Run, help.Example = nil, "  drover help run"
		help.RunE = func(cmd *cobra.Command, args []string) error {
			if topic, rest, err := root.Find(args); err != nil || topic == root && len(rest) > 0 {
				return drover.Errorf(drover.KindInvalid, "there is no command %s", strings.Join(args, " ")).WithHint("drover help lists all commands")
			}
			show(cmd, args)
			return nil
		}
	}
}

// refuseUnknownCommands makes every command with subcommands reject unknown ones; cobra would show its help and exit.
func refuseUnknownCommands(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		if !cmd.HasSubCommands() || cmd.Runnable() && cmd.Args != nil { // it has arguments of its own
			continue
		}
		cmd.Args, cmd.SuggestionsMinimumDistance = knownCommand, 2
		if !cmd.Runnable() {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			cmd.DisableFlagsInUseLine = true
		}
	}
}

// knownCommand rejects an unknown command, and suggests similar ones.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help lists its commands"
	if meant := meantBy(cmd, args[0]); len(meant) > 0 {
		hint = "did you mean " + strings.Join(meant, " or ") + "?"
	}
	return drover.Errorf(drover.KindInvalid, "there is no command %s %s", cmd.CommandPath(), args[0]).WithHint("%s", hint)
}

// meantBy returns the commands that an unknown name may mean: those that other programs call by that name, or else the
// one with the most similar name.
func meantBy(cmd *cobra.Command, typed string) (meant []string) {
	for _, other := range cmd.Commands() {
		if slices.Contains(other.SuggestFor, typed) {
			meant = append(meant, other.CommandPath())
		}
	}
	if meant != nil {
		return meant
	}
	if len(typed) < 3 {
		cmd.SuggestionsMinimumDistance = 1 // a short word with two letters changed is another word
	}
	for _, like := range cmd.SuggestionsFor(typed) {
		if len(typed) > 3 || strings.HasPrefix(strings.ToLower(typed), like[:1]) { // so is one that begins differently
			return []string{cmd.CommandPath() + " " + like}
		}
	}
	return nil
}

// wantArgs checks the number of arguments; what names one of them, or is empty if people give none. -1 means no limit.
func wantArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		hint := "for example: " + firstLine(cmd.Example)
		switch {
		case len(args) < least:
			return drover.Errorf(drover.KindInvalid, "%s needs %s", cmd.CommandPath(), what).WithHint("%s", hint)
		case most == 0 && len(args) > 0 && what != "":
			return drover.Errorf(drover.KindInvalid, "%s takes %s, but got %s", cmd.CommandPath(), what, args[0]).WithHint("leave one of them out")
		case most >= 0 && len(args) > most && what == "":
			return drover.Errorf(drover.KindInvalid, "%s takes no arguments, but got %s", cmd.CommandPath(), args[most]).WithHint("%s", hint)
		case most >= 0 && len(args) > most:
			return drover.Errorf(drover.KindInvalid, "%s takes only %s, but also got %s", cmd.CommandPath(), what, args[most]).WithHint("%s", hint)
		}
		return nil
	}
}

// missingFlags rejects a command line without a required flag; cobra's own error has no example.
func missingFlags(cmd *cobra.Command) error {
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	if missing == nil {
		return nil
	}
	return drover.Errorf(drover.KindInvalid, "%s needs %s", cmd.CommandPath(), human.And(missing)).
		WithHint("for example: %s", firstLine(cmd.Example))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// jobIDs parses the ids of jobs.
func jobIDs(args []string) ([]drover.JobID, error) {
	ids := make([]drover.JobID, len(args))
	for i, arg := range args {
		var err error
		if ids[i], err = drover.ParseJobID(arg); err != nil {
			return nil, drover.Errorf(drover.KindInvalid, "%v", err).WithHint("to list the jobs: drover jobs; write an array element as JOB.INDEX")
		}
	}
	return ids, nil
}

// pairs parses the NAME=VALUE values of a repeatable flag.
func pairs(flag string, given []string) (map[string]string, error) {
	if given == nil {
		return nil, nil
	}
	all := map[string]string{}
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, drover.Errorf(drover.KindInvalid, "--%s %s is not NAME=VALUE", flag, pair).WithHint("use --%s NAME=VALUE", flag)
		}
		if other, twice := all[name]; twice && other != value {
			return nil, drover.Errorf(drover.KindInvalid, "--%s %s has two values", flag, name).WithHint("use --%s %s=VALUE only once", flag, name)
		}
		all[name] = value
	}
	return all, nil
}
