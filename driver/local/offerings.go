package local

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// What is offered by default.
const (
	defaultName  = "local" // the name of the only type and the only zone
	defaultPrice = drover.Dollar / 100
)

// catalog is all offerings of this cloud, sorted by type, zone and market.
type catalog []drover.Offering

func (c *cloud) Offerings(context.Context) ([]drover.Offering, error) {
	return slices.Clone(c.catalog), nil
}

// catalog fills in what the configuration leaves out and makes an offering for each type, zone and market.
func (c Config) catalog(o driver.Options) (catalog, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	host, err := hostResources(o.Folder)
	if err != nil {
		return nil, err
	}
	return kit.StaticOfferings(c.Types, kit.StaticOptions{
		Cloud: o.Name, Zones: c.Zones, Markets: c.Markets, Discount: c.SpotDiscount, Default: host, Price: defaultPrice,
	})
}

// hostResources returns this host's processors and memory, and the free space in the folder's file system.
func hostResources(folder string) (drover.Resources, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return drover.Resources{}, fmt.Errorf("read the free space in %s: %w", folder, err)
	}
	var host unix.Sysinfo_t
	if err := unix.Sysinfo(&host); err != nil {
		return drover.Resources{}, fmt.Errorf("read this host's memory size: %w", err)
	}
	return drover.Resources{
		CPU:    drover.MilliCPU(runtime.NumCPU()) * 1000,
		Memory: drover.Bytes(host.Totalram) * drover.Bytes(host.Unit),
		Disk:   drover.Bytes(fs.Bavail) * drover.Bytes(fs.Bsize),
		Arch:   drover.Arch(runtime.GOARCH),
	}, nil
}
