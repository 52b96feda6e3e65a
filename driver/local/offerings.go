package local

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"drover"
	"drover/driver"
)

// What is offered when the configuration is silent.
const (
	defaultName     = "local" // of the only type and the only zone
	defaultPrice    = drover.Dollar / 100
	defaultDiscount = 60 // percent
)

// catalog is all that this cloud can be asked for, sorted by type, zone and market.
type catalog []drover.Offering

func (c *cloud) Offerings(ctx context.Context) (_ []drover.Offering, err error) {
	defer func() { c.measure("offerings", err) }()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return slices.Clone(c.catalog), nil
}

// catalog fills in what the configuration leaves out and multiplies types, zones and markets.
func (c Config) catalog(o driver.Options) (catalog, error) {
	if err := c.Faults.check(); err != nil {
		return nil, err
	}
	host, err := hostResources(o.Folder)
	if err != nil {
		return nil, err
	}
	if len(c.Types) == 0 {
		c.Types = []typeConfig{{Name: defaultName}}
	}
	if len(c.Zones) == 0 {
		c.Zones = []string{defaultName}
	}
	if len(c.Markets) == 0 {
		c.Markets = []drover.Market{drover.OnDemand}
	}
	var all catalog
	for _, t := range c.Types {
		offerings, err := c.offeringsOf(o.Name, t, host)
		if err != nil {
			return nil, err
		}
		all = append(all, offerings...)
	}
	slices.SortFunc(all, order)
	for i := 1; i < len(all); i++ {
		if order(all[i-1], all[i]) == 0 {
			return nil, fmt.Errorf("%s in zone %s, %s, is configured twice", all[i].Type.Name, all[i].Zone, all[i].Market)
		}
	}
	return all, nil
}

func order(a, b drover.Offering) int {
	return cmp.Or(cmp.Compare(a.Type.Name, b.Type.Name), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Market, b.Market))
}

func (c Config) offeringsOf(cloud string, t typeConfig, host drover.Resources) (catalog, error) {
	if t.Name == "" {
		return nil, fmt.Errorf("types: one has no name")
	}
	var all catalog
	for _, zone := range c.Zones {
		for _, market := range c.Markets {
			if market != drover.OnDemand && market != drover.Spot {
				return nil, fmt.Errorf("markets: %q is neither %s nor %s", market, drover.OnDemand, drover.Spot)
			}
			all = append(all, drover.Offering{Cloud: cloud, Zone: zone, Type: t.instanceType(host), Market: market, Price: c.price(t, market)})
		}
	}
	return all, nil
}

func (t typeConfig) instanceType(host drover.Resources) drover.InstanceType {
	return drover.InstanceType{
		Name:         t.Name,
		ProviderType: cmp.Or(t.ProviderType, t.Name),
		Resources: drover.Resources{
			CPU:    cmp.Or(drover.MilliCPU(t.VCPUs), host.CPU),
			Memory: cmp.Or(drover.Bytes(t.Memory), host.Memory),
			Disk:   cmp.Or(drover.Bytes(t.Disk), host.Disk),
			GPUs:   t.GPUs,
			Arch:   cmp.Or(t.Arch, host.Arch),
		},
	}
}

func (c Config) price(t typeConfig, m drover.Market) drover.Money {
	full := defaultPrice
	if t.Price != nil {
		full = drover.Money(*t.Price)
	}
	switch {
	case m == drover.OnDemand:
		return full
	case t.SpotPrice != nil:
		return drover.Money(*t.SpotPrice)
	}
	discount := drover.Money(defaultDiscount)
	if c.SpotDiscount.set {
		discount = drover.Money(c.SpotDiscount.value)
	}
	return full / 100 * (100 - discount)
}

// hostResources are this host's processors and memory, and what is free in the folder's file system.
func hostResources(folder string) (drover.Resources, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return drover.Resources{}, fmt.Errorf("ask for the free space in %s: %w", folder, err)
	}
	memory, err := hostMemory()
	return drover.Resources{
		CPU:    drover.MilliCPU(runtime.NumCPU()) * 1000,
		Memory: memory,
		Disk:   drover.Bytes(fs.Bavail) * drover.Bytes(fs.Bsize),
		Arch:   drover.Arch(runtime.GOARCH),
	}, err
}

func hostMemory() (drover.Bytes, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("ask for this host's memory: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib drover.Bytes
		if n, _ := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kib); n == 1 {
			return kib * drover.KiB, nil
		}
	}
	return 0, fmt.Errorf("ask for this host's memory: no MemTotal in /proc/meminfo")
}
