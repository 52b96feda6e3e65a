package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/ec2"
	"drover/driver/external"
	"drover/driver/local"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/logkey"
	"drover/internal/remote"
)

// kind is a kind of cloud.
type kind struct {
	open driver.Opener
	keys any // of the type into which it decodes its own keys of the configuration
	// What its instances can be given at their first boot, as far as that is known before a cloud is open.
	init driver.Capabilities
}

// drivers is every kind of cloud that this program can drive.
var drivers = map[string]kind{
	"ec2":      {open: ec2.Open, keys: ec2.Config{}, init: driver.Capabilities{Init: driver.InitCloud, MaxInit: 16 << 10, Template: true}},
	"external": {open: external.Open, keys: external.Config{}}, // what it can be given, the program says
	"local":    {open: local.Open, keys: local.Config{}, init: driver.Capabilities{Init: driver.InitShell}},
}

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
		if err := driver.CheckInit(cloud.CloudInit.Text, kind.init.Init, kind.init.MaxInit); err != nil && kind.init.Init != "" {
			e := drover.AsError(err, drover.KindInvalid)
			return c.Fault("clouds."+cloud.Name+".cloud_init", e.Message, e.Hint)
		}
	}
	return nil
}

// openClouds opens clouds for a fleet. Folder is where drivers keep what they must.
func openClouds(ctx context.Context, clouds []config.Cloud, fleet, folder string, log *slog.Logger) (opened []control.Cloud, err error) {
	for _, cloud := range clouds {
		one, err := openCloud(ctx, cloud, fleet, folder, log)
		if err != nil {
			closeClouds(opened)
			return nil, err
		}
		opened = append(opened, one)
	}
	return opened, nil
}

func openCloud(ctx context.Context, cloud config.Cloud, fleet, folder string, log *slog.Logger) (control.Cloud, error) {
	keys, err := remote.LoadLoginKeys(paths(cloud.SSH.Keys))
	if err != nil {
		return control.Cloud{}, err
	}
	d, err := drivers[cloud.Driver].open(ctx, driver.Options{
		Name:   cloud.Name,
		Fleet:  fleet,
		Decode: cloud.Decode,
		Dir:    cloud.Dir,
		Folder: filepath.Join(folder, cloud.Name),
		Log:    log.With(logkey.Cloud, cloud.Name),
	})
	if err != nil {
		return control.Cloud{}, err
	}
	dressed, err := dress(d, cloud)
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

// dress wraps an open cloud in what the configuration asks of every kind of cloud.
func dress(d driver.Cloud, cloud config.Cloud) (driver.Cloud, error) {
	d, err := driver.Customize(d, driver.Custom{Template: cloud.Template.Text, Init: cloud.CloudInit.Text})
	if err != nil {
		return nil, err
	}
	return driver.WithImages(d, cloud.Image), nil
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

// offerings is what all clouds offer, as the engine will see it.
func offerings(ctx context.Context, clouds []control.Cloud) (all []drover.Offering, err error) {
	for _, c := range clouds {
		list, err := c.Driver.Offerings(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			if paid, may := c.Offer(o); may {
				all = append(all, paid)
			}
		}
	}
	return all, nil
}
