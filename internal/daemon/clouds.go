package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
	"drover/driver/middleware"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/logkey"
	"drover/internal/remote"
	"drover/internal/telemetry"
)

// booted reports what instances can run at their first boot, and the size limit of that.
type booted interface {
	FirstBoot() (runs driver.Init, most int)
}

// Keys returns the types of the drivers' own keys, by driver.
func (p Program) Keys() map[string]any {
	keys := map[string]any{}
	for name, kind := range p.Drivers {
		keys[name] = kind.Keys
	}
	return keys
}

// Check refuses a configuration that names an unknown driver.
func (p Program) Check(c *config.Config) error {
	for _, cloud := range c.Clouds {
		kind, ok := p.Drivers[cloud.Driver]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(p.Drivers)), ", ")
			return c.Fault("clouds."+cloud.Name+".driver", "there is no driver "+cloud.Driver, "the drivers are "+known)
		}
		known, is := kind.Keys.(booted)
		if !is {
			continue
		}
		runs, most := known.FirstBoot()
		if err := kit.CheckInit(cloud.CloudInit.Text, runs, most); err != nil {
			e := drover.AsError(err, drover.KindInvalid)
			return c.Fault("clouds."+cloud.Name+".cloud_init", e.Message, e.Hint)
		}
		if err := checkPoolInits(c, cloud, runs, most); err != nil {
			return err
		}
	}
	return nil
}

// checkPoolInits refuses a pool's init text that instances of one of its clouds could not run together with the
// cloud's own.
func checkPoolInits(c *config.Config, cloud config.Cloud, runs driver.Init, most int) error {
	if most > 0 {
		most = max(1, most-len(cloud.CloudInit.Text))
	}
	for _, p := range c.Pools {
		if !slices.Contains(p.Clouds, cloud.Name) {
			continue
		}
		text, key := p.CloudInit.Text, ".cloud_init"
		if p.Kubernetes != nil && p.Kubernetes.Join.Text != "" {
			text, key = p.Kubernetes.Join.Text, ".kubernetes.join"
		}
		if err := kit.CheckInit(text, runs, most); err != nil {
			e := drover.AsError(err, drover.KindInvalid)
			return c.Fault("pools."+p.Name+key, e.Message, e.Hint)
		}
	}
	return nil
}

// Opening is how clouds are opened, and for which fleet.
type Opening struct {
	Drivers map[string]Kind
	Fleet   string
	Folder  string // for the drivers' files
	Log     *slog.Logger
	Counted *telemetry.Telemetry // counts calls; may be nil
}

// OpenClouds opens clouds for a fleet.
func OpenClouds(ctx context.Context, clouds []config.Cloud, o Opening) (opened []control.Cloud, err error) {
	for _, cloud := range clouds {
		one, err := OpenCloud(ctx, cloud, o)
		if err != nil {
			CloseClouds(opened)
			return nil, err
		}
		opened = append(opened, one)
	}
	return opened, nil
}

// OpenCloud opens a cloud.
func OpenCloud(ctx context.Context, cloud config.Cloud, o Opening) (control.Cloud, error) {
	keys, err := remote.LoadLoginKeys(Paths(cloud.SSH.Keys))
	if err != nil {
		return control.Cloud{}, fmt.Errorf("clouds.%s.ssh.keys: %w", cloud.Name, err)
	}
	d, err := o.Drivers[cloud.Driver].Open(ctx, driver.Options{
		Name:   cloud.Name,
		Fleet:  o.Fleet,
		Decode: cloud.Decode,
		Dir:    cloud.Dir,
		Folder: filepath.Join(o.Folder, cloud.Name),
		Log:    o.Log.With(logkey.Cloud, cloud.Name),
		Metric: o.requested(cloud.Name),
	})
	if err != nil {
		return control.Cloud{}, err
	}
	decorated, err := o.decorate(d, cloud)
	if err != nil {
		return control.Cloud{}, errors.Join(fmt.Errorf("clouds.%s: %w", cloud.Name, err), d.Close())
	}
	return control.Cloud{
		Name:   cloud.Name,
		Driver: decorated,
		Offer:  cloud.Offer,
		SSH:    control.SSH{User: cloud.SSH.User, Port: cloud.SSH.Port, Address: string(cloud.SSH.Address), Keys: keys},
		Folder: cloud.RunnerDir,
	}, nil
}

// decorate wraps an open cloud in the decorators of every cloud. Measuring is innermost, so that a refused call does
// not count; a dry run sees the final request, image and template included. Callers add ForFleet as the outermost.
func (o Opening) decorate(d driver.Cloud, cloud config.Cloud) (driver.Cloud, error) {
	if o.Counted != nil {
		d = middleware.Measure(d, func(call middleware.Method, took time.Duration, err error) {
			o.Counted.Called(cloud.Name, string(call), took, err)
		})
	}
	d = middleware.Throttle(d)
	if cloud.DryRun {
		d = middleware.DryRun(d, o.tellDry(cloud.Name))
	}
	d, err := middleware.Customize(d, middleware.Custom{Template: cloud.Template.Text, Init: cloud.CloudInit.Text})
	if err != nil {
		return nil, err
	}
	return middleware.WithImages(d, cloud.Image), nil
}

// requested returns the function that counts the requests of a cloud's driver.
func (o Opening) requested(cloud string) func(request string, err error) {
	if o.Counted == nil {
		return nil
	}
	return func(request string, err error) { o.Counted.Requested(cloud, request, err) }
}

// tellDry logs what a dry run would have done in a cloud.
func (o Opening) tellDry(cloud string) func(middleware.Call) {
	return func(a middleware.Call) {
		args := []any{logkey.Cloud, cloud, logkey.Effect, string(a.Method), logkey.ProviderID, a.ID}
		if a.Create != nil && len(a.Create.Candidates) > 0 {
			first := a.Create.Candidates[0]
			args = []any{logkey.Cloud, cloud, logkey.Effect, string(a.Method), logkey.Instance, a.ID, logkey.Type, first.ProviderType,
				logkey.Zone, first.Zone, logkey.Market, string(first.Market), logkey.Note, "image " + cmp.Or(first.Image, "of the driver's choice")}
		}
		o.Log.Info("dry run: would have made this change", args...)
	}
}

// Paths returns files as strings.
func Paths(files []config.FilePath) (all []string) {
	for _, f := range files {
		all = append(all, string(f))
	}
	return all
}

// CloseClouds closes what OpenClouds opened.
func CloseClouds(clouds []control.Cloud) {
	for _, c := range clouds {
		c.Driver.Close()
	}
}

// Offerings returns the offerings of all clouds, as the engine will see them, and those that the configuration
// excludes.
func Offerings(ctx context.Context, clouds []control.Cloud) (all []drover.Offering, leftOut []drover.LeftOut, err error) {
	for _, c := range clouds {
		list, err := middleware.WithRetry(c.Driver).Offerings(ctx)
		if err != nil {
			return nil, nil, err
		}
		usable, others := c.Usable(list)
		all, leftOut = append(all, usable...), append(leftOut, others...)
	}
	return all, leftOut, nil
}
