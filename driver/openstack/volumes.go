package openstack

import (
	"context"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"drover"
	"drover/driver"
)

// grows reports whether instances boot from volumes that can grow.
func (c *Config) grows() bool { return c.BootFrom == fromVolume && c.Grow }

// volumeExtending is the state of a volume while it grows.
const volumeExtending = "extending"

// GrowDisk extends the boot volume while it is in use. If the storage fails after Cinder has accepted the call, the
// instance never sees the new size.
func (c *cloud) GrowDisk(ctx context.Context, id string, size drover.Bytes) error {
	doing := "grow the volume of instance " + id
	s, err := c.api.getServer(ctx, id)
	if err != nil {
		return errs.Classify(doing, err)
	}
	client, err := c.api.volumes(ctx)
	if err != nil {
		return errs.Classify(doing, err)
	}
	root, err := rootOf(ctx, client, *s)
	if err != nil {
		return errs.Classify(doing, err)
	}
	gib := int(size.WholeGiB())
	if root.Size >= gib || root.Status == volumeExtending {
		return nil
	}
	return errs.Classify(doing, volumes.ExtendSize(ctx, client, root.ID, volumes.ExtendSizeOpts{NewSize: gib}).ExtractErr())
}

// rootOf returns an instance's boot volume: the only bootable one. A new instance may not have it yet.
func rootOf(ctx context.Context, client *gophercloud.ServiceClient, s servers.Server) (root *volumes.Volume, err error) {
	if stateOf(s) == driver.Stopping {
		return nil, drover.Errorf(drover.KindNotFound, "it is being deleted")
	}
	for _, attached := range s.AttachedVolumes {
		v, err := volumes.Get(ctx, client, attached.ID).Extract()
		switch {
		case err != nil:
			return nil, err
		case v.Bootable != "true":
		case root != nil:
			return nil, drover.Errorf(drover.KindUnsupported, "it has several bootable volumes")
		default:
			root = v
		}
	}
	switch {
	case root != nil:
		return root, nil
	case stateOf(s) == driver.Pending:
		return nil, drover.Errorf(drover.KindTransient, "it has no volume yet")
	}
	return nil, drover.Errorf(drover.KindUnsupported, "it does not boot from a volume")
}
