package openstack

import (
	"context"
	"net/http"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"drover"
	"drover/driver"
)

// Destroy deletes a server with its ports and its volume.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	return errs.Gone("destroy instance "+id, c.api.done(ctx, func(s *session) error {
		return ofNova(servers.Delete(ctx, s.compute, id).ExtractErr())
	}))
}

// Stop powers an instance off; it still counts against the quota, and some clouds bill it.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return errs.Classify("stop instance "+id, c.bring(ctx, id, driver.Stopped, func(s *session) error {
		return servers.Stop(ctx, s.compute, id).ExtractErr()
	}))
}

// Start powers it on again.
func (c *cloud) Start(ctx context.Context, id string) error {
	return errs.Classify("start instance "+id, c.bring(ctx, id, driver.Running, func(s *session) error {
		return servers.Start(ctx, s.compute, id).ExtractErr()
	}))
}

// bring makes a call that brings an instance to a state. Nova refuses the call if the instance is already in that
// state, which is not an error, and returns not found while the instance has no host yet. It starts only an instance
// that was powered off, not one that somebody shelved, paused or suspended, or that has failed.
func (c *cloud) bring(ctx context.Context, id string, wanted driver.State, call func(*session) error) error {
	err := c.api.done(ctx, call)
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
	case wanted == driver.Running && stateOf(*s) == driver.Stopped && s.Status != statusOff && s.TaskState == "":
		return drover.Errorf(drover.KindUnsupported, "it is in state %s, and Nova starts only servers in state %s", s.Status, statusOff)
	case status == http.StatusNotFound:
		return drover.Errorf(drover.KindTransient, "it is in state %s and does not have a host yet", s.Status)
	}
	return err
}
