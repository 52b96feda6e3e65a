package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drover"
	"drover/driver"
)

// Type is a configured instance type, for clouds that do not list their types or prices. Drivers decode lists of it
// from their key `types`.
type Type struct {
	Name         string          `yaml:"name" json:"name" doc:"its name in configurations and jobs"`
	ProviderType string          `yaml:"provider_type" json:"provider_type" doc:"the cloud's name for the type; default: name"`
	VCPUs        drover.MilliCPU `yaml:"vcpus" json:"vcpus_milli"`
	Memory       drover.Bytes    `yaml:"memory" json:"memory_bytes"`
	Disk         drover.Bytes    `yaml:"disk" json:"disk_bytes" doc:"size of the root volume; default: as much as a job needs"`
	Scratch      drover.Bytes    `yaml:"scratch" json:"scratch_bytes" doc:"additional space, not on the root volume"`
	GPUs         int             `yaml:"gpus" json:"gpus"`
	Arch         drover.Arch     `yaml:"arch" json:"arch" doc:"amd64 or arm64; default: the driver's default"`
	Price        *drover.Money   `yaml:"price" json:"price_nano_usd" doc:"the on-demand price per hour"`
	SpotPrice    *drover.Money   `yaml:"spot_price" json:"spot_price_nano_usd" doc:"the spot price per hour; default: price less spot_discount"`
	Market       drover.Market   `yaml:"market" json:"market" doc:"default: every market of the cloud"`
}

// StaticOptions specify how configured types become offerings.
type StaticOptions struct {
	Cloud    string
	Zones    []string
	Markets  []drover.Market
	Discount Percent          // for a type without a spot price
	Default  drover.Resources // for what a type does not set
	Price    drover.Money     // for a type without one
}

// StaticOfferings makes an offering of each configured type for each zone and market, sorted. A type without a name, an
// unknown market and a duplicate offering are KindInvalid.
func StaticOfferings(types []Type, l StaticOptions) (all []drover.Offering, err error) {
	if len(l.Zones) == 0 || len(l.Markets) == 0 {
		return nil, drover.Errorf(drover.KindInvalid, "zones and markets: at least one of each is needed")
	}
	for _, t := range types {
		if t.Name == "" {
			return nil, drover.Errorf(drover.KindInvalid, "types: a type has no name")
		}
		for _, market := range l.Markets {
			if market != drover.OnDemand && market != drover.Spot {
				return nil, drover.Errorf(drover.KindInvalid, "markets: %q is neither %s nor %s", market, drover.OnDemand, drover.Spot)
			}
			if t.Market != "" && t.Market != market {
				continue
			}
			for _, zone := range l.Zones {
				all = append(all, drover.Offering{Cloud: l.Cloud, Zone: zone, Type: t.instanceType(l.Default), Market: market, Price: l.price(t, market)})
			}
		}
	}
	driver.SortOfferings(all)
	for i := 1; i < len(all); i++ {
		if o, last := all[i], all[i-1]; o.Type.Name == last.Type.Name && o.Zone == last.Zone && o.Market == last.Market {
			return nil, drover.Errorf(drover.KindInvalid, "types: %s in zone %s, %s, is configured twice", o.Type.Name, o.Zone, o.Market)
		}
	}
	return slices.Clip(all), nil
}

// IsStatic reports whether the cloud's own type of that name is among the configured ones.
func IsStatic(types []Type, providerType string) bool {
	return slices.ContainsFunc(types, func(t Type) bool { return t.providerType() == providerType })
}

func (t Type) providerType() string { return cmp.Or(t.ProviderType, t.Name) }

func (t Type) instanceType(other drover.Resources) drover.InstanceType {
	return drover.InstanceType{
		Name:         t.Name,
		ProviderType: t.providerType(),
		Resources: drover.Resources{
			CPU:    cmp.Or(t.VCPUs, other.CPU),
			Memory: cmp.Or(t.Memory, other.Memory),
			Disk:   cmp.Or(t.Disk, other.Disk) + t.Scratch,
			GPUs:   cmp.Or(t.GPUs, other.GPUs),
			Arch:   cmp.Or(t.Arch, other.Arch),
		},
	}
}

func (l StaticOptions) price(t Type, m drover.Market) drover.Money {
	full := l.Price
	if t.Price != nil {
		full = *t.Price
	}
	switch {
	case m == drover.OnDemand:
		return full
	case t.SpotPrice != nil:
		return *t.SpotPrice
	}
	return full / 100 * drover.Money(100-l.Discount)
}

// MonthOfHours is the number of hours in a month for which clouds charge.
const MonthOfHours = 730

// PerHour returns the hourly price of a GiB of a volume: from the configured monthly price or, without one, the cloud's
// listed hourly price.
func PerHour(configured *drover.Money, listed drover.Money) drover.Money {
	if configured != nil {
		return *configured / MonthOfHours
	}
	return listed
}

// Percent is a whole number from 0 to 100.
type Percent int

// UnmarshalText reads "60%" or "60".
func (p *Percent) UnmarshalText(b []byte) error {
	n, err := strconv.Atoi(strings.TrimSuffix(string(b), "%"))
	if err != nil || n < 0 || n > 100 {
		return fmt.Errorf("%q is not a percentage (write, for example, 60%%)", b)
	}
	*p = Percent(n)
	return nil
}
