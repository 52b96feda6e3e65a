package azure

import (
	"context"
)

// Destroy ends an instance; its disks, its interface and its address go with it. Azure is told not to wait until it has shut down.
func (c *cloud) Destroy(ctx context.Context, id string) error {
	err := c.api.deleteVM(ctx, id)
	if err == nil {
		c.mu.Lock()
		c.ended[id] = true
		c.mu.Unlock()
	}
	return errs.Gone("destroy instance "+id, err)
}

// Stop stops an instance and gives its processors back; its disks and its address are still paid.
func (c *cloud) Stop(ctx context.Context, id string) error {
	return errs.Classify("stop instance "+id, c.api.deallocateVM(ctx, id))
}

// Start starts an instance that was stopped. Azure may have no room for it any more, which is then listed.
func (c *cloud) Start(ctx context.Context, id string) error {
	return errs.Classify("start instance "+id, c.api.startVM(ctx, id))
}
