package openstack

import (
	"context"
	"net/http"

	"drover"
	"drover/driver"
)

// Destroy deletes a server; its ports and its volume go with it.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := c.api.deleteServer(ctx, id)
	return errs.Gone("destroy instance "+id, err)
}

// Stop powers an instance off; it still counts against the quota, and most clouds bill it.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return errs.Classify("stop instance "+id, c.unless(ctx, id, driver.Stopped, c.api.stopServer(ctx, id)))
}

// Start powers it on again.
func (c *cloud) Start(ctx context.Context, id string) error {
	return errs.Classify("start instance "+id, c.unless(ctx, id, driver.Running, c.api.startServer(ctx, id)))
}

// unless is an error of a call that was to bring an instance to a state, unless it is in it: Nova refuses to do that again. And it finds
// nothing to do it with as long as it has not found a host, though the instance is there.
func (c *cloud) unless(ctx context.Context, id string, wanted driver.State, err error) error {
	status := errs.StatusOf(err)
	if status != http.StatusConflict && status != http.StatusNotFound {
		return err
	}
	s, missing := c.api.getServer(ctx, id)
	switch {
	case missing != nil:
		return missing
	case stateOf(*s) == wanted:
		return nil
	case status == http.StatusNotFound:
		return drover.Errorf(drover.KindTransient, "it is in the state %s, and no host has it yet", s.Status)
	}
	return err
}
