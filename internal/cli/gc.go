package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
	"drover/internal/human"
)

// gcFlags are the flags of `drover gc`.
type gcFlags struct {
	fleet        string
	destroy      bool
	withoutState bool
}

func (a *app) gcCommand() *cobra.Command {
	var f gcFlags
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "List instances that were left behind, and destroy them with --destroy",
		Long: `List the instances of a fleet that no controller looks after. With --destroy, destroy them.

Without --fleet and without a configuration that names a fleet, this looks at every unfinished run of 'drover run' on this computer. A run that is
still running is left alone.

For the fleet of a configuration, the controller says which instances are still wanted. If it does not answer, its records say so. If neither
can be read, gc only lists: --destroy then also needs --without-state. Even then it leaves alone every instance that was created within the last
hour, and every instance that says that it has lately heard from a controller. Asking an instance takes the fleet's key.`,
		Example: "  drover gc\n  drover gc --fleet run-x7k2pq --destroy\n  drover gc -c drover.yaml --destroy",
		Args:    wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.gc(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.fleet, "fleet", "", "the `fleet`; for a run, its ID")
	cmd.Flags().BoolVar(&f.destroy, "destroy", false, "destroy them")
	cmd.Flags().BoolVar(&f.withoutState, "without-state", false, "with --destroy: even if nothing says whether they are still wanted")
	complete(cmd, "fleet", completeRuns)
	return cmd
}

// stray is an instance that nobody looks after.
type stray struct {
	Fleet      string    `json:"fleet"`
	Name       string    `json:"name"`
	Cloud      string    `json:"cloud"`
	ProviderID string    `json:"provider_id"`
	Zone       string    `json:"zone"`
	Type       string    `json:"type"`
	Created    time.Time `json:"created"`
	Destroyed  bool      `json:"destroyed"`

	sight *sight
}

// String names the instance in messages. Two instances may have one name, so the cloud's id goes with it.
func (s stray) String() string {
	return drover.Sanitize(fmt.Sprintf("instance %s (%s %s)", cmp.Or(s.Name, "without a name"), s.Cloud, s.ProviderID))
}

// sight is a stray as its cloud lists it.
type sight struct {
	in    driver.Instance
	cloud control.Cloud
}

// collector finds strays and, if asked to, destroys them.
type collector struct {
	gcFlags
	app   *app
	found []*stray
	kept  int    // instances that a controller looks after
	said  bool   // what there is to say where there are no instances to show
	blind bool   // nothing says whether what was found is wanted
	named string // the configured fleet, if it is the one that is meant
}

func (a *app) gc(ctx context.Context, f gcFlags) error {
	g := &collector{gcFlags: f, app: a, found: []*stray{}}
	err := g.collect(ctx)
	if err != nil && len(g.found) == 0 {
		return err
	}
	return errors.Join(err, g.report(), g.tellOfRuns())
}

// collect goes through the fleets that are meant.
func (g *collector) collect(ctx context.Context) error {
	c, err := g.configured()
	if err != nil {
		return err
	}
	switch {
	case c != nil:
		g.named = c.Fleet
		return g.daemon(ctx, c)
	case g.fleet != "":
		if err := config.CheckFleet(g.fleet); err != nil {
			return err
		}
		return g.run(ctx, g.fleet)
	case g.destroy:
		return drover.Errorf(drover.KindInvalid, "--destroy needs --fleet").WithHint("drover gc lists the runs that left instances behind")
	}
	home, err := daemon.StateHome()
	if err != nil {
		return err
	}
	for _, fleet := range daemon.UnfinishedRuns(home) {
		if err := g.run(ctx, fleet); err != nil {
			return err
		}
	}
	return nil
}

// configured is the configuration in force if it names the fleet that is meant, nil otherwise.
func (g *collector) configured() (*config.Config, error) {
	if g.app.config == "" {
		return nil, nil
	}
	c, err := g.app.loadConfig(g.app.config, "")
	if err != nil || c.Fleet == "" || g.fleet != "" && g.fleet != c.Fleet {
		return nil, err
	}
	return c, nil
}

// search says where strays are looked for and which of them are left alone.
type search struct {
	fleet  string
	folder string // where the clouds' drivers keep what they must
	config *config.Config
	known  func() (func(stray) bool, error) // asked once all are listed: what a controller knows later, it may have made later
	spared func(context.Context, stray) bool
	ends   bool // nothing is left of the fleet afterwards, unless something was spared
}

// nobody is a search's spared where nobody can look after anything.
func nobody(context.Context, stray) bool { return false }

// nothingKnown is a search's known where nobody looks after anything.
func nothingKnown() (func(stray) bool, error) { return func(stray) bool { return false }, nil }

// sweep lists a fleet's instances in every cloud and, if asked to, destroys those that may go.
func (g *collector) sweep(ctx context.Context, s *search) error {
	clouds, err := daemon.OpenClouds(ctx, s.config.Clouds, daemon.Opening{Drivers: g.app.program.Drivers, Fleet: s.fleet, Folder: s.folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer daemon.CloseClouds(clouds)
	byCloud := map[string]driver.Cloud{}
	var listed []*stray
	for _, cloud := range clouds {
		byCloud[cloud.Name] = middleware.ForFleet(middleware.WithRetry(cloud.Driver), s.fleet)
		list, err := strays(ctx, byCloud[cloud.Name], cloud, s.fleet)
		if err != nil {
			return err
		}
		listed = append(listed, list...)
	}
	if len(listed) == 0 && !(g.destroy && g.withoutState) {
		return g.sweepStrays(ctx, byCloud, s, s.ends)
	}
	known, err := s.known()
	if err != nil {
		return err
	}
	ended, first := s.ends || g.blind, len(g.found)
	for _, one := range listed {
		if known(*one) {
			g.kept++
			ended = false
			continue
		}
		g.found = append(g.found, one)
	}
	err = g.destroyAll(ctx, byCloud, s, g.found[first:])
	for _, one := range g.found[first:] {
		ended = ended && one.Destroyed
	}
	return errors.Join(err, g.sweepStrays(ctx, byCloud, s, ended))
}

func strays(ctx context.Context, d driver.Cloud, cloud control.Cloud, fleet string) (found []*stray, err error) {
	list, err := d.List(ctx, map[string]string{driver.TagFleet: fleet})
	for _, in := range list {
		found = append(found, &stray{
			Fleet: fleet, Name: in.Tags[driver.TagName], Cloud: cloud.Name, ProviderID: in.ID, Zone: in.Zone, Type: in.ProviderType, Created: in.Created.Std(),
			sight: &sight{in, cloud},
		})
	}
	return found, err
}

// report says what was found, and what became of it.
func (g *collector) report() error {
	a := g.app
	if a.output == outputJSON || a.output == outputYAML {
		return a.print(g.found)
	}
	if len(g.found) == 0 {
		g.tellOfNothing()
		return nil
	}
	if err := printTable(a, strayListing, each(g.found)); err != nil {
		return err
	}
	if g.destroy {
		g.tellDestroyed()
	} else {
		g.tellHowToDestroy()
	}
	return nil
}

func (g *collector) tellOfNothing() {
	switch {
	case g.said:
	case g.kept > 0:
		fmt.Fprintf(g.app.err, "nothing to clean up; instances of fleet %s that are still wanted: %d\n", g.named, g.kept)
	default:
		fmt.Fprintln(g.app.err, "nothing to clean up")
	}
}

func (g *collector) tellDestroyed() {
	destroyed := 0
	for _, s := range g.found {
		destroyed += count(s.Destroyed)
	}
	if all := len(g.found); destroyed < all {
		fmt.Fprintf(g.app.err, "destroyed %d of %s\n", destroyed, human.Plural(all, "instance"))
		return
	}
	fmt.Fprintf(g.app.err, "destroyed %s\n", human.Plural(destroyed, "instance"))
}

func (g *collector) tellHowToDestroy() {
	fleet := g.found[0].Fleet
	if slices.ContainsFunc(g.found, func(s *stray) bool { return s.Fleet != fleet }) {
		fleet = "FLEET"
	}
	switch {
	case g.fleet == "" && g.named == "":
		fmt.Fprintf(g.app.err, "to finish a run: drover run --resume %s\nto destroy its instances instead: drover gc --fleet %s --destroy\n", fleet, fleet)
	case g.blind:
		fmt.Fprintf(g.app.err, "to destroy those that are older than an hour and have not lately heard from a controller: %s --destroy --without-state\n", commandOf(g.app.config, g.fleet))
	default:
		fmt.Fprintf(g.app.err, "to destroy them: %s --destroy\n", commandOf(g.app.config, g.fleet))
	}
}

// commandOf is the command line that looks at a fleet, or at that of the configuration.
func commandOf(config, fleet string) string {
	words := "drover gc"
	if config != "" {
		words += " -c " + config
	}
	if fleet != "" {
		words += " --fleet " + fleet
	}
	return words
}

var strayListing = listing[*stray]{
	columns: []column[*stray]{
		{title: "FLEET", text: func(s *stray) string { return s.Fleet }},
		{title: "NAME", text: func(s *stray) string { return s.Name }},
		{title: "CLOUD", text: func(s *stray) string { return s.Cloud }},
		{title: "ZONE", text: func(s *stray) string { return s.Zone }},
		{title: "TYPE", text: func(s *stray) string { return s.Type }},
		{title: "AGE", text: func(s *stray) string { return human.AgeOf(&s.Created) }},
		{title: "PROVIDER ID", text: func(s *stray) string { return s.ProviderID }, wide: true},
	},
}
