package daemon

import (
	"context"
	"os"

	"drover"
	"drover/internal/config"
)

// compare returns what would change if the configuration's file had another text. It changes nothing. It refuses what a
// reload would refuse, except what can only be found by opening a cloud.
func (d *daemon) compare(ctx context.Context, name string, text []byte) (diff drover.ConfigDiff, err error) {
	now := d.inUse.Load()
	_, dir := now.Source()
	c, err := config.Parse(name, text, dir)
	if err != nil {
		return diff, err
	}
	if err := d.Program.CheckKeys(c); err != nil {
		return diff, err
	}
	clouds := d.fleet.Controller.Clouds()
	if err := checkDrivers(c, clouds); err != nil {
		return diff, err
	}
	diff.Changes, diff.Restart = now.Changes(c), fixed(now, c)
	if kept, none := os.ReadFile(d.keptPool()); none == nil && c.PoolsFrom.Cloud != "" {
		if c, err = d.withDescribed(c, string(kept)); err != nil {
			return diff, err
		}
	}
	if err := checkBudget(ctx, c, clouds, d.Log); err != nil {
		return diff, err
	}
	diff.Fates, err = d.fleet.Controller.Foresee(ctx, Settings(inForce(c), RunLimits{}))
	return diff, err
}

// Compare returns what changes from one configuration to another. Without a controller nothing is known about
// instances.
func Compare(from, to *config.Config) drover.ConfigDiff {
	return drover.ConfigDiff{Changes: from.Changes(to), Restart: fixed(from, to)}
}
