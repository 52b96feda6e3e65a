package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryCommandIsInTheGuide checks that each command is used in one of the guides, whose commands TestGuide runs.
func TestEveryCommandIsInTheGuide(t *testing.T) {
	var typed strings.Builder
	for _, name := range []string{"guide", "pools", "simulate", "kubernetes"} {
		text, err := os.ReadFile("../../docs/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^\$ .*$`).FindAllString(string(text), -1) {
			typed.WriteString(line + "\n")
		}
	}
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		for _, sub := range cmd.Commands() {
			walk(sub, path+" "+sub.Name())
		}
		if !cmd.Runnable() || cmd.Hidden || strings.HasPrefix(path, "drover completion") || strings.HasPrefix(path, "drover help") {
			return
		}
		// Flags may precede the command's name.
		words := strings.Fields(path)
		pattern := words[0] + `\b[^;|]* ` + strings.Join(words[1:], " ") + `\b`
		if !regexp.MustCompile(pattern).MatchString(typed.String()) {
			t.Errorf("no guide uses %s", path)
		}
	}
	walk((&app{}).root(), "drover")
}

func TestEveryCommandHasAnExample(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if of := cmd.Parent(); cmd.Example == "" && !cmd.Hidden && (of == nil || of.Name() != "completion") {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	}
	walk((&app{}).root())
}
