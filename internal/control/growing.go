package control

import (
	"context"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/engine"
)

// growTimeout is how long growing a volume and its file system may take: EC2 may take minutes until the instance sees
// it.
const growTimeout = 10 * time.Minute

// growDisk asks the cloud to grow an instance's volume, then grows the file system on the instance.
func (c *Controller) growDisk(ctx context.Context, effect int64, f engine.GrowDisk) engine.Body {
	answer := engine.DiskGrown{Effect: effect, Instance: f.Instance}
	ctx, cancel := context.WithTimeout(ctx, growTimeout)
	defer cancel()
	if err := c.tryGrowDisk(ctx, f); err != nil {
		answer.Err = drover.AsError(err, drover.KindTransient)
	}
	return answer
}

func (c *Controller) tryGrowDisk(ctx context.Context, f engine.GrowDisk) error {
	cl, err := c.cloud(f.Cloud)
	if err != nil {
		return err
	}
	grower, can := driver.As[driver.DiskGrower](cl.own)
	if !can {
		return drover.Errorf(drover.KindUnsupported, "its cloud cannot grow volumes")
	}
	cl.own.Adopt(f.ProviderID)
	if err := grower.GrowDisk(ctx, f.ProviderID, f.Size); err != nil {
		return err
	}
	l := c.link(f.Instance)
	if l == nil {
		return drover.Errorf(drover.KindTransient, "the volume has grown, but the instance is not connected, so its file system cannot grow")
	}
	return l.conn.GrowRoot(ctx, f.Size)
}
