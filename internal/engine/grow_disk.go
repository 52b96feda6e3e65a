package engine

import (
	"fmt"
	"slices"

	"drover"
	"drover/internal/engine/budget"
	"drover/internal/engine/fleet"
)

// If an idle instance lacks only disk for waiting work and its cloud can grow volumes, its volume is grown instead of
// renting another instance. The work is reserved on it meanwhile, as on a booting one. The size is recorded before the
// cloud is asked, and counted in the price from then on. A call whose answer was lost is repeated; after a failure the
// instance is Rigid and another is rented. If the volume may have been grown nevertheless, it stays in the price.

// growVolumes grows volumes of idle instances for unplaced work, before new instances are planned for it.
func (e *Engine) growVolumes() {
	if !slices.ContainsFunc(e.s.Settings.Clouds, func(c CloudSettings) bool { return c.GrowDisk && !c.Leaving }) {
		return
	}
	for _, g := range e.groups {
		if g.Queued == 0 || g.netDemand() <= g.Unmet || g.Key.Gang > 0 { // coming work is not here yet
			continue
		}
		for _, in := range slices.Clone(e.fleet.Index().Idle) {
			if g.netDemand() > 0 {
				e.growVolumeFor(g, in)
			}
		}
	}
}

// growVolumeFor grows an instance's volume for as many of the group's jobs as then fit, if that is cost-effective and
// affordable.
func (e *Engine) growVolumeFor(g *group, in *fleet.Member) {
	o, listed := e.listedAs(in)
	if !in.Open() || in.Full() || !in.Serves(&g.demand) || in.Standby > 0 || in.GrowFailed != nil || in.Resources.Disk == 0 || in.Type.Resources.Disk != 0 || !listed || !e.limits(in.Cloud).GrowDisk {
		return
	}
	need, r := g.Key.Shape.Need, in.Resources
	r.Disk = need.Disk * drover.Bytes(g.netDemand())
	n := r.Times(need, in.AtOnce(g.mayReserve(in)))
	size := drover.Bytes((need.Disk * drover.Bytes(n)).WholeGiB()) * drover.GiB
	larger := in.Requestable()
	larger.Price = max(in.Price, e.withVolume(o, size).Price)
	if n <= 0 || need.Disk <= in.Resources.Disk || slices.Contains(in.Lost, g.Jobs[0].Number) || !g.Key.Shape.Accepts(larger) ||
		!e.worthGrowing(g, in, n, larger.Price) {
		return
	}
	in.Grow = size
	e.fleet.Revise(in)
	in.Room = in.Expanded()
	e.priceAnew(in)
	e.reserveFor(g, in, n)
	e.growDisk(in)
	e.writeInstance(in)
	e.note(Note{Level: Info, Text: fmt.Sprintf("growing the volume of instance %s from %s to %s", in.Name, in.Resources.Disk.Rounded(), size.Rounded()), Instance: in.Name, Cloud: in.Cloud})
	e.touch(in)
}

// worthGrowing reports whether n of the group's jobs are worth their room on the instance at the price of the larger
// volume, and affordable.
func (e *Engine) worthGrowing(g *group, in *fleet.Member, n int, price drover.Money) bool {
	dearer := *in
	dearer.Price = price
	if !e.atAnyCost(g, &dearer) && !e.cheaperTogether(g, in, n, dearer.Price) {
		return false
	}
	claim := e.claim(&dearer)
	p := budget.Commitment{On: &claim, Boots: e.maxBootLeft(in), Loads: loadsOf(wanted{g, n})}
	return !e.limited() || e.ledger.Refuses(nil, p) == nil
}

// listedAs returns the offering that the instance is of, if its cloud still offers it.
func (e *Engine) listedAs(in *fleet.Member) (o drover.Offering, listed bool) {
	c := e.cloud(in.Cloud)
	if c == nil {
		return o, false
	}
	return c.Find(keyOf(in))
}

// growDisk requests the growing of the volume.
func (e *Engine) growDisk(in *fleet.Member) {
	in.Growing = e.effect(Effect{GrowDisk: &GrowDisk{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID, Size: in.Grow}})
}

// retryGrowing repeats the request if no call is in flight: it was an earlier controller's.
func (e *Engine) retryGrowing(in *fleet.Member) {
	if in.Growing == 0 {
		in.Regrown = true
		e.growDisk(in)
	}
}

func (e *Engine) grown(b DiskGrown) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Growing) {
		return
	}
	in.Growing = 0
	if in.State == drover.InstanceStopping {
		return
	}
	e.dropAllReservations(in)
	if b.Err == nil {
		in.Free.Disk += in.Grow - in.Resources.Disk
		in.Resources.Disk, in.Grow = in.Grow, 0
	} else {
		e.giveUpGrowing(in, b.Err)
	}
	in.Room, in.Regrown = in.Resources, false
	e.fleet.Revise(in)
	e.priceAnew(in)
	e.pending.Place, e.pending.Plan = true, true
	e.writeInstance(in)
	e.touch(in)
}

// giveUpGrowing gives up growing the instance's volume. A refused size is not paid for, unless an earlier call may have
// grown it.
func (e *Engine) giveUpGrowing(in *fleet.Member, err *drover.Error) {
	why := e.verdict(Cause(err.Kind), "growing its volume to %s failed: %s", in.Grow.Rounded(), err.Explained())
	in.GrowFailed = &why
	if err.Kind != drover.KindTransient && !in.Regrown {
		in.Grow = 0
	}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s: %s", in.Name, why.Text), Instance: in.Name, Cloud: in.Cloud, Reason: new(why.Reason())})
}
