package hetzner

import (
	"context"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
	"drover/driver/kit"
)

// Destroy deletes the server with its disk and addresses.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	server, err := serverOf(id)
	if err != nil {
		return ctx.Err()
	}
	_, _, err = c.api.Server.DeleteWithResult(ctx, server)
	return errs.Gone("destroy instance "+id, err)
}

// Stop requests a shutdown of the server. It still costs the same.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return c.turn(ctx, id, hcloud.ServerStatusOff, c.api.Server.Shutdown)
}

// Start turns the server on.
func (c *cloud) Start(ctx context.Context, id string) error {
	return c.turn(ctx, id, hcloud.ServerStatusRunning, c.api.Server.Poweron)
}

// turn brings the server to a status that it does not have yet.
func (c *cloud) turn(ctx context.Context, id string, to hcloud.ServerStatus, do func(context.Context, *hcloud.Server) (*hcloud.Action, *hcloud.Response, error)) error {
	doing := map[hcloud.ServerStatus]string{hcloud.ServerStatusOff: "stop", hcloud.ServerStatusRunning: "start"}[to] + " instance " + id
	server, err := c.server(ctx, id)
	if err == nil && server.Status != to {
		_, _, err = do(ctx, server)
	}
	return errs.Classify(doing, err)
}

// leftoverKey is the only kind of leftover: a login key that the fleet's instances share.
const leftoverKey = "ssh key"

// Leftovers are the fleet's keys.
func (c *cloud) Leftovers(ctx context.Context, fleet string) ([]driver.Leftover, error) {
	keys, err := pages(func(o hcloud.ListOpts) ([]*hcloud.SSHKey, *hcloud.Response, error) {
		o.LabelSelector = selector(map[string]string{driver.TagFleet: fleet})
		return c.api.SSHKey.List(ctx, hcloud.SSHKeyListOpts{ListOpts: o, Sort: oldestFirst})
	})
	return kit.Each(keys, func(k *hcloud.SSHKey) driver.Leftover {
		id := strconv.FormatInt(k.ID, 10)
		return driver.Leftover{Kind: leftoverKey, ID: id, Tags: labels.Read(k.Labels), Created: drover.TimeOf(k.Created), Shared: true}
	}), errs.Classify("list keys", err)
}

// Remove deletes a key.
func (c *cloud) Remove(ctx context.Context, l driver.Leftover) error {
	id, err := strconv.ParseInt(l.ID, 10, 64)
	if err != nil || l.Kind != leftoverKey {
		return drover.Errorf(drover.KindInvalid, "this driver cannot remove leftover resources of type %s", l.Kind)
	}
	_, err = c.api.SSHKey.Delete(ctx, &hcloud.SSHKey{ID: id})
	return errs.Gone("remove "+l.Kind+" "+l.ID, err)
}
