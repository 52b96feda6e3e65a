package daemon

import (
	"context"
	"fmt"
	"slices"

	"drover/driver"
	"drover/driver/middleware"
	"drover/internal/config"
	"drover/internal/control"
)

// checkMoved refuses a cloud that lacks an instance which it lists as it was configured before, for example because its
// region has changed: the instance would count as gone while it runs, so that its jobs would run twice and nobody would
// ever destroy it. If it cannot be listed as before, nothing is refused, since the change may be what mends that.
func checkMoved(ctx context.Context, c *config.Config, fleet string, before, now control.Cloud) error {
	old, err := running(ctx, fleet, before.Driver)
	if err != nil || len(old) == 0 {
		return nil
	}
	list, err := running(ctx, fleet, middleware.WithRetry(now.Driver))
	if err != nil {
		return fmt.Errorf("clouds.%s: checking that it still has its instances: %w", now.Name, err)
	}
	lost := slices.DeleteFunc(old, func(id string) bool { return slices.Contains(list, id) })
	if len(lost) == 0 {
		return nil
	}
	old, err = running(ctx, fleet, before.Driver) // without those destroyed meanwhile
	if err != nil {
		return nil
	}
	for _, id := range lost {
		if slices.Contains(old, id) {
			return c.Fault("clouds."+now.Name, fmt.Sprintf("the cloud lists instance %s with its earlier configuration, but not with this one", id),
				"restore the configuration of this cloud, and add the other region or account as another cloud")
		}
	}
	return nil
}

// running returns the provider's IDs of the fleet's instances in a cloud that are not being destroyed.
func running(ctx context.Context, fleet string, cloud driver.Cloud) (ids []string, err error) {
	list, err := cloud.List(ctx, map[string]string{driver.TagFleet: fleet})
	for _, in := range list {
		if in.Tags[driver.TagFleet] == fleet && in.State != driver.Stopping {
			ids = append(ids, in.ID)
		}
	}
	return ids, err
}

// checkReopened checks the clouds that a reload opened.
func (d *daemon) checkReopened(ctx context.Context, c *config.Config, opened []control.Cloud) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	for _, now := range opened {
		for _, before := range d.fleet.clouds {
			if before.Name != now.Name {
				continue
			}
			if err := checkMoved(ctx, c, c.Fleet, before, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckEdited checks the open clouds whose configuration was edited while no controller ran.
func CheckEdited(ctx context.Context, c *config.Config, clouds []control.Cloud, o Opening) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	for _, now := range clouds {
		before, err := cloudLeft(o.Folder, now.Name)
		if err != nil || slices.ContainsFunc(c.Clouds, before.Same) || o.Drivers[before.Driver].Open == nil {
			continue
		}
		old, err := OpenCloud(ctx, before, o)
		if err != nil {
			continue
		}
		err = checkMoved(ctx, c, o.Fleet, old, now)
		old.Driver.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
