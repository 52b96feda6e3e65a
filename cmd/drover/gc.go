package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/driver"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/store"
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
		Long: `List the instances that bear a fleet's tag and that no controller looks after; with --destroy, end them. Without --fleet, those of every run
that was killed are listed.

A run whose controller lives is left alone. Where a fleet's records cannot be read, nothing says whether its instances are still wanted:
then --destroy also needs --without-state, and leaves alone what was created within the last hour.`,
		Example: "  drover gc\n  drover gc --fleet run-x7k2pq --destroy",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.gc(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.fleet, "fleet", "", "the `fleet`; a run's is its ID")
	cmd.Flags().BoolVar(&f.destroy, "destroy", false, "end them")
	cmd.Flags().BoolVar(&f.withoutState, "without-state", false, "also when the fleet's records cannot be read")
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
}

func (a *app) gc(ctx context.Context, f gcFlags) error {
	if f.destroy && f.fleet == "" {
		return drover.Errorf(drover.KindInvalid, "--destroy needs --fleet").WithHint("drover gc lists the fleets that have something to clean up")
	}
	fleets, err := a.gcFleets(f)
	if err != nil {
		return err
	}
	found := []stray{}
	for _, fleet := range fleets {
		strays, err := a.gcFleet(ctx, f, fleet)
		if err != nil {
			return err
		}
		found = append(found, strays...)
	}
	if a.forPrograms() {
		return a.print(found)
	}
	a.printStrays(found, f.destroy)
	return nil
}

// gcFleets is the fleets to look at: the one named, else every run that did not come to its end.
func (a *app) gcFleets(f gcFlags) ([]string, error) {
	if f.fleet != "" {
		return []string{f.fleet}, config.CheckFleet(f.fleet)
	}
	home, err := stateHome()
	if err != nil {
		return nil, err
	}
	return unfinishedRuns(home), nil
}

// gcFleet finds, and if asked for destroys, the strays of one fleet.
func (a *app) gcFleet(ctx context.Context, f gcFlags, fleet string) (found []stray, err error) {
	home, err := stateHome()
	if err != nil {
		return nil, err
	}
	folder, err := findRunFolder(fleet)
	if err != nil && drover.KindOf(err) == drover.KindConflict {
		fmt.Fprintf(a.err, "%s: %v\n", fleet, err)
		return nil, nil
	}
	if err != nil {
		return a.gcUnknown(ctx, f, fleet, filepath.Join(home, fleet))
	}
	defer folder.Close()
	p, err := folder.load()
	if err != nil {
		return nil, err
	}
	c, err := loadConfig(p.Config, p.Limits.Cloud)
	if err != nil {
		return nil, err
	}
	if err := readable(ctx, folder); err != nil && f.destroy && !f.withoutState {
		return nil, needsWithoutState(fleet, err)
	}
	found, err = a.sweep(ctx, f, fleet, folder.path, c, func(stray) bool { return true })
	if err == nil && !f.destroy && len(found) == 0 {
		fmt.Fprintf(a.err, "%s has no instances; drover run --resume %s brings it to its end\n", fleet, fleet)
	}
	if err != nil || !f.destroy {
		return found, err
	}
	if err := accounted(ctx, folder, c); err != nil {
		return found, err
	}
	return found, folder.remove()
}

// accounted refuses to give up the records of a run while one of its instances may be somewhere that was not looked at, or may only now
// come to be: its create call was under way when the run was killed.
func accounted(ctx context.Context, folder *runFolder, c *config.Config) error {
	if _, err := os.Stat(folder.file("drover.db")); err != nil {
		return nil
	}
	s, err := store.Open(ctx, folder.file("drover.db"))
	if err != nil {
		return nil // said to be given up without them
	}
	defer s.Close()
	live, err := s.Instances(ctx, drover.TimeOf(time.Now()), drover.InstanceFilter{Limit: -1})
	if err != nil {
		return err
	}
	for _, in := range live {
		if !slices.Contains(c.CloudNames(), in.Cloud) {
			return drover.Errorf(drover.KindConflict, "instance %s is in cloud %s, which the configuration no longer has", in.Name, in.Cloud).
				WithHint("put the cloud back into the configuration, or destroy the instance by other means and remove %s", folder.path)
		}
		if in.ProviderID == "" && time.Since(folder.touched) < createTime {
			return drover.Errorf(drover.KindConflict, "instance %s was being created when the run was killed, and may still appear", in.Name).
				WithHint("say this again in a minute: drover gc --fleet %s --destroy", folder.id)
		}
	}
	return nil
}

// createTime is how long a create call that was under way when its controller was killed may take to show in a list.
const createTime = time.Minute

// readable reports whether a run's records can be read.
func readable(ctx context.Context, folder *runFolder) error {
	if _, err := os.Stat(folder.file("drover.db")); errors.Is(err, os.ErrNotExist) {
		return nil // it was killed before it began
	}
	s, err := store.Open(ctx, folder.file("drover.db"))
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Counts(ctx)
	return err
}

func needsWithoutState(fleet string, err error) error {
	return drover.Errorf(drover.KindInvalid, "the records of %s cannot be read, so nothing says whether its instances are still wanted: %v", fleet, err).
		WithHint("if you know that they are not: drover gc --fleet %s --destroy --without-state", fleet)
}

// heardLately is how young an instance may be and still belong to a controller that is not known here.
const heardLately = time.Hour

// gcUnknown looks for the instances of a fleet of which there are no records here.
func (a *app) gcUnknown(ctx context.Context, f gcFlags, fleet, folder string) ([]stray, error) {
	c, err := loadConfig(a.config, "")
	if err != nil {
		return nil, err
	}
	if f.destroy && !f.withoutState {
		return nil, needsWithoutState(fleet, errors.New("there are none in "+folder))
	}
	return a.sweep(ctx, f, fleet, folder, c, func(s stray) bool {
		if age := time.Since(s.Created); age < heardLately {
			fmt.Fprintf(a.err, "%s left alone: it was created %v ago, and a controller may look after it\n", s.Name, age.Round(time.Second))
			return false
		}
		return true
	})
}

// sweep lists a fleet's instances in every cloud and, if asked to, destroys those that may go.
func (a *app) sweep(ctx context.Context, f gcFlags, fleet, folder string, c *config.Config, may func(stray) bool) (found []stray, err error) {
	clouds, err := openClouds(ctx, c, fleet, folder, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer closeClouds(clouds)
	for _, cloud := range clouds {
		d := driver.Own(cloud.Driver, fleet)
		list, err := strays(ctx, d, cloud, fleet)
		if err != nil {
			return found, err
		}
		found = append(found, list...)
		if !f.destroy {
			continue
		}
		for _, s := range list {
			if !may(s) {
				continue
			}
			if err := destroyStray(ctx, d, s); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

func strays(ctx context.Context, d driver.Cloud, cloud control.Cloud, fleet string) (found []stray, err error) {
	list, err := d.List(ctx, map[string]string{driver.TagFleet: fleet})
	for _, in := range list {
		found = append(found, stray{
			Fleet: fleet, Name: in.Tags[driver.TagName], Cloud: cloud.Name, ProviderID: in.ID, Zone: in.Zone, Type: in.ProviderType, Created: in.Created.Std(),
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

func (a *app) printStrays(found []stray, destroyed bool) {
	if len(found) == 0 {
		fmt.Fprintln(a.err, "nothing to clean up")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "FLEET\tNAME\tCLOUD\tZONE\tTYPE\tAGE")
	for _, s := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%v\n", s.Fleet, s.Name, s.Cloud, s.Zone, s.Type, time.Since(s.Created).Round(time.Second))
	}
	w.Flush()
	if !destroyed {
		fmt.Fprintln(a.err, "drover run --resume FLEET goes on with a run; drover gc --fleet FLEET --destroy ends its instances")
	}
}
