package local

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Config is the driver's part of the configuration. What a type leaves out is taken from this host.
type Config struct {
	Types        []kit.Type      `yaml:"types"`
	Zones        []string        `yaml:"zones"`
	Markets      []drover.Market `yaml:"markets"`
	SpotDiscount kit.Percent     `yaml:"spot_discount"` // for a type without a spot price
	Trusted      bool            `yaml:"trusted" doc:"whether instances may run jobs of several users, who can then do whatever the controller can"`
	Attributes   string          `yaml:"attributes" doc:"a folder whose files are the cloud's attributes, like the metadata of a project in other clouds"`
	Faults       faultConfig     `yaml:"faults"`
}

// Default is one type in one zone and market.
func (c *Config) Default() {
	*c = Config{Types: []kit.Type{{Name: defaultName}}, Zones: []string{defaultName}, Markets: []drover.Market{drover.OnDemand}, SpotDiscount: 60}
}

// FirstBoot returns what an instance can run at its first boot, and the most bytes of it.
func (Config) FirstBoot() (runs driver.Init, most int) { return driver.InitShell, 0 }

// Check finds what the types of the fields cannot. It does not use this host's own figures, since no error depends on
// them.
func (c *Config) Check() error {
	if err := c.Faults.check(); err != nil {
		return err
	}
	for _, t := range c.Types {
		if t.SpotPrice != nil && !slices.Contains(c.Markets, drover.Spot) {
			return drover.Errorf(drover.KindInvalid, "types: %s has a spot_price, but spot is not among the markets", t.Name).
				WithHint("write markets: [on_demand, spot]")
		}
	}
	_, err := kit.StaticOfferings(c.Types, kit.StaticOptions{Zones: c.Zones, Markets: c.Markets})
	return err
}

// faultConfig makes the cloud misbehave. Every random choice depends only on the seed and the instance's name or the
// number of the call.
type faultConfig struct {
	Seed         uint64                 `yaml:"seed"`
	BootDelay    time.Duration          `yaml:"boot_delay"`    // until SSH answers
	BootFailures float64                `yaml:"boot_failures"` // the fraction of instances whose SSH never answers
	SuddenDeath  time.Duration          `yaml:"sudden_death"`  // the mean lifetime, after which an instance dies by itself
	Quota        int                    `yaml:"quota"`         // instances in the fleet
	Capacity     []shortage             `yaml:"capacity"`
	Latency      perCall[time.Duration] `yaml:"latency"`
	ErrorRate    perCall[float64]       `yaml:"error_rate"`
	Reclaim      reclaim                `yaml:"reclaim"`
	PowerOff     driver.PowerOff        `yaml:"power_off"` // the effect of a power-off on an instance: it ends, or it only stops
	Announce     netip.Addr             `yaml:"announce"`  // the reported host of instances; they listen on 127.0.0.1
}

// shortage is what the cloud has run out of; an empty field means any, and the time For begins when the cloud is
// opened.
type shortage struct {
	Type   string        `yaml:"type"` // the cloud's own name for it
	Zone   string        `yaml:"zone"`
	Market drover.Market `yaml:"market"`
	For    time.Duration `yaml:"for"`
}

// reclaim makes the cloud take instances back, as clouds do with spot instances.
type reclaim struct {
	After    time.Duration `yaml:"after"`    // how long after its creation an instance gets the notice
	Notice   time.Duration `yaml:"notice"`   // how much later it is taken back
	Fraction float64       `yaml:"fraction"` // of the instances; default: all
}

type perCall[T any] struct {
	Create  T `yaml:"create"`
	List    T `yaml:"list"`
	Destroy T `yaml:"destroy"`
}

// check finds what the types of the fields cannot.
func (f faultConfig) check() error {
	for key, fraction := range map[string]float64{
		"boot_failures": f.BootFailures, "error_rate.create": f.ErrorRate.Create,
		"reclaim.fraction": f.Reclaim.Fraction, "error_rate.list": f.ErrorRate.List, "error_rate.destroy": f.ErrorRate.Destroy,
	} {
		if fraction < 0 || fraction > 1 {
			return fmt.Errorf("faults.%s: %v is not a fraction between 0 and 1", key, fraction)
		}
	}
	for key, d := range map[string]time.Duration{
		"boot_delay": f.BootDelay, "sudden_death": f.SuddenDeath,
		"reclaim.after": f.Reclaim.After, "reclaim.notice": f.Reclaim.Notice, "latency.create": f.Latency.Create, "latency.list": f.Latency.List, "latency.destroy": f.Latency.Destroy,
	} {
		if d < 0 {
			return fmt.Errorf("faults.%s: %v is negative", key, d)
		}
	}
	if f.PowerOff != "" && f.PowerOff != driver.PowerOffEnds && f.PowerOff != driver.PowerOffStops {
		return fmt.Errorf("faults.power_off: %q is neither %s nor %s", f.PowerOff, driver.PowerOffEnds, driver.PowerOffStops)
	}
	if f.Announce.IsValid() && !f.Announce.IsLoopback() {
		return fmt.Errorf("faults.announce: %v is not a loopback address of this host (write, for example, 127.0.0.2)", f.Announce)
	}
	return nil
}
