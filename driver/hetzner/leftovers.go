package hetzner

import (
	"context"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"

	"drover"
	"drover/driver"
)

// leftoverKey is all that is left over: a key that logs in, which the fleet's instances share.
const leftoverKey = "ssh key"

// Leftovers are the fleet's keys.
func (c *cloud) Leftovers(ctx context.Context, fleet string) (all []driver.Leftover, err error) {
	keys, err := c.api.SSHKey.AllWithOpts(ctx, hcloud.SSHKeyListOpts{ListOpts: hcloud.ListOpts{LabelSelector: selector(map[string]string{driver.TagFleet: fleet})}})
	if err != nil {
		return nil, errs.Classify("list keys", err)
	}
	for _, k := range keys {
		all = append(all, driver.Leftover{
			Kind: leftoverKey, ID: strconv.FormatInt(k.ID, 10), Tags: labels.Read(k.Labels), Created: drover.TimeOf(k.Created), Shared: true,
		})
	}
	return all, nil
}

// Remove takes a key away.
func (c *cloud) Remove(ctx context.Context, s driver.Leftover) error {
	id, err := strconv.ParseInt(s.ID, 10, 64)
	if err != nil || s.Kind != leftoverKey {
		return drover.Errorf(drover.KindInvalid, "a %s is nothing that this cloud takes away", s.Kind)
	}
	_, err = c.api.SSHKey.Delete(ctx, &hcloud.SSHKey{ID: id})
	return errs.Gone("take away "+s.Kind+" "+s.ID, err)
}
