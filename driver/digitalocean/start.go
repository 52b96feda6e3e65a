package digitalocean

import (
	"context"

	"drover"
	"drover/driver"

	"github.com/digitalocean/godo"
)

// Stop powers a Droplet off. It costs as much as before.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return c.bring(ctx, id, "off", c.api.DropletActions.PowerOff)
}

// Start powers a Droplet on.
func (c *cloud) Start(ctx context.Context, id string) error {
	return c.bring(ctx, id, "active", c.api.DropletActions.PowerOn)
}

// bring brings a Droplet to a status, unless it has it: doing it again would be refused.
func (c *cloud) bring(ctx context.Context, id, status string, do func(context.Context, int) (*godo.Action, *godo.Response, error)) error {
	doing := "bringing " + id + " to be " + status
	n, ok := number(id)
	if !ok {
		return drover.Errorf(drover.KindNotFound, "%s: there is no such Droplet", doing)
	}
	d, _, err := c.api.Droplets.Get(ctx, n)
	if err != nil || d.Status == status {
		return errs.Classify(doing, err)
	}
	_, _, err = do(ctx, n)
	return errs.Classify(doing, err)
}

var _ driver.Starter = (*cloud)(nil)
