// Package gc finds instances of a fleet that no controller looks after, and destroys them on request. A running
// controller decides which are wanted. If none answers, its records decide; without records, the instances' age and
// what they report.
package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/daemon"
)

// Stray is an instance that nobody looks after.
type Stray struct {
	Fleet      string    `json:"fleet"`
	Name       string    `json:"name"`
	Cloud      string    `json:"cloud"`
	ProviderID string    `json:"provider_id"`
	Zone       string    `json:"zone"`
	Type       string    `json:"type"`
	Created    time.Time `json:"created"`
	Destroyed  bool      `json:"destroyed"`

	listed driver.Instance // as its cloud lists it
	cloud  control.Cloud
}

// String names the instance in messages. It includes the cloud's id, since two instances may have the same name.
func (s Stray) String() string {
	return drover.Sanitize(fmt.Sprintf("instance %s (%s %s)", cmp.Or(s.Name, "without a name"), s.Cloud, s.ProviderID))
}

// Options are where to search for strays, and what to do with them.
type Options struct {
	Fleet        string // empty: the configuration's fleet, or every unfinished run
	Destroy      bool
	WithoutState bool // destroy even where nothing shows whether they are still wanted

	Program daemon.Program
	File    string // the configuration; may be empty
	Load    func(file, onlyCloud string) (*config.Config, error)
	Ask     func(ctx context.Context, fleet string) ([]drover.Instance, error) // returns what the controller of a fleet looks after
	Say     io.Writer
}

// Collector finds strays and, if asked to, destroys them.
type Collector struct {
	Options
	Found []*Stray
	Kept  int    // instances that a controller looks after
	Said  bool   // whether a message already explains why no instances are shown
	Blind bool   // nothing shows whether the found instances are wanted
	Named string // the configured fleet, if the command means it
}

// New returns a Collector that has found nothing yet.
func New(o Options) *Collector { return &Collector{Options: o, Found: []*Stray{}} }

// Collect searches the fleets that the options mean.
func (g *Collector) Collect(ctx context.Context) error {
	c, err := g.configured()
	if err != nil {
		return err
	}
	switch {
	case c != nil:
		g.Named = c.Fleet
		return g.daemon(ctx, c)
	case g.Fleet != "":
		if err := config.CheckFleet(g.Fleet); err != nil {
			return err
		}
		return g.run(ctx, g.Fleet)
	case g.Destroy:
		return drover.Errorf(drover.KindInvalid, "--destroy needs --fleet").WithHint("drover gc lists the runs that left instances behind")
	}
	home, err := daemon.StateHome()
	if err != nil {
		return err
	}
	for _, fleet := range daemon.UnfinishedRuns(home) {
		if failed := g.run(ctx, fleet); failed != nil {
			err = errors.Join(err, fmt.Errorf("searching for instances of %s: %w", fleet, failed))
		}
	}
	return err
}

// configured returns the configuration in force if it names the requested fleet; nil otherwise.
func (g *Collector) configured() (*config.Config, error) {
	if g.File == "" {
		return nil, nil
	}
	c, err := g.Load(g.File, "")
	if err != nil || c.Fleet == "" || g.Fleet != "" && g.Fleet != c.Fleet {
		return nil, err
	}
	return c, nil
}

// search is where to search for strays, and which of them to spare.
type search struct {
	fleet  string
	folder string // where the clouds' drivers keep their files
	config *config.Config
	known  func() (func(Stray) bool, error)  // called after everything is listed, so that it knows all instances in the lists
	spared func(context.Context, Stray) bool // nil: none, since nobody can look after anything
	ends   bool                              // nothing is left of the fleet afterwards, unless something is spared

	lag time.Duration // result: how far the clouds' lists may lag
}

// nothingKnown is a search's known function where nobody looks after anything.
func nothingKnown() (func(Stray) bool, error) { return func(Stray) bool { return false }, nil }

// sweep lists a fleet's instances in every cloud and, if requested, destroys those that may go. A cloud that cannot be
// listed does not keep it from the others.
func (g *Collector) sweep(ctx context.Context, s *search) error {
	o := daemon.Opening{Drivers: g.Program.Drivers, Fleet: s.fleet, Folder: s.folder, Log: slog.New(slog.DiscardHandler)}
	clouds, err := daemon.OpenClouds(ctx, s.config.Clouds, o)
	if err != nil {
		return err
	}
	defer daemon.CloseClouds(clouds)
	if err := daemon.CheckEdited(ctx, s.config, clouds, o); err != nil {
		return err
	}
	byCloud := map[string]driver.Cloud{}
	var listed []*Stray
	var unlisted error
	for _, cloud := range clouds {
		s.lag = max(s.lag, cloud.Driver.Capabilities().Lag())
		byCloud[cloud.Name] = middleware.ForFleet(middleware.WithRetry(cloud.Driver), s.fleet)
		list, err := Strays(ctx, byCloud[cloud.Name], cloud, s.fleet)
		unlisted = errors.Join(unlisted, err)
		listed = append(listed, list...)
	}
	if len(listed) == 0 && !(g.Destroy && g.WithoutState) {
		return errors.Join(unlisted, g.sweepStrays(ctx, byCloud, s, s.ends && unlisted == nil))
	}
	known, err := s.known()
	if err != nil {
		return errors.Join(unlisted, err)
	}
	ended, first := (s.ends || g.Blind) && unlisted == nil, len(g.Found)
	for _, one := range listed {
		if known(*one) {
			g.Kept++
			ended = false
			continue
		}
		g.Found = append(g.Found, one)
	}
	err = g.destroyAll(ctx, byCloud, s, g.Found[first:])
	for _, one := range g.Found[first:] {
		ended = ended && one.Destroyed
	}
	return errors.Join(unlisted, err, g.sweepStrays(ctx, byCloud, s, ended))
}

// Strays lists the instances of a fleet in a cloud.
func Strays(ctx context.Context, d driver.Cloud, cloud control.Cloud, fleet string) (found []*Stray, err error) {
	list, err := d.List(ctx, map[string]string{driver.TagFleet: fleet})
	for _, in := range list {
		found = append(found, &Stray{
			Fleet: fleet, Name: in.Tags[driver.TagName], Cloud: cloud.Name, ProviderID: in.ID, Zone: in.Zone, Type: in.ProviderType, Created: in.Created.Std(),
			listed: in, cloud: cloud,
		})
	}
	return found, err
}

// CommandOf returns the command line that searches a fleet, or the configuration's fleet.
func CommandOf(config, fleet string) string {
	words := "drover gc"
	if config != "" {
		words += " -c " + config
	}
	if fleet != "" {
		words += " --fleet " + fleet
	}
	return words
}
