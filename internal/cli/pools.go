package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/human"
)

func (a *app) poolsCommand() *cobra.Command {
	var watch watchFlag
	cmd := named(&cobra.Command{
		Use:   "pools [POOL…]",
		Short: "List the pools, with their wanted and existing instances",
		Long: `List the pools, or some of them: how many instances each should have, how many it has, and why some
are missing. Draining, broken and interrupted instances do not count. With -o wide, the table also
shows the instances by zone, those that are leaving, and those with an older template.`,
		Example: "  drover pools\n  drover pools --watch -o wide\n  drover pools web",
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			args = watch.takeInterval(args)
			return watch.show(ctx, a, "drover pools", func(a *app) error { return a.pools(ctx, svc, args) })
		}),
	})
	watch.add(cmd)
	cmd.ValidArgsFunction = a.completePools
	return cmd
}

func (a *app) pools(ctx context.Context, svc drover.Fleet, names []string) error {
	all, err := svc.Pools(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return printList(a, poolListing, each(all))
	}
	var found []drover.Pool
	for _, name := range names {
		at := slices.IndexFunc(all, func(p drover.Pool) bool { return p.Name == name })
		if at < 0 {
			return drover.Errorf(drover.KindNotFound, "there is no pool %s", name).WithHint("drover pools lists all pools")
		}
		found = append(found, all[at])
	}
	return printNamed(a, poolListing, found)
}

func (a *app) poolCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "pool", Short: "Change a pool", Example: "  drover pool set web --size 5"}
	var size int
	var reason string
	set := named(&cobra.Command{
		Use:   "set POOL --size N",
		Short: "Change a pool's number of instances",
		Long: `Change a pool's number of instances: its size, floor or spare. The number survives restarts and
holds until the number in the configuration changes.`,
		Example: "  drover pool set web --size 5 --reason 'a launch'",
		Args:    wantArgs(1, 1, "a POOL"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			if size < 0 {
				return drover.Errorf(drover.KindInvalid, "--size is %d, but must not be negative", size)
			}
			p, err := svc.ResizePool(ctx, args[0], size, reason)
			if err != nil {
				return err
			}
			if !a.forPeople() {
				return printNamed(a, poolListing, []drover.Pool{p})
			}
			_, err = fmt.Fprintf(a.out, "pool %s: %s %d; it has %s now\n", drover.Sanitize(p.Name), p.Kind, p.Wanted, human.Plural(p.Instances, "instance"))
			return err
		}),
	})
	set.Flags().IntVar(&size, "size", 0, "the new `number` of instances")
	set.Flags().StringVar(&reason, "reason", "", "`text` to record")
	require(set, "size")
	set.ValidArgsFunction = a.completePools
	cmd.AddCommand(set)
	return cmd
}

var poolListing = listing[drover.Pool]{
	name: func(p drover.Pool) string { return p.Name },
	none: "no pools",
	columns: []column[drover.Pool]{
		{title: "NAME", text: func(p drover.Pool) string { return p.Name }},
		{title: "KIND", text: func(p drover.Pool) string { return string(p.Kind) }},
		{title: "WANTED", text: func(p drover.Pool) string { return fmt.Sprint(p.Wanted) }, right: true},
		{title: "INSTANCES", text: func(p drover.Pool) string { return fmt.Sprint(p.Instances) }, right: true},
		{title: "READY", text: func(p drover.Pool) string { return fmt.Sprint(p.Ready) }, right: true},
		{title: "STOPPED", text: stoppedOf, right: true},
		{title: "BY ZONE", text: func(p drover.Pool) string { return pairWords(p.ByZone) }, wide: true},
		{title: "LEAVING", text: func(p drover.Pool) string { return fmt.Sprint(p.Leaving) }, wide: true, right: true},
		{title: "OUTDATED", text: func(p drover.Pool) string { return fmt.Sprint(p.Outdated) }, wide: true, right: true},
		{title: "REASON", text: func(p drover.Pool) string { return reasonWords(p.Reason) }},
	},
}

// stoppedOf formats how many of a pool's instances are stopped, and how many should be.
func stoppedOf(p drover.Pool) string {
	if p.Keeps+p.Stopped == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", p.Stopped, p.Keeps)
}
