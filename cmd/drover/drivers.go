package main

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"drover"
	"drover/driver"
	"drover/driver/local"
	"drover/internal/config"
	"drover/internal/control"
	"drover/internal/logkey"
	"drover/internal/remote"
)

// drivers is every kind of cloud that this program can drive.
var drivers = map[string]driver.Opener{
	"local": local.Open,
}

// checkDrivers refuses a configuration that names a driver which does not exist.
func checkDrivers(c *config.Config) error {
	for _, cloud := range c.Clouds {
		if drivers[cloud.Driver] == nil {
			known := strings.Join(slices.Sorted(maps.Keys(drivers)), ", ")
			return c.Fault("clouds."+cloud.Name+".driver", "there is no driver "+cloud.Driver, "there is "+known)
		}
	}
	return nil
}

// openClouds opens clouds for a fleet. Folder is where drivers keep what they must.
func openClouds(ctx context.Context, clouds []config.Cloud, fleet, folder string, log *slog.Logger) (opened []control.Cloud, err error) {
	for _, cloud := range clouds {
		keys, err := remote.LoadLoginKeys(paths(cloud.SSH.Keys))
		if err != nil {
			closeClouds(opened)
			return nil, err
		}
		d, err := drivers[cloud.Driver](ctx, driver.Options{
			Name:   cloud.Name,
			Fleet:  fleet,
			Decode: cloud.Decode,
			Folder: filepath.Join(folder, cloud.Name),
			Log:    log.With(logkey.Cloud, cloud.Name),
		})
		if err != nil {
			closeClouds(opened)
			return nil, err
		}
		opened = append(opened, control.Cloud{
			Name:   cloud.Name,
			Driver: d,
			Image:  cloud.Image,
			Allows: func(o drover.Offering) bool { return cloud.Types.Allows(o.Type.Name, o.Price) },
			SSH:    control.SSH{User: cloud.SSH.User, Port: cloud.SSH.Port, Address: string(cloud.SSH.Address), Keys: keys},
			Folder: cloud.RunnerDir,
		})
	}
	return opened, nil
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
			if c.Allows(o) {
				all = append(all, o)
			}
		}
	}
	return all, nil
}
