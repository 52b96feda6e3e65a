package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/blob"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/engine"
	"drover/internal/httpapi"
	"drover/internal/logkey"
	"drover/internal/remote"
	"drover/internal/store"
	"drover/internal/telemetry"
	"drover/internal/webhook"
	"drover/internal/wire"
)

// fleetOptions say whose controller is to be opened, and where it keeps things.
type fleetOptions struct {
	program Program
	fleet   string
	config  *config.Config
	limits  runLimits
	db      string
	file    func(name string) string // the place of everything else, but for results
	results string
	kept    blob.Limits // of results
	trust   bool        // records that may be an older copy
	shared  bool        // results are those of many batches
	// left finds the clouds that have instances and that the configuration no longer has, or refuses that there are any.
	left     func(context.Context, *store.Store, *config.Config) ([]config.Cloud, error)
	accepted func() error // everything could be opened but the results; may be nil
	log      *slog.Logger
	watch    func(engine.Note)

	counted *telemetry.Telemetry // of what it does; may be nil
}

// fleet is a controller in this process and all that it works with.
type fleet struct {
	controller *control.Controller
	store      *store.Store
	results    *blob.Results
	inputs     *blob.Dir
	clouds     []control.Cloud
	key        remote.FleetKey
	recording  *recording
	log        *slog.Logger
	closed     bool
}

// openFleet makes a controller. Nothing is rented before its Run.
func openFleet(ctx context.Context, o fleetOptions) (*fleet, error) {
	f := &fleet{log: o.log}
	if err := f.open(ctx, o); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) open(ctx context.Context, o fleetOptions) (err error) {
	if f.store, err = store.Open(ctx, o.db); err != nil {
		return err
	}
	if f.inputs, err = blob.OpenDir(o.file("inputs")); err != nil {
		return err
	}
	left, err := o.left(ctx, f.store, o.config)
	if err != nil {
		return err
	}
	if f.clouds, err = openClouds(ctx, slices.Concat(o.config.Clouds, left), opening{o.program.Drivers, o.fleet, o.file("."), o.log, o.counted}); err != nil {
		return err
	}
	if err := f.loadKey(ctx, o); err != nil {
		return err
	}
	if o.accepted != nil {
		if err := o.accepted(); err != nil {
			return err
		}
	}
	if f.results, err = blob.OpenResults(o.results, o.kept); err != nil {
		return err
	}
	f.recording = startRecording(o.program.Version, o.file("recording"), o.config.Hash(), o.log)
	cfg := control.Config{
		Fleet:   o.fleet,
		Version: o.program.Version,
		Setup:   setupOf(o.config, left, o.limits, f.clouds),
		Store:   f.store,
		Key:     f.key,
		Inputs:  f.inputs,
		Results: f.results,
		Trust:   o.trust,
		Shared:  o.shared,
		Spool:   o.file("."),
		URL:     o.config.URL,
		Runners: findRunners(o.program.Runners),
		Record:  f.recording,
		Log:     o.log,
		Watch:   o.watch,
	}
	if o.counted != nil {
		cfg.Observer = o.counted
	}
	f.controller, err = control.New(ctx, cfg)
	return err
}

// loadKey reads the fleet's key. One is made only for a fleet that has no instances: nobody could log in to those with another key.
func (f *fleet) loadKey(ctx context.Context, o fleetOptions) (err error) {
	path := o.file("fleet.key")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		there, err := f.instancesThere(ctx, o)
		if err != nil {
			return err
		}
		if there != "" {
			return drover.Errorf(drover.KindInvalid, "%s is missing, and without it nobody can log in to the instances of fleet %s: %s", path, o.fleet, there).
				WithHint("put it back from a backup; drover gc --without-state lists the instances, and destroys them with --destroy")
		}
	}
	f.key, err = remote.LoadOrCreateFleetKey(path)
	return err
}

// instancesThere says which instances of a fleet there are by its records or, of one that many runs of this program share, its clouds; empty if
// there is none. A cloud that does not answer has none as far as is known.
func (f *fleet) instancesThere(ctx context.Context, o fleetOptions) (string, error) {
	recorded, err := f.store.Instances(ctx, drover.TimeOf(time.Now()), drover.InstanceFilter{})
	if err != nil {
		return "", err
	}
	if len(recorded) > 0 {
		return fmt.Sprintf("%s recorded, such as %s", plural(len(recorded), "instance"), recorded[0].Name), nil
	}
	if !o.shared {
		return "", nil
	}
	for _, c := range f.clouds {
		listed, err := c.Driver.List(ctx, map[string]string{driver.TagFleet: o.fleet})
		if err != nil {
			o.log.Warn("listing instances before the fleet key is made", logkey.Cloud, c.Name, logkey.Error, err)
		}
		for _, in := range listed {
			if in.Tags[driver.TagFleet] == o.fleet {
				return fmt.Sprintf("cloud %s lists %s", c.Name, in.ID), nil
			}
		}
	}
	return "", nil
}

// serveAttempts answers what jobs ask at DROVER_API, over the connections to their instances, until ctx ends.
func (f *fleet) serveAttempts(ctx context.Context, handler *httpapi.Handler) {
	s := httpapi.Server(handler)
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(f.controller.Attempts()); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		f.log.Error("serving jobs", logkey.Error, err)
	}
}

// attempt lets in who bears the token of a live attempt.
func (f *fleet) attempt(ctx context.Context, token drover.Secret) (drover.Identity, error) {
	id, err := f.controller.Attempt(ctx, token)
	if err != nil {
		return drover.Identity{}, err
	}
	user, err := f.store.User(ctx, id.Job.Number)
	return drover.Identity{User: user, Attempt: &id}, err
}

// Close lets go of everything; instances and jobs stay as they are. Closing again does nothing.
func (f *fleet) Close() {
	if f.closed {
		return
	}
	f.closed = true
	if f.recording != nil {
		f.recording.Close()
	}
	closeClouds(f.clouds)
	if f.results != nil {
		f.results.Close()
	}
	if f.inputs != nil {
		f.inputs.Close()
	}
	if f.store != nil {
		f.store.Close()
	}
}

// setupOf is what a controller goes by: a configuration, the clouds that it no longer has and that are to be left, and all of both opened.
func setupOf(c *config.Config, left []config.Cloud, limits runLimits, clouds []control.Cloud) control.Setup {
	s := control.Setup{Settings: settings(c, limits), Clouds: clouds, Limits: c.Limits, Probe: c.Instances.BootProbe, Deadline: c.Instances.ProbeDeadline, Hooks: c.Hooks.Scripts(),
		Keep: c.Results.Keep, Notify: webhook.Config{Secret: c.Notify.Secret, Allow: c.Notify.Allow}}
	s.Orders = wire.Orders{
		Orphan: c.Instances.OrphanTimeout, Grace: c.Instances.TermTimeout,
		Health: c.Instances.Health, Interval: c.Instances.HealthInterval, Deadline: c.Instances.HealthDeadline(),
		Runtime: string(c.Instances.Containers),
	}
	for _, cloud := range left {
		leaving := cloudSettings(cloud)
		leaving.Leaving = true
		s.Settings.Clouds = append(s.Settings.Clouds, leaving)
	}
	slices.SortFunc(s.Clouds, func(a, b control.Cloud) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Settings.Clouds, func(a, b engine.CloudSettings) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// settings is what the engine decides by.
func settings(c *config.Config, limits runLimits) engine.Settings {
	s := engine.Settings{
		Lifecycle: engine.Lifecycle{
			BootTimeout:      c.Instances.BootTimeout,
			ProbeInterval:    c.Instances.ProbeInterval,
			ProbeTimeout:     c.Instances.ProbeTimeout,
			PartitionTimeout: c.Instances.PartitionTimeout,
			IdleTimeout:      c.Instances.IdleTimeout,
			TermTimeout:      c.Instances.TermTimeout,
			ShutdownTimeout:  c.Instances.ShutdownTimeout,
			KeepBroken:       c.Instances.KeepBroken,
			MaxAge:           c.Instances.MaxAge,
			UseOnce:          c.Instances.Reuse == config.ReuseNever,
			Sharing:          c.Instances.Sharing,
		},
		MaxInstances:    limits.MaxInstances,
		MaxCost:         limits.MaxCost,
		Keep:            limits.Keep,
		ScheduleTimeout: c.Jobs.ScheduleTimeout,
		GrowMemory:      int(c.Jobs.OnOOM.Grow),
		Mix:             c.Jobs.Mix,
		SpotShare:       int(c.Jobs.Spread.SpotOffering),
		Shares:          c.Jobs.Shares,
		BrokenHook:      c.Hooks.Broken != "",
		Users:           engine.UserLimits{Instances: c.Limits.Instances, VCPUs: c.Limits.VCPUs},
	}
	for _, cloud := range c.Clouds {
		s.Clouds = append(s.Clouds, cloudSettings(cloud))
	}
	for _, b := range c.Budgets {
		s.Budgets = append(s.Budgets, engine.Budget{
			User: b.User, Label: b.Label, Hard: engine.Amounts(b.Amounts), Soft: engine.Amounts(b.Soft), Stop: b.OnExceeded == config.ExceededStop,
		})
	}
	return s
}

func cloudSettings(c config.Cloud) engine.CloudSettings {
	s := engine.CloudSettings{
		Name: c.Name, MaxInstances: c.MaxInstances, MaxCreating: c.MaxCreating, ListInterval: c.ListInterval, Disk: c.Disk, OffersInterval: c.Prices.Interval,
		Billing: drover.Billing{Period: c.Prices.Period},
	}
	for _, l := range c.Limits {
		limit := drover.Limit{Zone: l.Zone, Type: l.Type, Market: l.Market, QuotaGroup: l.QuotaGroup}
		if l.Instances > 0 {
			limit.Instances = new(l.Instances)
		}
		if l.VCPUs > 0 {
			limit.CPU = new(l.VCPUs)
		}
		s.Limits = append(s.Limits, limit)
	}
	for _, r := range c.Prices.Reserved {
		s.Reserved = append(s.Reserved, engine.Reservation{Type: r.Type, Count: r.Count, Price: r.Price})
	}
	return s
}

// loadConfig reads the configuration that a command is to go by: the file it names, else this machine.
func (a *app) loadConfig(file, onlyCloud string) (*config.Config, error) {
	return a.listedConfig(file, onlyCloud, nil)
}

// isTerminal reports whether people look at what is written to f.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
