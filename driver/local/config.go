package local

import (
	"fmt"
	"net/netip"
	"time"

	"drover"
	"drover/driver"
)

// Config is the driver's part of the configuration.
type Config struct {
	Types        []typeConfig    `yaml:"types"`
	Zones        []string        `yaml:"zones"`
	Markets      []drover.Market `yaml:"markets"`
	SpotDiscount percent         `yaml:"spot_discount"` // of a type without a spot price; 60% if left out
	Faults       faultConfig     `yaml:"faults"`
}

// typeConfig is one instance type. What is left out is this host's.
type typeConfig struct {
	Name         string      `yaml:"name"`
	ProviderType string      `yaml:"provider_type"` // the name, if left out
	VCPUs        vcpus       `yaml:"vcpus"`
	Memory       size        `yaml:"memory"`
	Disk         size        `yaml:"disk"`
	GPUs         int         `yaml:"gpus"`
	Arch         drover.Arch `yaml:"arch"`
	Price        *price      `yaml:"price"`
	SpotPrice    *price      `yaml:"spot_price"`
}

// faultConfig asks the cloud to misbehave. Whatever is left to chance follows from the seed and the instance's name, or the
// number of the call, alone.
type faultConfig struct {
	Seed         uint64          `yaml:"seed"`
	BootDelay    time.Duration   `yaml:"boot_delay"`    // until SSH answers
	BootFailures float64         `yaml:"boot_failures"` // the fraction of instances whose SSH never answers
	SuddenDeath  time.Duration   `yaml:"sudden_death"`  // the mean lifetime, after which an instance dies by itself
	Quota        int             `yaml:"quota"`         // instances in the fleet
	Capacity     []shortage      `yaml:"capacity"`
	Latency      callDurations   `yaml:"latency"`
	ErrorRate    callFractions   `yaml:"error_rate"`
	Reclaim      reclaim         `yaml:"reclaim"`
	PowerOff     driver.PowerOff `yaml:"power_off"` // what powering itself off does to an instance: it ends, or it only stops
	Announce     netip.Addr      `yaml:"announce"`  // where instances are said to be; they listen on 127.0.0.1
}

// shortage is what the cloud is out of; an empty field means any, and for is counted from the opening of the cloud.
type shortage struct {
	Type   string        `yaml:"type"` // the cloud's own name of it
	Zone   string        `yaml:"zone"`
	Market drover.Market `yaml:"market"`
	For    time.Duration `yaml:"for"`
}

// reclaim has the cloud take instances back, as clouds do with spot instances.
type reclaim struct {
	After    time.Duration `yaml:"after"`    // so long after it was created an instance is told
	Notice   time.Duration `yaml:"notice"`   // and so much later it is taken
	Fraction float64       `yaml:"fraction"` // of the instances; all, if left out
}

type callDurations struct {
	Create  time.Duration `yaml:"create"`
	List    time.Duration `yaml:"list"`
	Destroy time.Duration `yaml:"destroy"`
}

type callFractions struct {
	Create  float64 `yaml:"create"`
	List    float64 `yaml:"list"`
	Destroy float64 `yaml:"destroy"`
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
		return fmt.Errorf("faults.announce: %v is not an address of this host's loopback, such as 127.0.0.2", f.Announce)
	}
	return nil
}

// The quantities are written as numbers or as text with a unit; both arrive here as text.
type (
	vcpus   drover.MilliCPU
	size    drover.Bytes
	price   drover.Money
	percent struct {
		value int64
		set   bool
	}
)

// UnmarshalText reads "2" or "0.5".
func (v *vcpus) UnmarshalText(b []byte) error {
	n, err := drover.ParseMilliCPU(string(b))
	*v = vcpus(n)
	return err
}

// UnmarshalText reads "16Gi".
func (s *size) UnmarshalText(b []byte) error {
	n, err := drover.ParseBytes(string(b))
	*s = size(n)
	return err
}

// UnmarshalText reads "0.25".
func (p *price) UnmarshalText(b []byte) error {
	n, err := drover.ParseMoney(string(b))
	*p = price(n)
	return err
}

// UnmarshalText reads "60%" or "60".
func (p *percent) UnmarshalText(b []byte) error {
	var rest string
	n, _ := fmt.Sscanf(string(b)+" ", "%d%s", &p.value, &rest)
	if n == 0 || rest != "" && rest != "%" || p.value < 0 || p.value > 100 {
		return fmt.Errorf("%q is not a percentage, such as 60%%", b)
	}
	p.set = true
	return nil
}
