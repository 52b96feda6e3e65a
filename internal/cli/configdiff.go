package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/human"
)

func (a *app) configDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff FILE [OTHER]",
		Short: "Show the effects of a changed configuration",
		Long: `Show what would change if the running controller's configuration file had the content of FILE: the
keys that differ, and the instances that would be created, drained, replaced or destroyed. Paths in
FILE are relative to the folder of the controller's file. Without --server or -c, FILE also says
where the controller is. With OTHER, show the keys that differ between FILE and OTHER; this needs no
controller. Nothing is changed. The exit code is 0 whether or not anything differs.`,
		Example: "  drover -c drover.yaml config diff new.yaml\n  drover config diff old.yaml new.yaml -o json",
		Args:    wantArgs(1, 2, "one FILE or two"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return a.diffFiles(cmd.Context(), args)
			}
			a.config = cmp.Or(a.config, args[0])
			return a.ask(a.diffRunning)(cmd, args)
		},
	}
}

// diffFiles compares two files.
func (a *app) diffFiles(ctx context.Context, files []string) error {
	var both []*config.Config
	for _, file := range files {
		c, err := a.checkedConfig(ctx, file)
		if err != nil {
			return err
		}
		both = append(both, c)
	}
	fmt.Fprintln(a.err, "a running controller can show what would happen to instances: drover -c FILE config diff OTHER")
	return a.printDiff(daemon.Compare(both[0], both[1]))
}

func (a *app) diffRunning(ctx context.Context, svc drover.Service, args []string) error {
	with, ok := svc.(interface {
		CompareConfig(ctx context.Context, name string, text []byte) (drover.ConfigDiff, error)
	})
	if !ok {
		return drover.Errorf(drover.KindUnsupported, "this controller has no configuration file")
	}
	text, err := readSource(args[0], nil)
	if err != nil {
		return err
	}
	diff, err := with.CompareConfig(ctx, args[0], text)
	if drover.KindOf(err) == drover.KindUnreachable {
		return drover.AsError(err, drover.KindUnreachable).WithHint("there is no running controller to compare with; drover config diff OLD NEW compares two files")
	}
	if err != nil {
		return err
	}
	return a.printDiff(diff)
}

func (a *app) printDiff(d drover.ConfigDiff) error {
	switch {
	case a.forPrograms():
		return a.print(d)
	case len(d.Changes)+len(d.Fates) == 0:
		fmt.Fprintln(a.out, "nothing would change")
		return nil
	}
	if len(d.Changes) > 0 {
		if err := printList(a, changeListing, each(d.Changes)); err != nil {
			return err
		}
	}
	if len(d.Restart) > 0 {
		fmt.Fprintf(a.out, "\nA running controller would reject the file: changing %s needs a restart, which interrupts no jobs.\n", drover.Sanitize(human.And(d.Restart)))
	}
	if len(d.Fates) == 0 {
		return nil
	}
	if len(d.Changes) > 0 {
		fmt.Fprintln(a.out)
	}
	return printList(a, fateListing, each(d.Fates))
}

var changeListing = listing[drover.ConfigChange]{
	name: func(c drover.ConfigChange) string { return c.Key },
	columns: []column[drover.ConfigChange]{
		{title: "KEY", text: func(c drover.ConfigChange) string { return c.Key }},
		{title: "FROM", text: func(c drover.ConfigChange) string { return cmp.Or(c.From, "-") }},
		{title: "TO", text: func(c drover.ConfigChange) string { return cmp.Or(c.To, "-") }},
	},
}

var fateListing = listing[drover.Fate]{
	name: func(f drover.Fate) string { return string(f.Kind) },
	columns: []column[drover.Fate]{
		{title: "WOULD", text: func(f drover.Fate) string { return string(f.Kind) }},
		{title: "COUNT", text: func(f drover.Fate) string { return fmt.Sprint(f.Count) }, right: true},
		{title: "POOL", text: func(f drover.Fate) string { return f.Pool }},
		{title: "CLOUD", text: func(f drover.Fate) string { return f.Cloud }},
		{title: "ZONE", text: func(f drover.Fate) string { return f.Zone }},
		{title: "TYPE", text: func(f drover.Fate) string { return f.Type }},
		{title: "REASON", text: func(f drover.Fate) string { return reasonWords(f.Reason) }},
	},
}
