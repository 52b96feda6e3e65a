package digitalocean

import (
	"context"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
)

// Destroy deletes a Droplet; its disk and its addresses go with it, and then the words that no other bears. What is not done of the latter when
// it is interrupted, Leftovers finds.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	doing := "destroying " + id
	n, ok := number(id)
	if !ok {
		return nil // none ever had this id
	}
	ctx, err := c.gate.Prepay(ctx, anyRequest, 2+len(single))
	if err != nil {
		return errs.Classify(doing, err)
	}
	d, _, err := c.api.Droplets.Get(ctx, n)
	if err == nil {
		_, err = c.api.Droplets.Delete(ctx, n)
	}
	if err != nil || d == nil {
		return errs.Gone(doing, err)
	}
	for _, word := range d.Tags {
		if w, ours := tagOf(word); ours && w.at != 0 {
			_, err := c.api.Tags.Delete(ctx, word)
			if err = errs.Gone(doing, err); err != nil {
				return err
			}
		}
	}
	return nil
}

var _ driver.Cloud = (*cloud)(nil)

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
