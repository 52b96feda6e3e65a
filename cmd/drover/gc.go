package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/driver"
	"drover/internal/config"
	"drover/internal/control"
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
		Short: "List, and with --destroy end, the instances of a fleet that nobody looks after",
		Long: `List the instances that bear a fleet's tag and that no controller looks after; with --destroy, end them. The fleet is that of --fleet, or that
which the configuration names; without either, those of every run that was killed are listed.

A run whose controller lives is left alone. Of a configured fleet, the controller is asked which instances are its own; if it does not answer,
its records are read. Where neither can be had, nothing says whether the instances are still wanted: then --destroy also needs
--without-state, and leaves alone what was created within the last hour, and what says itself that it has lately heard a controller, if the
fleet's key is at hand to ask it.`,
		Example: "  drover gc\n  drover gc --fleet run-x7k2pq --destroy\n  drover gc -c drover.yaml --destroy",
		Args:    wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.gc(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.fleet, "fleet", "", "the `fleet`; a run's is its ID")
	cmd.Flags().BoolVar(&f.destroy, "destroy", false, "end them")
	cmd.Flags().BoolVar(&f.withoutState, "without-state", false, "also when nothing says whether they are wanted")
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

// sight is a stray as its cloud lists it.
type sight struct {
	in    driver.Instance
	cloud control.Cloud
}

// collector finds strays and, if asked to, destroys them.
type collector struct {
	gcFlags
	app   *app
	found []stray
	said  bool // why there is nothing to show
	blind bool // nothing says whether what was found is wanted
}

func (a *app) gc(ctx context.Context, f gcFlags) error {
	g := &collector{gcFlags: f, app: a, found: []stray{}}
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
		return g.daemon(ctx, c)
	case g.fleet != "":
		if err := config.CheckFleet(g.fleet); err != nil {
			return err
		}
		return g.run(ctx, g.fleet)
	case g.destroy:
		return drover.Errorf(drover.KindInvalid, "--destroy needs --fleet").WithHint("drover gc lists the fleets that have something to clean up")
	}
	home, err := stateHome()
	if err != nil {
		return err
	}
	for _, fleet := range unfinishedRuns(home) {
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
	c, err := loadConfig(g.app.config, "")
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
	clouds, err := openClouds(ctx, s.config.Clouds, opening{fleet: s.fleet, folder: s.folder, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer closeClouds(clouds)
	byCloud := map[string]driver.Cloud{}
	var listed []stray
	for _, cloud := range clouds {
		byCloud[cloud.Name] = driver.Own(driver.Persist(cloud.Driver), s.fleet)
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
	ended := s.ends || g.blind
	for _, one := range listed {
		if known(one) {
			ended = false
			continue
		}
		if g.destroy && !s.spared(ctx, one) {
			if err := destroyStray(ctx, byCloud[one.Cloud], one); err != nil {
				return err
			}
			one.Destroyed = true
		}
		ended = ended && one.Destroyed
		g.found = append(g.found, one)
	}
	return g.sweepStrays(ctx, byCloud, s, ended)
}

// sweepStrays takes away what the fleet's instances left over, if it is asked to destroy anything.
func (g *collector) sweepStrays(ctx context.Context, clouds map[string]driver.Cloud, s *search, ended bool) (err error) {
	if !g.destroy {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(clouds)) {
		swept, failed := driver.Sweep(ctx, clouds[name], s.fleet, drover.TimeOf(time.Now()), g.life(ended))
		for _, one := range swept {
			fmt.Fprintf(g.app.err, "%s: %s %s was left over, and is gone\n", name, harmless(one.Kind), harmless(one.ID))
		}
		err = errors.Join(err, failed)
	}
	return err
}

// life is that of a fleet of which nothing is left, if it has ended as far as can be seen.
func (g *collector) life(ended bool) driver.Life {
	switch {
	case !ended:
		return driver.Living
	case g.blind:
		return driver.Unheard
	}
	return driver.Ended
}

func strays(ctx context.Context, d driver.Cloud, cloud control.Cloud, fleet string) (found []stray, err error) {
	list, err := d.List(ctx, map[string]string{driver.TagFleet: fleet})
	for _, in := range list {
		found = append(found, stray{
			Fleet: fleet, Name: in.Tags[driver.TagName], Cloud: cloud.Name, ProviderID: in.ID, Zone: in.Zone, Type: in.ProviderType, Created: in.Created.Std(),
			sight: &sight{in, cloud},
		})
	}
	return found, err
}

// destroyStray asks for an instance's end until the cloud no longer lists it.
func destroyStray(ctx context.Context, d driver.Cloud, s stray) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		if err := d.Destroy(ctx, s.ProviderID); err != nil {
			return fmt.Errorf("destroying %s: %w", s.Name, err)
		}
		list, err := d.List(ctx, map[string]string{driver.TagName: s.Name})
		if err != nil {
			return fmt.Errorf("destroying %s: %w", s.Name, err)
		}
		if len(list) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("destroying %s: it is still listed: %w", s.Name, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// report says what was found, and what became of it.
func (g *collector) report() error {
	a := g.app
	if a.output == outputJSON || a.output == outputYAML {
		return a.print(g.found)
	}
	if len(g.found) == 0 {
		if !g.said {
			fmt.Fprintln(a.err, "nothing to clean up")
		}
		return nil
	}
	if err := printTable(a, strayListing, each(g.found)); err != nil {
		return err
	}
	destroyed := 0
	for _, s := range g.found {
		destroyed += count(s.Destroyed)
	}
	switch {
	case g.destroy:
		fmt.Fprintf(a.err, "%s destroyed\n", plural(destroyed, "instance"))
	case g.fleet == "" && a.config == "":
		fmt.Fprintln(a.err, "drover run --resume FLEET goes on with a run; drover gc --fleet FLEET --destroy ends its instances")
	case g.blind:
		fmt.Fprintln(a.err, "the same with --destroy --without-state ends them, but for those created within the last hour or that have lately heard a controller")
	default:
		fmt.Fprintln(a.err, "the same with --destroy ends them")
	}
	return nil
}

var strayListing = listing[stray]{
	columns: []column[stray]{
		{title: "FLEET", text: func(s stray) string { return s.Fleet }},
		{title: "NAME", text: func(s stray) string { return s.Name }},
		{title: "CLOUD", text: func(s stray) string { return s.Cloud }},
		{title: "ZONE", text: func(s stray) string { return s.Zone }},
		{title: "TYPE", text: func(s stray) string { return s.Type }},
		{title: "AGE", text: func(s stray) string { return ageOf(&s.Created) }},
		{title: "PROVIDER ID", text: func(s stray) string { return s.ProviderID }, wide: true},
	},
}
