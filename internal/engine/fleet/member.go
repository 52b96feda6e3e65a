package fleet

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"drover"
	"drover/internal/engine/queue"
	"drover/internal/engine/verdict"
)

// Member is an Instance of the fleet with what follows from the rest of the State.
type Member struct {
	Instance
	Policy
	Free    drover.Resources // what its live attempts leave
	Room    drover.Resources // what its reservations leave, while it is coming
	Load    []*Attempt       // live, by job and index
	Rated   Rate             // the rate at which its price was last looked up
	slots   int              // slots taken for a gang during a placement
	on      indexEntry       // its entry in the index
	counted counted          // how the census counts it
}

// Policy is the current configuration of an instance.
type Policy struct {
	Leaving bool           // its cloud is no longer configured
	NoJobs  bool           // its owner allows no jobs on it
	NoLogin bool           // nobody logs in to it: it is ready when its cloud says that it runs
	UseOnce bool           // it may be given one job
	Sharing drover.Sharing // whose jobs may share it
}

// Rate identifies what an instance's price depends on, apart from commitments: the market as of a revision.
type Rate struct {
	Revision   int
	Zone, Type string
	Market     drover.Market
	Volume     drover.Bytes
}

// Demand is what jobs of one shape and user need of an instance.
type Demand struct {
	Shape drover.Shape
	Owner string // the user's drover.OwnerMark
}

// Coming reports whether the instance is on its way to being ready, so that room on it may be reserved.
func (in *Member) Coming() bool {
	coming := in.State == drover.InstanceCreating || in.State == drover.InstanceBooting || in.State == drover.InstanceStopped && in.Waking
	return (coming || in.State == drover.InstanceIdle && in.Expanding()) && in.TakesWork()
}

// Open reports whether work may be started on the instance now.
func (in *Member) Open() bool {
	return in.State.Ready() && in.Connected && in.TakesWork() && len(in.Orphans) == 0 && !in.Expanding()
}

// TakesWork reports whether nothing but its state keeps work from the instance.
func (in *Member) TakesWork() bool {
	return in.Idle == drover.IdleRun && !in.Broken && !in.Leaving && in.Reclaimed == nil && in.Unhealthy == nil && !in.Aged && (!in.UseOnce || !in.Used)
}

// Serving reports whether the instance may get work, now or when it is ready.
func (in *Member) Serving() bool {
	return in.TakesWork() && in.State != drover.InstanceStopping && (in.State != drover.InstanceStopped || in.Waking)
}

// Rests reports whether the instance is stopped, so that only its volume is billed.
func (in *Member) Rests() bool { return in.StopAccepted && !in.Waking }

// Held reports whether an operator holds the instance: only a kill, or its cloud, ends it.
func (in *Member) Held() bool { return in.Idle == drover.IdleHold }

// Isolated reports whether jobs on the instance are isolated from each other, so that all users may share it.
func (in *Member) Isolated() bool { return in.Owner == drover.Everyones }

// TwinName returns the name of one of two instances that were created with the same name.
func TwinName(created, providerID string) string { return created + "." + providerID }

// CreatedName returns the name that the instance was created with, by which its runner knows it.
func (in *Member) CreatedName() string {
	return strings.TrimSuffix(in.Name, TwinName("", in.ProviderID))
}

// Serves reports whether the instance may run the demand's jobs, whatever room it has. An instance that belongs to a
// user stays so even if the configuration changes, and one that does not match the configuration runs no more jobs.
func (in *Member) Serves(d *Demand) bool {
	switch {
	case in.NoJobs:
		return false
	case in.Owner == d.Owner:
		return true
	case in.Sharing == drover.ShareUser:
		return in.Owner == "" && !in.Used
	case in.Sharing == drover.ShareEveryone:
		return in.Isolated()
	}
	return in.Owner == ""
}

// Mismatched reports whether the instance does not match the configuration's sharing, or a user whom it does not name may
// have used it: it runs no jobs, or only those of a user that it belonged to before.
func (in *Member) Mismatched() bool {
	if in.Sharing == drover.ShareEveryone {
		return !in.Isolated()
	}
	return in.Sharing == drover.ShareUser && (in.Isolated() || in.Owner == "" && in.Used)
}

// Accepts reports whether the demand's jobs may run on the instance when it is empty.
func (in *Member) Accepts(d *Demand) bool {
	if !in.allows(d) {
		return false
	}
	r := in.Expanded()
	if r.Disk == 0 {
		r.Disk = d.Shape.Need.Disk // like Shape.Accepts
	}
	return r.Fits(d.Shape.Need)
}

// Holds reports whether one of the demand's jobs can start on the instance now.
func (in *Member) Holds(d *Demand) bool { return in.Free.Fits(d.Shape.Need) && in.allows(d) }

// MayHold is Holds, but true if it depends on slots that are taken and may be returned.
func (in *Member) MayHold(d *Demand) bool {
	return (in.slots > 0 || in.Free.Fits(d.Shape.Need)) && in.allows(d)
}

func (in *Member) allows(d *Demand) bool {
	s := &d.Shape
	return in.Serves(d) && s.Placement.Allows(in.Cloud, in.Zone, in.Type.Name, in.Price) && s.Spot.Allows(in.Market)
}

// Full reports whether the instance may be given only one job and has it.
func (in *Member) Full() bool { return in.UseOnce && len(in.Load)+len(in.Reservations)+in.slots > 0 }

// AtOnce returns how many of n jobs the instance may be given together.
func (in *Member) AtOnce(n int) int {
	if in.UseOnce {
		return min(n, 1)
	}
	return n
}

// Better reports whether work is placed on this instance rather than on another: cheaper vCPUs first, then the fuller
// one.
func (in *Member) Better(than *Member) bool {
	return cmp.Or(in.comparePerCPU(than), cmp.Compare(in.Free.CPU, than.Free.CPU), cmp.Compare(in.Price, than.Price)) < 0
}

// comparePerCPU compares the price of a vCPU on two instances.
func (in *Member) comparePerCPU(with *Member) int {
	if in.Price == with.Price && in.Resources.CPU == with.Resources.CPU {
		return 0
	}
	aHigh, aLow := bits.Mul64(uint64(in.Price), uint64(with.Resources.CPU))
	bHigh, bLow := bits.Mul64(uint64(with.Price), uint64(in.Resources.CPU))
	return cmp.Or(cmp.Compare(aHigh, bHigh), cmp.Compare(aLow, bLow))
}

// Expanding reports whether the instance's volume is being grown.
func (in *Member) Expanding() bool { return in.Grow > in.Resources.Disk && in.GrowFailed == nil }

// Expanded returns the instance's resources once its volume is grown.
func (in *Member) Expanded() drover.Resources {
	r := in.Resources
	if in.Expanding() {
		r.Disk = in.Grow
	}
	return r
}

// Volume returns the size of the volume that is billed.
func (in *Member) Volume() drover.Bytes { return max(in.Resources.Disk, in.Grow) }

// Typeless reports whether the instance's resources are unknown, since its type was not offered when it was adopted.
func (in *Member) Typeless() bool {
	return in.Resources.CPU == 0 && in.State != drover.InstanceCreating
}

// Become makes the instance the candidate that the cloud chose.
func (in *Member) Become(o drover.Offering) {
	in.Zone, in.Type, in.Market = o.Zone, o.Type, o.Market
	if in.Created == 0 { // otherwise it is billed already, at a price that may have changed since
		in.Price = o.Price
	}
	in.Resize(o.Type.Resources)
}

// Resize gives the instance its type's resources; a type without a disk keeps the volume that was requested.
func (in *Member) Resize(r drover.Resources) {
	if r.Disk == 0 {
		r.Disk = in.Resources.Disk
	}
	used := in.Resources.Minus(in.Room, 1)
	in.Resources, in.Free, in.Room = r, r, r.Minus(used, 1)
}

// Offering returns the instance as an offering.
func (in *Member) Offering() drover.Offering {
	t := in.Type
	t.Resources = in.Resources
	return drover.Offering{Cloud: in.Cloud, Zone: in.Zone, Type: t, Market: in.Market, Price: in.Price}
}

// Requestable returns the instance as an offering with a volume of any size.
func (in *Member) Requestable() drover.Offering {
	o := in.Offering()
	o.Type.Resources.Disk = 0
	return o
}

// Offerings returns the offerings that the instance may turn out to be.
func (in *Member) Offerings() []drover.Offering {
	if len(in.Candidates) > 0 {
		return in.Candidates
	}
	return []drover.Offering{in.Offering()}
}

// Where describes the instance and its location for people.
func (in *Member) Where() string {
	return fmt.Sprintf("%s in %s %s, %s", in.Type.Name, in.Cloud, in.Zone, in.Market)
}

// Remark returns what people should know about the instance while it can be reached; nil if nothing.
func (in *Member) Remark() *verdict.Verdict {
	switch {
	case in.Reclaimed != nil:
		return in.Reclaimed
	case in.Unhealthy != nil:
		return in.Unhealthy
	}
	return in.IdleReason
}

// reclaimedWithin is how long after the notice an interruption is expected: longer than any cloud's notice. An instance
// that still runs then may never be interrupted, and a replacement would be paid for as long as its job takes.
const reclaimedWithin = 2 * time.Hour

// ReclaimedBy returns until when the interruption is expected; 0 if there was no notice.
func (in *Member) ReclaimedBy() drover.Time {
	if in.Reclaimed == nil {
		return 0
	}
	return in.Reclaimed.Since.Add(reclaimedWithin)
}

// Priority returns the highest priority of the reservations on the instance, -1 if there are none.
func (in *Member) Priority() int {
	most := -1
	for _, b := range in.Reservations {
		most = max(most, b.Group.Priority)
	}
	return most
}

// RentedFor returns for how many jobs of the class the instance was rented.
func (in *Member) RentedFor(class queue.Key) (n int) {
	for _, r := range in.For {
		if r.Group == class {
			n += r.Count
		}
	}
	return n
}
