package gce

import (
	"context"
	"path"
	"strings"

	"google.golang.org/api/compute/v1"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Destroy deletes an instance with its disks and address.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	_, err := about(ctx, c.api, "instances.delete", rateQueries, id, c.api.compute().Instances.Delete)
	return errs.Gone("destroy instance "+id, err)
}

// Stop stops an instance; its disks still cost money.
func (c *cloud) Stop(ctx context.Context, id string) error {
	_, err := about(ctx, c.api, "instances.stop", rateQueries, id, c.api.compute().Instances.Stop)
	return errs.Classify("stop instance "+id, err)
}

// Start starts a stopped instance, if its zone has room.
func (c *cloud) Start(ctx context.Context, id string) error {
	begun, err := about(ctx, c.api, "instances.start", rateQueries, id, c.api.compute().Instances.Start)
	return errs.Classify("start instance "+id, c.settle(ctx, begun, err))
}

// leftoverDisk is the only kind of leftover: a disk that somebody detached from its instance.
const leftoverDisk = "disk"

// Leftovers are the fleet's unattached disks in the region.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	filter, err := filterOf(map[string]string{driver.TagFleet: fleet})
	if err != nil {
		return nil, err
	}
	call := c.api.compute().Disks.AggregatedList(c.api.project).Filter(filter).MaxResults(pageSize).Fields(disksFields)
	read := func(p *compute.DiskAggregatedList) (some []*compute.Disk, next string, err error) {
		for _, scoped := range p.Items {
			some = append(some, scoped.Disks...)
		}
		return some, p.NextPageToken, whole(p.Unreachables)
	}
	found, err := list(ctx, c.api, "disks.aggregatedList", rateHeavy, call, read)
	if err != nil {
		return nil, errs.Classify("list disks", err)
	}
	for _, d := range found {
		if zone := path.Base(d.Zone); len(d.Users) == 0 && strings.HasPrefix(zone, c.config.Region+"-") {
			all = append(all, driver.Leftover{Kind: leftoverDisk, ID: zone + "/" + d.Name, Tags: labels.Read(d.Labels), Created: kit.ReadTime(d.CreationTimestamp)})
		}
	}
	return all, nil
}

// Remove deletes a disk. A disk that is attached again stays.
func (c *cloud) Remove(ctx context.Context, s driver.Leftover) error {
	if s.Kind != leftoverDisk {
		return drover.Errorf(drover.KindInvalid, "leftovers of kind %s cannot be removed in this cloud: %s", s.Kind, s.ID)
	}
	_, err := about(ctx, c.api, "disks.delete", rateQueries, s.ID, c.api.compute().Disks.Delete)
	if errs.CodeOf(err) == "resourceInUseByAnotherResource" {
		return nil
	}
	return errs.Gone("remove "+s.Kind+" "+s.ID, err)
}
