package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/azure"
	"drover/driver/digitalocean"
	"drover/driver/ec2"
	"drover/driver/external"
	"drover/driver/gce"
	"drover/driver/hetzner"
	"drover/driver/kit"
	"drover/driver/middleware"
	"drover/driver/openstack"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/logkey"
	"drover/internal/remote"
	"drover/internal/telemetry"
)

// kind is a kind of cloud.
type kind struct {
	open driver.Opener
	keys any  // of the type into which it decodes its own keys of the configuration; a [booted] where that is known before a cloud is open
	here bool // it is on this host, so that asking it needs no network
}

// booted is what says what instances can be given for their first boot, and how much of it.
type booted interface {
	FirstBoot() (runs driver.Init, most int)
}

// drivers is every kind of cloud that this program can drive.
var drivers = withLocal(map[string]kind{
	"azure":        {open: azure.Open, keys: azure.Config{}},
	"ec2":          {open: ec2.Open, keys: ec2.Config{}},
	"gce":          {open: gce.Open, keys: gce.Config{}},
	"external":     {open: external.Open, keys: external.Config{}},
	"openstack":    {open: openstack.Open, keys: openstack.Config{}},
	"digitalocean": {open: digitalocean.Open, keys: digitalocean.Config{}},
	"hetzner":      {open: hetzner.Open, keys: hetzner.Config{}},
})

// driverKeys are the types of the drivers' own keys, by driver.
func driverKeys() map[string]any {
	keys := map[string]any{}
	for name, kind := range drivers {
		keys[name] = kind.keys
	}
	return keys
}

// checkDrivers refuses a configuration that names a driver which does not exist.
func checkDrivers(c *config.Config) error {
	for _, cloud := range c.Clouds {
		kind, ok := drivers[cloud.Driver]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(drivers)), ", ")
			return c.Fault("clouds."+cloud.Name+".driver", "there is no driver "+cloud.Driver, "there is "+known)
		}
		known, is := kind.keys.(booted)
		if !is {
			continue
		}
		runs, most := known.FirstBoot()
		if err := kit.CheckInit(cloud.CloudInit.Text, runs, most); err != nil {
			e := drover.AsError(err, drover.KindInvalid)
			return c.Fault("clouds."+cloud.Name+".cloud_init", e.Message, e.Hint)
		}
	}
	return nil
}

// checkKeys sees whether every cloud's own keys are right. It calls nobody: only what is on this host is opened.
func (a *app) checkKeys(ctx context.Context, c *config.Config) error {
	here := *c
	here.Clouds = nil
	for _, cloud := range c.Clouds {
		kind := drivers[cloud.Driver]
		if kind.here {
			here.Clouds = append(here.Clouds, cloud)
			continue
		}
		if _, err := remote.LoadLoginKeys(paths(cloud.SSH.Keys)); err != nil {
			return err
		}
		if err := cloud.Decode(reflect.New(reflect.TypeOf(kind.keys)).Interface()); err != nil {
			return err
		}
	}
	_, _, err := a.offeringsOf(ctx, &here)
	return err
}

// opening says for whom clouds are opened.
type opening struct {
	fleet   string
	folder  string // where drivers keep what they must
	log     *slog.Logger
	counted *telemetry.Telemetry // of calls; may be nil
}

// openClouds opens clouds for a fleet.
func openClouds(ctx context.Context, clouds []config.Cloud, o opening) (opened []control.Cloud, err error) {
	for _, cloud := range clouds {
		one, err := openCloud(ctx, cloud, o)
		if err != nil {
			closeClouds(opened)
			return nil, err
		}
		opened = append(opened, one)
	}
	return opened, nil
}

func openCloud(ctx context.Context, cloud config.Cloud, o opening) (control.Cloud, error) {
	keys, err := remote.LoadLoginKeys(paths(cloud.SSH.Keys))
	if err != nil {
		return control.Cloud{}, err
	}
	d, err := drivers[cloud.Driver].open(ctx, driver.Options{
		Name:   cloud.Name,
		Fleet:  o.fleet,
		Decode: cloud.Decode,
		Dir:    cloud.Dir,
		Folder: filepath.Join(o.folder, cloud.Name),
		Log:    o.log.With(logkey.Cloud, cloud.Name),
		Metric: o.requested(cloud.Name),
	})
	if err != nil {
		return control.Cloud{}, err
	}
	dressed, err := o.dress(d, cloud)
	if err != nil {
		return control.Cloud{}, errors.Join(fmt.Errorf("clouds.%s: %w", cloud.Name, err), d.Close())
	}
	return control.Cloud{
		Name:   cloud.Name,
		Driver: dressed,
		Offer:  cloud.Offer,
		SSH:    control.SSH{User: cloud.SSH.User, Port: cloud.SSH.Port, Address: string(cloud.SSH.Address), Keys: keys},
		Folder: cloud.RunnerDir,
	}, nil
}

// dress wraps an open cloud in what every kind of cloud has. Calls are counted closest to the driver, so that what is refused before is no
// call; what a dry run refuses is what would have been asked for, image and template included. Own comes over all, with whoever uses the cloud.
func (o opening) dress(d driver.Cloud, cloud config.Cloud) (driver.Cloud, error) {
	if o.counted != nil {
		d = middleware.Measure(d, func(call middleware.Method, took time.Duration, err error) {
			o.counted.Called(cloud.Name, string(call), took, err)
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

// requested is what counts the requests of a cloud's driver.
func (o opening) requested(cloud string) func(request string, err error) {
	if o.counted == nil {
		return nil
	}
	return func(request string, err error) { o.counted.Requested(cloud, request, err) }
}

// tellDry logs what would have been done in a cloud, were it not a dry run.
func (o opening) tellDry(cloud string) func(middleware.Call) {
	return func(a middleware.Call) {
		args := []any{logkey.Cloud, cloud, logkey.Effect, string(a.Method), logkey.ProviderID, a.ID}
		if a.Create != nil && len(a.Create.Candidates) > 0 {
			first := a.Create.Candidates[0]
			args = []any{logkey.Cloud, cloud, logkey.Effect, string(a.Method), logkey.Instance, a.ID, logkey.Type, first.ProviderType,
				logkey.Zone, first.Zone, logkey.Market, string(first.Market), logkey.Note, "image " + cmp.Or(first.Image, "of the driver's choice")}
		}
		o.log.Info("a dry run: this would have been done", args...)
	}
}

func paths(files []config.FilePath) (all []string) {
	for _, f := range files {
		all = append(all, string(f))
	}
	return all
}

func closeClouds(clouds []control.Cloud) {
	for _, c := range clouds {
		c.Driver.Close()
	}
}

// offerings is what all clouds offer, as the engine will see it, and what their configuration leaves out.
func offerings(ctx context.Context, clouds []control.Cloud) (all []drover.Offering, leftOut []drover.LeftOut, err error) {
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
