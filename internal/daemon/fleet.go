package daemon

import (
	"cmp"
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
	"sync"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/blob"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/engine"
	"drover/internal/engine/pool"
	"drover/internal/httpapi"
	"drover/internal/logkey"
	"drover/internal/record"
	"drover/internal/remote"
	"drover/internal/store"
	"drover/internal/telemetry"
	"drover/internal/webhook"
	"drover/internal/wire"
)

// FleetOptions are the fleet whose controller to open, and the places of its files.
type FleetOptions struct {
	Program Program
	Fleet   string
	Config  *config.Config
	Limits  RunLimits
	DB      string
	File    func(name string) string // the place of everything else except results
	Results string
	Kept    blob.Limits // of results
	Trust   bool        // accept records that may be an older copy
	shared  bool        // results are those of many batches
	// Left finds the clouds that have instances and that the configuration no longer has, or refuses to open if there
	// are any.
	Left     func(context.Context, *store.Store, *config.Config) ([]config.Cloud, error)
	Accepted func() error // called when everything except the results is open; may be nil
	Log      *slog.Logger

	counted *telemetry.Telemetry // counts what it does; may be nil
}

// Fleet is a controller in this process and everything that it uses.
type Fleet struct {
	Controller *control.Controller
	Store      *store.Store
	results    *blob.Results
	Inputs     *blob.Dir
	clouds     []control.Cloud
	Key        remote.FleetKey
	recording  *record.Recorder
	stop       context.CancelFunc // ends the recording; nil: there is none
	recorded   sync.WaitGroup     // until it has ended
	log        *slog.Logger
	closed     bool
}

// OpenFleet makes a controller. Nothing is rented before its Run.
func OpenFleet(ctx context.Context, o FleetOptions) (*Fleet, error) {
	f := &Fleet{log: o.Log}
	if err := f.open(ctx, o); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) open(ctx context.Context, o FleetOptions) (err error) {
	if f.Store, err = store.Open(ctx, o.DB); err != nil {
		return err
	}
	lost, err := f.Store.Lost(ctx)
	if err != nil {
		return err
	}
	if lost {
		o.Log.Warn(fmt.Sprintf("%s has no records, although it once had some: to restore a backup, stop Drover now; otherwise, jobs are numbered from 1 again", o.DB))
	}
	if f.Inputs, err = blob.OpenDir(o.File("inputs")); err != nil {
		return err
	}
	left, err := o.Left(ctx, f.Store, o.Config)
	if err != nil {
		return err
	}
	opening := Opening{o.Program.Drivers, o.Fleet, o.File("."), o.Log, o.counted}
	if f.clouds, err = OpenClouds(ctx, o.Config.Clouds, opening); err != nil {
		return err
	}
	if err := CheckEdited(ctx, o.Config, f.clouds, opening); err != nil {
		return err
	}
	for _, cloud := range left {
		opened, err := OpenCloud(ctx, cloud, opening)
		if err != nil {
			return cannotDrain(cloud.Name, err)
		}
		f.clouds = append(f.clouds, opened)
	}
	if err := f.loadKey(ctx, o); err != nil {
		return err
	}
	if o.Accepted != nil {
		if err := o.Accepted(); err != nil {
			return err
		}
	}
	if f.results, err = blob.OpenResults(o.Results, o.Kept); err != nil {
		return err
	}
	if err := checkDrivers(o.Config, f.clouds); err != nil {
		return err
	}
	if err := checkBudget(ctx, o.Config, f.clouds, o.Log); err != nil {
		return err
	}
	header := record.Header{Program: o.Program.Version, Settings: o.Config.Hash()}
	f.recording = record.NewRecorder(record.NewFolder(o.File("recording"), record.DefaultLimit), header, o.Log)
	recording, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.recorded.Go(func() { f.recording.Run(recording) })
	cfg := control.Config{
		Fleet:   o.Fleet,
		Version: o.Program.Version,
		Setup:   setupOf(inForce(o.Config), left, o.Limits, f.clouds),
		Store:   f.Store,
		Key:     f.Key,
		Inputs:  f.Inputs,
		Results: f.results,
		Trust:   o.Trust,
		Shared:  o.shared,
		Spool:   o.File("."),
		Runners: findRunners(o.Program.Runners),
		Record:  f.recording,
		Log:     o.Log,
	}
	if o.counted != nil {
		cfg.Observer = o.counted
	}
	if f.Controller, err = control.New(ctx, cfg); err != nil {
		return err
	}
	return keepClouds(opening.Folder, o.Config)
}

// loadKey reads the fleet's key. It makes one only for a fleet without instances: nobody could log in to existing
// ones with another key.
func (f *Fleet) loadKey(ctx context.Context, o FleetOptions) (err error) {
	path := o.File("fleet.key")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		there, remedy, err := f.instancesThere(ctx, o)
		if err != nil {
			return err
		}
		if there != "" {
			return drover.Errorf(drover.KindInvalid, "%s is missing, and without it nobody can log in to the instances of fleet %s: %s", path, o.Fleet, there).
				WithHint("restore it from a backup; %s", remedy)
		}
	}
	f.Key, err = remote.LoadOrCreateFleetKey(path)
	return err
}

// instancesThere describes a fleet's instances by its records or, for a fleet that many runs share, its clouds, and how
// to get rid of them without the key; empty if there are none. Recorded instances are gone if all clouds answer and list
// none of the fleet's.
func (f *Fleet) instancesThere(ctx context.Context, o FleetOptions) (there, remedy string, err error) {
	recorded, err := f.Store.Instances(ctx, drover.TimeOf(time.Now()), drover.InstanceFilter{})
	if err != nil || len(recorded) == 0 && !o.shared {
		return "", "", err
	}
	listed, all := f.listed(ctx, o)
	switch {
	case len(recorded) > 0 && (listed != "" || !all):
		there, remedy = fmt.Sprintf("%d recorded, such as %s", len(recorded), recorded[0].Name), "if there is none, destroy the instances by other means, then start again"
	case len(recorded) == 0 && listed != "":
		there, remedy = listed, "drover gc --without-state lists the instances, and destroys them with --destroy"
	}
	return there, remedy, nil
}

// listed describes one of the fleet's instances by its clouds; empty if there are none. It also reports whether all
// clouds answered.
func (f *Fleet) listed(ctx context.Context, o FleetOptions) (there string, all bool) {
	all = true
	for _, c := range f.clouds {
		listed, err := c.Driver.List(ctx, map[string]string{driver.TagFleet: o.Fleet})
		if err != nil {
			o.Log.Warn("instances cannot be listed before the fleet key is created", logkey.Cloud, c.Name, logkey.Error, err)
			all = false
		}
		for _, in := range listed {
			if in.Tags[driver.TagFleet] == o.Fleet {
				return fmt.Sprintf("cloud %s lists %s", c.Name, in.ID), all
			}
		}
	}
	return "", all
}

// ServeAttempts answers jobs' requests at DROVER_API, over the connections to their instances, until ctx ends.
func (f *Fleet) ServeAttempts(ctx context.Context, handler *httpapi.Handler) {
	s := httpapi.Server(handler)
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(f.Controller.Attempts()); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		f.log.Error("the HTTP server for jobs has stopped", logkey.Error, err)
	}
}

// Attempt authenticates the token of a live attempt.
func (f *Fleet) Attempt(ctx context.Context, token drover.Secret) (drover.Identity, error) {
	id, err := f.Controller.Attempt(ctx, token)
	if err != nil {
		return drover.Identity{}, err
	}
	user, err := f.Store.User(ctx, id.Job.Number)
	return drover.Identity{User: user, Attempt: &id}, err
}

// Close closes everything; instances and jobs stay. Closing again does nothing.
func (f *Fleet) Close() {
	if f.closed {
		return
	}
	f.closed = true
	if f.stop != nil {
		f.stop()
		f.recorded.Wait()
	}
	CloseClouds(f.clouds)
	if f.results != nil {
		f.results.Close()
	}
	if f.Inputs != nil {
		f.Inputs.Close()
	}
	if f.Store != nil {
		f.Store.Close()
	}
}

// setupOf returns a controller's Setup from a configuration, the removed clouds to drain, and the open clouds of both.
func setupOf(c *config.Config, left []config.Cloud, limits RunLimits, clouds []control.Cloud) control.Setup {
	s := control.Setup{Settings: Settings(c, limits), Clouds: clouds, Limits: c.Limits, Probe: c.Instances.BootProbe, Deadline: c.Instances.ProbeDeadline, Hooks: c.Hooks.Scripts(), Pools: map[string]control.Pool{},
		Keep: c.Results.Keep, URL: c.URL, Notify: webhook.Config{Secret: c.Notify.Secret, Allow: c.Notify.Allow}}
	s.Orders = wire.Orders{
		Orphan: c.Instances.OrphanTimeout, Grace: c.Instances.TermTimeout,
		Health: c.Instances.Health, Interval: c.Instances.HealthInterval, Deadline: c.Instances.HealthDeadline(),
		Runtime: string(c.Instances.Containers),
	}
	for _, p := range c.Pools {
		one := control.Pool{Images: p.Image, Template: p.Template.Text, Init: p.CloudInit.Text, Probe: p.BootProbe, Orphan: p.OrphanTimeout, Hooks: p.Hooks.Scripts()}
		if h := p.Health; h != nil {
			one.Check = &control.HealthCheck{Interval: h.Interval, Timeout: h.Timeout, Failures: h.Failures}
			one.Check.Port, one.Check.Path = h.Target()
		}
		if g := p.Kubernetes; g != nil {
			one.Init, one.Group = cmp.Or(g.Join.Text, one.Init), nodeGroupOf(p)
		}
		s.Pools[p.Name] = one
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

// inForce returns a configuration with its pools' schedules applied.
func inForce(c *config.Config) *config.Config {
	c, _ = c.At(time.Now())
	return c
}

// checkDrivers refuses what the clouds' drivers cannot do.
func checkDrivers(c *config.Config, clouds []control.Cloud) error {
	if err := checkAttributes(c, "hooks", c.Hooks, clouds); err != nil {
		return err
	}
	for _, p := range c.Pools {
		for _, cloud := range clouds {
			if p.Stopped > 0 && slices.Contains(p.Clouds, cloud.Name) && !cloud.Driver.Capabilities().StopSaves {
				why := "in cloud " + cloud.Name + " a stopped instance costs as much as a running one"
				if !cloud.Driver.Capabilities().StopStart {
					why = "the driver of cloud " + cloud.Name + " cannot stop instances"
				}
				return c.Fault("pools."+p.Name+".stopped", why, "leave it out, or name other clouds")
			}
			if p.Kubernetes != nil && slices.Contains(p.Clouds, cloud.Name) && cloud.Driver.Capabilities().NodeID == "" {
				return c.Fault("pools."+p.Name+".clouds", "cloud "+cloud.Name+" does not report the Kubernetes provider IDs of its instances", "an external driver reports them with node_id")
			}
			if p.Template.Text != "" && slices.Contains(p.Clouds, cloud.Name) && !cloud.Driver.Capabilities().Template {
				return c.Fault("pools."+p.Name+".template", "the driver of cloud "+cloud.Name+" does not support templates", "leave it out, or name other clouds")
			}
		}
		if err := checkAttributes(c, "pools."+p.Name+".hooks", p.Hooks, clouds); err != nil {
			return err
		}
	}
	return nil
}

// checkAttributes refuses hooks in attributes of a cloud without any.
func checkAttributes(c *config.Config, at string, hooks config.Hooks, clouds []control.Cloud) error {
	for hook, target := range hooks.Scripts() {
		name, _, is := config.HookTarget(target).Attribute()
		i := slices.IndexFunc(clouds, func(cl control.Cloud) bool { return cl.Name == name })
		if !is || i < 0 {
			continue
		}
		if _, can := driver.As[driver.Attributes](clouds[i].Driver); !can {
			return c.Fault(at+"."+string(hook), "the driver of cloud "+name+" does not support attributes", "write the path of a script")
		}
	}
	return nil
}

// Settings returns the engine's settings.
func Settings(c *config.Config, limits RunLimits) engine.Settings {
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
	for _, p := range c.Pools {
		spec := poolSpec(p)
		if p.Health != nil {
			spec.CheckWithin = cmp.Or(p.Health.Within, c.Instances.BootTimeout)
		}
		if p.Kubernetes != nil {
			spec.Min, spec.Max, spec.Budget, spec.JoinTimeout = p.Kubernetes.Min, p.Kubernetes.Max, p.Kubernetes.Budget, c.Kubernetes.JoinTimeout
		}
		s.Pools = append(s.Pools, spec)
		s.BrokenHook = s.BrokenHook || p.Hooks.Broken != ""
	}
	s.Nodes, s.DefaultGroup = c.Kubernetes.Kubeconfig != "", c.Kubernetes.DefaultGroup
	for _, b := range c.Budgets {
		s.Budgets = append(s.Budgets, engine.Budget{
			User: b.User, Label: b.Label, Hard: engine.Amounts(b.Amounts), Soft: engine.Amounts(b.Soft), Stop: b.OnExceeded == config.ExceededStop,
		})
	}
	return s
}

// poolSpec returns a pool as the engine keeps it.
func poolSpec(p config.Pool) pool.Spec {
	kind, count := p.Kind()
	return pool.Spec{
		Name: p.Name, Kind: kind, Count: count, Ratio: int(p.Ratio), Max: p.Max,
		Clouds: p.Clouds, Zones: p.Zones, Types: p.TypeNames(), Need: p.Need(), Market: p.Markets(), Mix: p.Mix, Spread: p.Spread,
		Disk: p.Disk, Login: p.Login, Jobs: p.RunsJobs(), MaxAge: p.MaxAge, Stopped: p.Stopped,
		Cooldown: p.Cooldown, Rebalance: p.Rebalance,
		NamePrefix: p.NamePrefix, Template: p.TemplateHash(), MaxUnavailable: p.Replace.MaxUnavailable.Count, MaxSurge: p.Replace.MaxSurge.Count,
		UnavailablePart: int(p.Replace.MaxUnavailable.Part), SurgePart: int(p.Replace.MaxSurge.Part),
	}
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
		s.Reserved = append(s.Reserved, engine.Reservation(r))
	}
	return s
}
