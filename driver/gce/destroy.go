package gce

import (
	"context"
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
