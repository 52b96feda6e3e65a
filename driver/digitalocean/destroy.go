package digitalocean

import (
	"context"
	"errors"
	"strings"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
)

// Destroy deletes a Droplet with its disk and addresses, and then the tags that no other Droplet has. If it is
// interrupted, Leftovers finds the remaining tags.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	doing := "destroy instance " + id
	n, ok := number(id)
	if !ok {
		return nil // no Droplet ever had this id
	}
	ctx, err := c.gate.Prepay(ctx, anyRequest, 2+len(words.Single))
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
		if w, ours := words.Parse(word); ours && w.At != 0 {
			_, err := c.api.Tags.Delete(ctx, word)
			if err = errs.Gone(doing, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop powers a Droplet off. It still costs the same.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return c.bring(ctx, id, "off", c.api.DropletActions.PowerOff)
}

// Start powers a Droplet on.
func (c *cloud) Start(ctx context.Context, id string) error {
	return c.bring(ctx, id, "active", c.api.DropletActions.PowerOn)
}

// bring brings a Droplet to a status, unless it already has it: DigitalOcean refuses a repeated action.
func (c *cloud) bring(ctx context.Context, id, status string, do func(context.Context, int) (*godo.Action, *godo.Response, error)) error {
	doing := map[string]string{"off": "stop", "active": "start"}[status] + " instance " + id
	d, err := c.droplet(ctx, id)
	if err == nil && d.Status != status {
		_, _, err = do(ctx, d.ID)
	}
	return errs.Classify(doing, err)
}

// The kinds of leftover, in DigitalOcean's words.
const (
	leftoverTag = "tag"
	leftoverKey = "ssh_key"
)

// Leftovers lists the fleet's tags that no Droplet has, and its login keys. Future instances can use the keys, and the
// tags that instances have in common.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	tags, err := pages(ctx, c.api.Tags.List)
	err = errs.Classify("list tags", err)
	of := map[string]string{driver.TagFleet: fleet}
	for _, tag := range tags {
		if w, ours := words.Parse(tag.Name); ours && w.Fleet == fleet && !borne(tag) {
			all = append(all, driver.Leftover{Kind: leftoverTag, ID: tag.Name, Tags: of, Created: w.At, Shared: w.At == 0})
		}
	}
	keys, failed := pages(ctx, c.api.Keys.List)
	for _, key := range keys {
		if strings.HasPrefix(key.Name, words.OfFleet(fleet)+":") {
			all = append(all, driver.Leftover{Kind: leftoverKey, ID: key.Fingerprint, Tags: of, Shared: true})
		}
	}
	return all, errors.Join(err, errs.Classify("list login keys", failed))
}

// borne reports whether anything has a tag. If DigitalOcean does not report that, something may have it.
func borne(tag godo.Tag) bool { return tag.Resources == nil || tag.Resources.Count > 0 }

// Remove deletes a tag that nothing has, or a login key.
func (c *cloud) Remove(ctx context.Context, l driver.Leftover) error {
	switch l.Kind {
	case leftoverTag:
		return errs.Gone("remove tag "+l.ID, c.removeTag(ctx, l.ID))
	case leftoverKey:
		_, err := c.api.Keys.DeleteByFingerprint(ctx, l.ID)
		return errs.Gone("remove login key "+l.ID, err)
	}
	return drover.Errorf(drover.KindInvalid, "this driver cannot remove leftover resources of type %s", l.Kind)
}

func (c *cloud) removeTag(ctx context.Context, name string) error {
	tag, _, err := c.api.Tags.Get(ctx, name)
	if err != nil || tag == nil || borne(*tag) {
		return err
	}
	_, err = c.api.Tags.Delete(ctx, name)
	return err
}
