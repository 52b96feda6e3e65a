package daemon

import (
	"context"
	"fmt"
	"slices"

	"drover"
	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/config"
	"drover/internal/control"
)

// checkMoved refuses a cloud that lacks an instance which it lists as it was configured before, for example because its
// region has changed: the instance would count as gone while it runs, so that its jobs would run twice and nobody would
// ever destroy it. If it cannot be listed as before, nothing is refused, since the change may be what mends that.
func checkMoved(ctx context.Context, c *config.Config, before, now control.Cloud) error {
	tags := map[string]string{driver.TagFleet: c.Fleet}
	old, err := before.Driver.List(ctx, tags)
	old = slices.DeleteFunc(old, func(in driver.Instance) bool {
		return in.Tags[driver.TagFleet] != c.Fleet || in.State == driver.Stopping
	})
	if err != nil || len(old) == 0 {
		return nil
	}
	list, err := middleware.WithRetry(now.Driver).List(ctx, tags)
	if err != nil {
		return fmt.Errorf("clouds.%s: checking that it still has its instances: %w", now.Name, err)
	}
	for _, in := range old {
		if !slices.ContainsFunc(list, func(other driver.Instance) bool { return other.ID == in.ID }) {
			return c.Fault("clouds."+now.Name, fmt.Sprintf("as it is configured now, this cloud does not have instance %s, which it has as configured before", in.ID),
				"if this is another region or account, give it another name and leave the old one out: then its instances drain")
		}
	}
	return nil
}

// checkMovedTo checks the clouds that a reload opened.
func (d *daemon) checkMovedTo(ctx context.Context, c *config.Config, opened []control.Cloud) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	for _, now := range opened {
		for _, before := range d.fleet.clouds {
			if before.Name != now.Name {
				continue
			}
			if err := checkMoved(ctx, c, before, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMovedSince checks the clouds that have instances and whose configuration was edited while no controller ran.
func (d *daemon) checkMovedSince(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	recorded, err := d.fleet.Store.Instances(ctx, 0, drover.InstanceFilter{Limit: -1})
	if err != nil {
		return err
	}
	for _, cloud := range d.config.Clouds {
		before, err := d.folder.cloudLeft(cloud.Name)
		if err != nil || before.Same(cloud) || !slices.ContainsFunc(recorded, func(in drover.Instance) bool { return in.Cloud == cloud.Name }) {
			continue
		}
		old, err := OpenCloud(ctx, before, Opening{d.Program.Drivers, d.config.Fleet, d.folder.File("."), d.Log, nil})
		if err != nil {
			continue
		}
		err = checkMoved(ctx, d.config, old, d.cloud(cloud.Name))
		old.Driver.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
