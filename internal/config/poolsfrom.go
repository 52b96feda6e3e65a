package config

import (
	"slices"
	"strings"
	"time"
)

// PoolsFrom is where to find the description of a pool that is not in the file.
type PoolsFrom struct {
	Cloud     string `yaml:"cloud,required" doc:"the cloud that has the attribute, which is read each time the cloud's instances are listed"`
	Attribute string `yaml:"attribute" doc:"the attribute's name; default: prevmtable; the environment variable PREVMTABLE_ATTRIBUTE overrides it"`
}

func (c *Config) checkPoolsFrom(f *faults) {
	name := c.PoolsFrom.Cloud
	if name != "" && !slices.Contains(c.CloudNames(), name) {
		f.addUnknown(c.root.find("pools_from", "cloud"), "there is no cloud "+quote(name), name, c.CloudNames())
	}
}

// WithPool returns the configuration with one more pool. The pool may use all clouds that have the same driver as the
// cloud which describes it. Listing is how often those clouds are listed; 0: unchanged.
func (c *Config) WithPool(p Pool, listing time.Duration) (*Config, error) {
	with := *c
	f := &faults{file: c.file}
	n := c.root.find("pools_from")
	if slices.ContainsFunc(c.Pools, func(other Pool) bool { return other.Name == p.Name }) {
		f.add(n, "pool "+quote(p.Name)+" already exists", "rename the pool in the file")
	}
	with.Clouds = slices.Clone(c.Clouds)
	driver := c.Cloud(c.PoolsFrom.Cloud).Driver
	p.Clouds = nil
	for i := range with.Clouds {
		if cl := &with.Clouds[i]; cl.Driver == driver {
			p.Clouds = append(p.Clouds, cl.Name)
			if listing > c.Instances.ProbeInterval {
				cl.ListInterval = listing
			}
		}
	}
	with.Pools = append(slices.Clone(c.Pools), p)
	slices.SortFunc(with.Pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	with.checkPool(f, n, p)
	return &with, f.err()
}
