package main

import (
	"github.com/spf13/cobra"
)

// completer offers what may be typed.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete has the shell offer values for a flag, which must exist.
func complete(cmd *cobra.Command, flag string, offer completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // a flag that is not there
	}
}

func completeWords(words ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRuns offers the runs that did not come to their end.
func completeRuns(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	home, err := stateHome()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return unfinishedRuns(home), cobra.ShellCompDirectiveNoFileComp
}

// completeClouds offers the clouds of the configuration that is in force.
func (a *app) completeClouds(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	c, err := loadConfig(a.config, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return c.CloudNames(), cobra.ShellCompDirectiveNoFileComp
}

// completeBatch offers batch files.
func completeBatch(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
