package gce

import (
	"context"
	"path"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Destroy deletes an instance with its disks and address.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	return errs.Gone("destroy instance "+id, c.api.do(ctx, "instances.delete", id, nil, &resource{}))
}

// Stop stops an instance; its disks still cost money.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return errs.Classify("stop instance "+id, c.api.do(ctx, "instances.stop", id, nil, &resource{}))
}

// Start starts a stopped instance, if its zone has capacity.
func (c *cloud) Start(ctx context.Context, id string) error {
	return errs.Classify("start instance "+id, c.settle(ctx, "instances.start", id, nil))
}

// leftoverDisk is the only kind of leftover: a disk that somebody detached from its instance.
const leftoverDisk = "disk"

// Leftovers are the fleet's unattached disks in the region.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	filter, err := filterOf(map[string]string{driver.TagFleet: fleet})
	if err != nil {
		return nil, err
	}
	found, err := c.byZone(ctx, "disks.aggregatedList", filter)
	for _, d := range found {
		if len(d.Users) == 0 {
			all = append(all, driver.Leftover{Kind: leftoverDisk, ID: path.Base(d.Zone) + "/" + d.Name, Tags: labels.Read(d.Labels), Created: kit.ReadTime(d.CreationTimestamp)})
		}
	}
	return all, errs.Classify("list disks", err)
}

// Remove deletes a disk. A disk that is attached again stays.
func (c *cloud) Remove(ctx context.Context, l driver.Leftover) error {
	if l.Kind != leftoverDisk {
		return drover.Errorf(drover.KindInvalid, "this driver cannot remove leftover resources of type %s: %s", l.Kind, l.ID)
	}
	err := c.api.do(ctx, "disks.delete", l.ID, nil, &resource{})
	if errs.CodeOf(err) == "resourceInUseByAnotherResource" {
		return nil
	}
	return errs.Gone("remove "+l.Kind+" "+l.ID, err)
}
