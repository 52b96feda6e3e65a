package simtest

import (
	"time"

	"drover"
	"drover/internal/engine"
)

// gibPrice is the hourly price of a GiB of volume, in clouds where volumes can grow.
const gibPrice = drover.Dollar / 10_000

// growDisk grows an instance's volume. A call that times out may have taken effect.
func (c *controller) growDisk(effect int64, f engine.GrowDisk) {
	cl := c.w.cloud(f.Cloud)
	v, ev := cl.provided(f.ProviderID), engine.DiskGrown{Effect: effect, Instance: f.Instance}
	fails := c.w.happens(GrowFails)
	switch how := c.w.roll(3); {
	case cl.rages(Outage):
		ev.Err = drover.Errorf(drover.KindTransient, "no answer")
	case v == nil || !v.there():
		ev.Err = drover.Errorf(drover.KindNotFound, "no such instance")
	case fails && how == 0:
		ev.Err = drover.Errorf(drover.KindUnsupported, "volumes of that kind stay as they are")
	case fails && how == 1:
		ev.Err = drover.Errorf(drover.KindTransient, "not grown")
	default:
		v.disk = max(v.disk, f.Size)
		if fails {
			ev.Err = drover.Errorf(drover.KindTransient, "timed out")
		}
	}
	c.reply(time.Minute, ev)
}

// mayGrow checks that a volume's new size was first written down.
func (c *controller) mayGrow(f engine.GrowDisk) {
	in := c.w.Disk.instances[f.Instance]
	if in.Grow != f.Size || in.ProviderID != f.ProviderID || in.Resources.Disk >= f.Size {
		c.w.fail("the volume of %s is grown to %s, and it was not written down to be: it has %s, to become %s", f.Name, f.Size, in.Resources.Disk, in.Grow)
	}
}

// mayFill checks that an instance's volume holds what its attempts request, with one more attempt among them.
func (w *World) mayFill(v *vm, id drover.AttemptID) {
	if v.disk == 0 {
		return
	}
	asked := w.Disk.jobs[id.Job.Number].Shape.Need.Disk
	for _, r := range w.running {
		if r.vm == v {
			asked += w.Disk.jobs[r.id.Job.Number].Shape.Need.Disk
		}
	}
	if asked > v.disk {
		w.fail("attempt %v begins on %s, where %s of disk would be used, and the volume has %s", id, v.name, asked, v.disk)
	}
}

// volumePrice is the hourly price of an instance's volume beyond what the list price includes, at its present size or
// the size to which it may have been grown.
func (c *controller) volumePrice(in engine.Instance) drover.Money {
	for _, cl := range c.settings.Clouds {
		if cl.Name == in.Cloud && cl.GrowDisk && in.Type.Resources.Disk == 0 {
			return drover.Money(max(0, max(in.Resources.Disk, in.Grow)-cl.Disk).WholeGiB()) * gibPrice
		}
	}
	return 0
}

// glanceVolumes checks that no volume is larger than what is paid for, where the records cover it.
func (c *controller) glanceVolumes() {
	for _, in := range c.loop.Engine.Instances() {
		if v := c.w.vmOf(in); v != nil && in.Resources.Disk > 0 && v.disk > max(in.Resources.Disk, in.Grow) && !c.w.older {
			c.w.fail("the volume of %s has %s, and %s are paid", in.Name, v.disk, max(in.Resources.Disk, in.Grow))
		}
	}
}
