package config

import "time"

// check checks values against each other.
func (c *Config) check(f *faults) {
	if n := c.root.get("fleet"); n != nil && n.shape == scalar {
		if err := CheckFleet(c.Fleet); err != nil {
			f.addErr(n, err)
		}
	}
	if n := c.root.get("clouds"); n != nil && n.shape == mapping && len(n.entries) == 0 {
		f.add(n, "no clouds are configured", "write, for example, clouds: {here: {driver: local, max_instances: 4}}")
	}
	c.checkInstances(f)
	c.checkBudgets(f)
	c.checkScripts(f, c.root.find("hooks"), c.Hooks)
	c.checkPools(f)
	c.checkPoolsFrom(f)
	c.checkKubernetes(f)
	c.Notify.check(f, c.root.find("notify"))
	for _, cloud := range c.Clouds {
		c.checkCloud(f, cloud)
	}
}

// checkInstances checks that intervals are longer than what happens within them.
func (c *Config) checkInstances(f *faults) {
	i, n := &c.Instances, c.root.find("instances")
	positive := map[string]time.Duration{"boot_timeout": i.BootTimeout, "probe_interval": i.ProbeInterval, "probe_timeout": i.ProbeTimeout,
		"shutdown_timeout": i.ShutdownTimeout, "health_interval": i.HealthInterval}
	for key, d := range positive {
		if d <= 0 {
			f.addf(n.find(key), "%s must be greater than 0", key)
		}
	}
	if i.ProbeDeadline == 0 {
		i.ProbeDeadline = min(5*time.Second, i.ProbeInterval/2)
	}
	if i.ProbeInterval <= i.ProbeDeadline && i.ProbeInterval > 0 {
		f.addf(n.find("probe_deadline"), "probe_deadline (%v) must be shorter than probe_interval (%v): a probe must end before the next one begins", i.ProbeDeadline, i.ProbeInterval)
	}
	if i.ProbeTimeout <= i.ProbeInterval && i.ProbeTimeout > 0 {
		f.addf(n.find("probe_timeout"), "probe_timeout (%v) must be longer than probe_interval (%v): one unanswered probe must not be enough to consider an instance silent", i.ProbeTimeout, i.ProbeInterval)
	}
	if i.OrphanTimeout <= i.ProbeTimeout && i.OrphanTimeout != 0 {
		f.addf(n.find("orphan_timeout"), "orphan_timeout (%v) must be longer than probe_timeout (%v), or 0 for never: the controller must have time to give up on the instance first", i.OrphanTimeout, i.ProbeTimeout)
	}
}
