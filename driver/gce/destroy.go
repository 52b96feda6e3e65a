package gce

import (
	"context"
	"path"
	"strings"

	"drover"
	"drover/driver"
)

// Destroy deletes an instance; its disks and its address go with it.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	zone, name, err := split(id)
	if err != nil {
		return nil // nothing has such an id
	}
	_, err = c.api.delete(ctx, zone, name)
	return errs.Gone("destroy instance "+id, err)
}

// Stop stops an instance; its disks are still paid.
func (c *cloud) Stop(ctx context.Context, id string) error {
	zone, name, err := split(id)
	if err != nil {
		return err
	}
	_, err = c.api.stop(ctx, zone, name)
	return errs.Classify("stop instance "+id, err)
}

// Start starts an instance that was stopped, if its zone has room for it.
func (c *cloud) Start(ctx context.Context, id string) error {
	zone, name, err := split(id)
	if err != nil {
		return err
	}
	begun, err := c.api.start(ctx, zone, name)
	return errs.Classify("start instance "+id, c.settle(ctx, zone, begun, err))
}

// leftoverDisk is what can be left over: one that somebody took from its instance.
const leftoverDisk = "disk"

// Leftovers are the fleet's disks in the region that no instance has.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	filter, err := fleetFilter(fleet)
	if err != nil {
		return nil, err
	}
	found, err := c.api.disks(ctx, filter)
	if err != nil {
		return nil, errs.Classify("list disks", err)
	}
	for _, d := range found {
		if zone := path.Base(d.Zone); len(d.Users) == 0 && strings.HasPrefix(zone, c.config.Region+"-") {
			all = append(all, driver.Leftover{Kind: leftoverDisk, ID: zone + "/" + d.Name, Tags: labels.Read(d.Labels), Created: at(d.CreationTimestamp)})
		}
	}
	return all, nil
}

// Remove deletes a disk. One that an instance has again is in use, and stays.
func (c *cloud) Remove(ctx context.Context, s driver.Leftover) error {
	zone, name, err := split(s.ID)
	if s.Kind != leftoverDisk || err != nil {
		return drover.Errorf(drover.KindInvalid, "a %s %s is nothing that this cloud takes away", s.Kind, s.ID)
	}
	_, err = c.api.deleteDisk(ctx, zone, name)
	if errs.CodeOf(err) == "resourceInUseByAnotherResource" {
		return nil
	}
	return errs.Gone("take away "+s.Kind+" "+s.ID, err)
}
