package gce

import (
	"context"

	"drover"
)

// Destroy deletes an instance; its disks and its address go with it.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	zone, name, err := split(id)
	if err != nil {
		return nil // nothing has such an id
	}
	_, err = c.api.delete(ctx, zone, name)
	if errs.KindOf(err) == drover.KindNotFound {
		return nil
	}
	return errs.Classify("destroy instance "+id, err)
}
