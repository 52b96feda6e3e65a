package gc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/human"
	"drover/internal/store"
)

// run collects the strays of a run, and then removes the run's folder.
func (g *Collector) run(ctx context.Context, fleet string) error {
	if daemon.HasEnded(fleet) {
		g.Said = true
		fmt.Fprintf(g.Say, "%s has ended and has no instances\n", fleet)
		return nil
	}
	folder, err := daemon.FindRunFolder(fleet)
	switch drover.KindOf(err) {
	case "":
	case drover.KindNotFound:
		err := g.unknown(ctx, fleet)
		if err == nil && g.File == "" && len(g.Found) == 0 {
			g.Said = true
			fmt.Fprintf(g.Say, "there is no run %[1]s, and no instance of fleet %[1]s on this computer; to search clouds, add -c FILE\n", fleet)
		}
		return err
	case drover.KindTransient: // its records are locked
		if g.Destroy {
			return drover.Errorf(drover.KindConflict, "%s is still running, so its instances were not destroyed: %v", fleet, err).
				WithHint("stop it first: Ctrl-C requeues its jobs and destroys its instances")
		}
		g.Said = true
		fmt.Fprintf(g.Say, "%s is still running and is left alone: %v\n", fleet, err)
		return nil
	default:
		return err
	}
	defer folder.Close()
	p, err := folder.Load()
	if err != nil {
		return err
	}
	c, err := g.Load(p.Config, p.Limits.Cloud)
	if err != nil {
		return err
	}
	if err := readable(ctx, folder); err != nil && g.Destroy && !g.WithoutState {
		return g.needsWithoutState("the records of "+fleet+" cannot be read", err)
	}
	before := len(g.Found)
	all := &search{fleet: fleet, folder: folder.Path, config: c, known: nothingKnown, ends: true}
	if err := g.sweep(ctx, all); err != nil {
		return err
	}
	if err := accounted(ctx, folder, c, g.Found[before:], max(createTime, all.lag)); err != nil {
		return err
	}
	if g.Destroy {
		return g.giveUp(folder)
	}
	if len(g.Found) == before {
		g.Said = true
		fmt.Fprintf(g.Say, "%s is unfinished and has no instances. To finish it: drover run --resume %s. To abandon it: %s --destroy\n", fleet, fleet, CommandOf(g.File, fleet))
	}
	return nil
}

// giveUp removes the records of a run whose instances have been destroyed.
func (g *Collector) giveUp(folder *daemon.RunFolder) error {
	if err := folder.Remove(); err != nil {
		return err
	}
	g.Said = true
	fmt.Fprintf(g.Say, "%s is abandoned: its records have been removed\n", folder.ID)
	return nil
}

// TellOfRuns reports that there are also runs to clean up, when the command meant a configured fleet.
func (g *Collector) TellOfRuns() error {
	if g.Named == "" || g.Fleet != "" {
		return nil
	}
	home, err := daemon.StateHome()
	if err != nil {
		return err
	}
	var killed []string
	for _, id := range daemon.UnfinishedRuns(home) {
		folder, err := daemon.FindRunFolder(id)
		if err != nil {
			continue // it is running
		}
		folder.Close()
		killed = append(killed, id)
	}
	switch n := len(killed); n {
	case 0:
	case 1:
		fmt.Fprintf(g.Say, "another run is unfinished. To see its instances: drover gc --fleet %s\n", killed[0])
	default:
		fmt.Fprintf(g.Say, "%d other runs are unfinished: %s. To see the instances of one: drover gc --fleet ID\n", n, strings.Join(killed, ", "))
	}
	return nil
}

// accounted refuses to discard a run's records while one of its instances may be in a place that was not searched, or
// may not be listed yet: because it was created, or its create call was in flight, shortly before the run was killed. It
// is listed after a time called lag.
func accounted(ctx context.Context, folder *daemon.RunFolder, c *config.Config, destroyed []*Stray, lag time.Duration) error {
	if _, err := os.Stat(folder.File("drover.db")); err != nil {
		return nil
	}
	s, err := store.Open(ctx, folder.File("drover.db"))
	if err != nil {
		return nil // these records cannot be read, and the run is abandoned without them
	}
	defer s.Close()
	live, err := s.Instances(ctx, drover.TimeOf(time.Now()), drover.InstanceFilter{Limit: -1})
	if err != nil {
		return err
	}
	for _, in := range live {
		if !slices.Contains(c.CloudNames(), in.Cloud) {
			return drover.Errorf(drover.KindConflict, "instance %s is in cloud %s, but the configuration no longer contains this cloud", in.Name, in.Cloud).
				WithHint("add the cloud to the configuration again, or destroy the instance by other means and remove %s", folder.Path)
		}
		listed := slices.ContainsFunc(destroyed, func(s *Stray) bool {
			return s.Cloud == in.Cloud && (s.ProviderID == in.ProviderID || in.ProviderID == "" && s.Name == in.Name)
		})
		if !listed && (in.ProviderID == "" || in.State != drover.InstanceStopping) && time.Since(folder.Touched) < lag {
			return drover.Errorf(drover.KindConflict, "instance %s may have been created just before the run was killed, and cloud %s does not list it yet", in.Name, in.Cloud).
				WithHint("run the same command again in %s; the records of %s are kept until then", human.Age(lag), folder.ID)
		}
	}
	return nil
}

// createTime is how long a create call that was in flight when its controller was killed may take to appear in a list.
const createTime = time.Minute

// readable reports whether a run's records can be read.
func readable(ctx context.Context, folder *daemon.RunFolder) error {
	if _, err := os.Stat(folder.File("drover.db")); errors.Is(err, os.ErrNotExist) {
		return nil // it was killed before it started
	}
	s, err := store.Open(ctx, folder.File("drover.db"))
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.Counts(ctx)
	return err
}

func (g *Collector) needsWithoutState(what string, err error) error {
	if drover.KindOf(err) == drover.KindConflict { // another version of Drover can read the records
		return err
	}
	return drover.Errorf(drover.KindInvalid, "%s, so it is unknown whether its instances are still needed: %v", what, err).
		WithHint("if they are not: %s --destroy --without-state", CommandOf(g.File, g.Fleet))
}

// unknown searches for the instances of a fleet without records here.
func (g *Collector) unknown(ctx context.Context, fleet string) error {
	c, err := g.Load(g.File, "")
	if err != nil {
		return err
	}
	home, err := daemon.StateHome()
	if err != nil {
		return err
	}
	folder := filepath.Join(home, fleet)
	s := &search{fleet: fleet, folder: folder, config: c, known: nothingKnown, ends: true}
	check := strings.HasPrefix(fleet, daemon.TestFleet) // no controller ever looks after a test fleet
	if !check {
		s.spared, g.Blind = g.wantedByAge, true
	}
	defer leavingNothing(folder, c.CloudNames())()
	if g.Blind && g.Destroy && !g.WithoutState {
		g.Destroy = false
		if err := g.sweep(ctx, s); err != nil || len(g.Found) == 0 {
			return err
		}
		return g.needsWithoutState("the records of "+fleet+" cannot be read", errors.New("there are no records in "+folder))
	}
	if err := g.sweep(ctx, s); err != nil || !check || !g.Destroy {
		if g.Blind && len(g.Found) > 0 {
			fmt.Fprintf(g.Say, "there are no records of %s in %s, so it is unknown whether its instances are still needed\n", fleet, folder)
		}
		return err
	}
	return os.RemoveAll(folder)
}

// leavingNothing returns a function that removes the folders that drivers created for the search, unless they existed
// before or have content.
func leavingNothing(folder string, within []string) func() {
	var made []string
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
			break
		}
		made = append(made, at)
	}
	return func() {
		if made == nil {
			return
		}
		for _, name := range within {
			os.Remove(filepath.Join(folder, name))
		}
		for _, at := range made {
			os.Remove(at)
		}
	}
}

// daemon collects the strays of a configured fleet: listed instances that neither its controller nor its records know.
func (g *Collector) daemon(ctx context.Context, c *config.Config) error {
	folder, err := daemon.NewFolder(c)
	if err != nil {
		return err
	}
	s := &search{fleet: c.Fleet, folder: folder.Path(), config: c}
	s.known = func() (func(Stray) bool, error) {
		known, err := g.wanted(ctx, folder)
		if err == nil {
			return known, nil
		}
		if !absent(err) {
			return nil, err
		}
		if g.Destroy && !g.WithoutState {
			return nil, g.needsWithoutState("neither the controller of "+c.Fleet+" nor its records are available", err)
		}
		fmt.Fprintf(g.Say, "neither the controller of %s nor its records are available, so it is unknown whether its instances are still needed: %v\n", c.Fleet, err)
		s.spared, g.Blind = g.spareWanted(folder, c), true
		return nothingKnown()
	}
	defer leavingNothing(folder.Path(), c.CloudNames())()
	return g.sweep(ctx, s)
}
