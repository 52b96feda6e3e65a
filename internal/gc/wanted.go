package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
	"drover/internal/human"
	"drover/internal/remote"
	"drover/internal/store"
)

// lately is how young an instance may be and still belong to a controller that is unknown here.
const lately = time.Hour

// wantedByAge spares young instances, which may belong to a controller that cannot be reached.
func (g *Collector) wantedByAge(_ context.Context, s Stray) bool {
	since := time.Since(s.Created)
	if since < lately {
		fmt.Fprintf(g.Say, "%v is left alone: it was created %s ago, and a controller may still use it\n", s, human.Age(since))
	}
	return since < lately
}

// wantedByItself also spares instances that report having heard a controller, no longer ago than the time after which
// they power themselves off. Asking them requires the fleet's key.
func (g *Collector) wantedByItself(key remote.FleetKey, within time.Duration) func(context.Context, Stray) bool {
	return func(ctx context.Context, s Stray) bool {
		if g.wantedByAge(ctx, s) {
			return true
		}
		if s.listed.State == driver.Stopped {
			return false
		}
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		ago, err := control.SinceHeard(ctx, key, s.cloud, s.listed)
		switch {
		case err == nil && ago <= within:
			fmt.Fprintf(g.Say, "%v is left alone: it heard from a controller %s ago\n", s, human.Age(ago))
			return true
		case err != nil && drover.KindOf(err) != drover.KindNotFound:
			fmt.Fprintf(g.Say, "%v does not say when it last heard from a controller, so Drover considers only its age: %v\n", s, err)
		}
		return false
	}
}

// askTime is how long one instance may take to report when it heard a controller.
const askTime = 20 * time.Second

// spareWanted returns what spares the instances of a daemon that is unreachable and has no records.
func (g *Collector) spareWanted(folder daemon.Folder, c *config.Config) func(context.Context, Stray) bool {
	if _, err := os.Stat(folder.File("fleet.key")); err != nil {
		return g.wantedByAge
	}
	key, err := remote.LoadOrCreateFleetKey(folder.File("fleet.key"))
	if err != nil {
		fmt.Fprintf(g.Say, "Drover cannot ask the instances when they last heard from a controller, so it considers only their age: %v\n", err)
		return g.wantedByAge
	}
	return g.wantedByItself(key, cmp.Or(c.Instances.OrphanTimeout, lately))
}

// wanted returns which instances the controller looks after, by its own answer or else by its records. The error's kind
// means absence if neither is available.
func (g *Collector) wanted(ctx context.Context, folder daemon.Folder) (func(Stray) bool, error) {
	list, err := g.Ask(ctx, folder.Fleet)
	if err == nil {
		return belongsTo(list), nil
	}
	if !absent(err) {
		return nil, err
	}
	list, unread := readRecords(ctx, folder)
	if drover.KindOf(unread) == drover.KindConflict && !g.WithoutState { // another version of Drover can read them
		return nil, unread
	}
	if unread != nil {
		return nil, drover.Errorf(drover.KindUnreachable, "%v; %v", err, unread)
	}
	fmt.Fprintf(g.Say, "the controller of %s is not answering, so Drover reads from its records which instances are still needed: %v\n", folder.Fleet, err)
	return belongsTo(list), nil
}

// absent reports whether an error means that nobody is there to answer.
func absent(err error) bool {
	kind := drover.AsError(err, drover.KindInternal).Kind
	return kind == drover.KindUnreachable || kind == drover.KindTransient || kind == drover.KindRateLimit
}

// belongsTo reports whether an instance in a cloud's list is one of those given. Its id decides: where a cloud carried
// out one create call twice, the second instance of the name belongs to nobody. The name decides only while the cloud
// has not reported the id yet.
func belongsTo(list []drover.Instance) func(Stray) bool {
	type key struct{ cloud, id string }
	ids, creating := map[key]bool{}, map[key]bool{}
	for _, in := range list {
		if in.ProviderID == "" {
			creating[key{in.Cloud, in.Name}] = true
		} else {
			ids[key{in.Cloud, in.ProviderID}] = true
		}
	}
	return func(s Stray) bool { return ids[key{s.Cloud, s.ProviderID}] || creating[key{s.Cloud, s.Name}] }
}

// readRecords returns the instances that a daemon looks after by its records.
func readRecords(ctx context.Context, folder daemon.Folder) ([]drover.Instance, error) {
	if _, err := os.Stat(folder.DB()); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there are no records at %s", folder.DB())
	}
	s, err := store.Open(ctx, folder.DB())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	why, err := s.StaleRecords(ctx)
	if err != nil {
		return nil, err
	}
	if why != nil {
		return nil, errors.New(why.Text)
	}
	return s.Instances(ctx, drover.TimeOf(time.Now()), drover.InstanceFilter{Limit: -1})
}
