package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/gc"
	"drover/internal/human"
)

func (a *app) gcCommand() *cobra.Command {
	var f gc.Options
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "List instances that were left behind; with --destroy, destroy them",
		Long: `List a fleet's instances that no controller manages. With --destroy, destroy them.

Without --fleet and without a configuration that names a fleet, gc lists the instances of every
unfinished 'drover run' on this computer. It skips runs that are still active.

For the fleet of a configuration, gc asks the controller which instances are still needed, or reads
its records. If neither is available, --destroy also needs --without-state. Even then, gc spares
instances created within the last hour and, if it has the fleet's key, instances that have recently
heard from a controller.`,
		Example: "  drover gc\n  drover gc --fleet run-x7k2pq --destroy\n  drover gc -c drover.yaml --destroy",
		Args:    wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.gc(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.Fleet, "fleet", "", "the `fleet`; for a run, its ID")
	cmd.Flags().BoolVar(&f.Destroy, "destroy", false, "destroy these instances")
	cmd.Flags().BoolVar(&f.WithoutState, "without-state", false, "with --destroy: proceed even if neither the controller nor its records are available")
	complete(cmd, "fleet", completeRuns)
	return cmd
}

func (a *app) gc(ctx context.Context, o gc.Options) error {
	o.Program, o.File, o.Load, o.Ask, o.Say = a.program, a.config, a.loadConfig, a.askController, a.err
	g := gc.New(o)
	err := g.Collect(ctx)
	if err != nil && len(g.Found) == 0 {
		return err
	}
	return errors.Join(err, a.reportStrays(g), g.TellOfRuns())
}

// askController returns the instances of the fleet's controller. It is an error if another fleet's controller answers.
func (a *app) askController(ctx context.Context, fleet string) ([]drover.Instance, error) {
	svc, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	status, err := svc.Status(ctx)
	if err != nil {
		return nil, err
	}
	if status.Fleet != fleet {
		return nil, drover.Errorf(drover.KindConflict, "the controller that answered belongs to fleet %s, not to %s", status.Fleet, fleet).
			WithHint("leave out --server and DROVER_SERVER")
	}
	return gather(allInstances(ctx, svc, drover.InstanceFilter{}))
}

// reportStrays prints the strays, and what became of them.
func (a *app) reportStrays(g *gc.Collector) error {
	if a.forPrograms() {
		return a.print(g.Found)
	}
	if len(g.Found) == 0 {
		a.tellOfNothing(g)
		return nil
	}
	if err := printTable(a, strayListing, each(g.Found)); err != nil {
		return err
	}
	if g.Destroy {
		a.tellDestroyed(g)
	} else {
		a.tellHowToDestroy(g)
	}
	return nil
}

func (a *app) tellOfNothing(g *gc.Collector) {
	switch {
	case g.Said:
	case g.Kept > 0:
		fmt.Fprintf(a.err, "nothing to clean up; still needed in fleet %s: %s\n", g.Named, human.Plural(g.Kept, "instance"))
	default:
		fmt.Fprintln(a.err, "nothing to clean up")
	}
}

func (a *app) tellDestroyed(g *gc.Collector) {
	destroyed := 0
	for _, s := range g.Found {
		destroyed += count(s.Destroyed)
	}
	if all := len(g.Found); destroyed < all {
		fmt.Fprintf(a.err, "destroyed %d of %s\n", destroyed, human.Plural(all, "instance"))
		return
	}
	fmt.Fprintf(a.err, "destroyed %s\n", human.Plural(destroyed, "instance"))
}

func (a *app) tellHowToDestroy(g *gc.Collector) {
	fleet := g.Found[0].Fleet
	if slices.ContainsFunc(g.Found, func(s *gc.Stray) bool { return s.Fleet != fleet }) {
		fleet = "FLEET"
	}
	switch {
	case g.Fleet == "" && g.Named == "":
		fmt.Fprintf(a.err, "to finish a run: drover run --resume %s\nto destroy its instances instead: drover gc --fleet %s --destroy\n", fleet, fleet)
	case g.Blind:
		fmt.Fprintf(a.err, "to destroy the instances that are older than an hour and have not heard from a controller recently: %s --destroy --without-state\n", gc.CommandOf(a.config, g.Fleet))
	default:
		fmt.Fprintf(a.err, "to destroy them: %s --destroy\n", gc.CommandOf(a.config, g.Fleet))
	}
}

var strayListing = listing[*gc.Stray]{
	columns: []column[*gc.Stray]{
		{title: "FLEET", text: func(s *gc.Stray) string { return s.Fleet }},
		{title: "NAME", text: func(s *gc.Stray) string { return s.Name }},
		{title: "CLOUD", text: func(s *gc.Stray) string { return s.Cloud }},
		{title: "ZONE", text: func(s *gc.Stray) string { return s.Zone }},
		{title: "TYPE", text: func(s *gc.Stray) string { return s.Type }},
		{title: "AGE", text: func(s *gc.Stray) string { return human.AgeOf(&s.Created) }},
		{title: "PROVIDER ID", text: func(s *gc.Stray) string { return s.ProviderID }, wide: true},
	},
}
