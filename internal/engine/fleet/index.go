package fleet

import (
	"cmp"
	"slices"

	"drover"
)

// Index lists the instances by what can be done with them. The lists are updated when an instance changes, so that a
// decision visits only the instances that matter to it.
type Index struct {
	Ready     []*Member // work may start there and vCPUs are free: most free vCPUs first, then oldest
	Roomy     []*Member // those of Ready with free memory; this and the other lists by ID
	Coming    []*Member // coming, so that work may be reserved there
	Reserved  []*Member // with reservations
	Unheard   []*Member // with free vCPUs, and not heard from since the controller started
	Creating  []*Member // requested from their cloud, or about to be
	Idle      []*Member
	Ending    []*Member
	Reclaimed []*Member // being interrupted, or holding room for attempts on such instances
	Unsettled []*Member // of which a list can say more than that they exist: not listed or located yet, stopped, or ending

	News  []*Member // those of Ready that have changed since the caller emptied it
	stale []*Member // changed since the last refresh
}

// indexEntry records an instance's places in the index.
type indexEntry struct {
	stale                                                      bool
	anew                                                       bool // its resources, or who may use them, have changed
	ready, coming, reserved, creating, idle, ending, reclaimed bool
	roomy, unheard, unsettled                                  bool
	free                                                       drover.MilliCPU // sort key in Ready
	seen                                                       int             // how often it was found changed
}

// Changed schedules a changed instance for the next refresh.
func (f *Fleet) Changed(in *Member) {
	in.on.anew = true
	f.Relist(in)
}

// Relist is Changed for an instance whose resources are as before, and so are those who may use them.
func (f *Fleet) Relist(in *Member) {
	if !in.on.stale {
		in.on.stale = true
		f.index.stale = append(f.index.stale, in)
	}
}

// Index returns the refreshed index. It must not be called while iterating over one of the lists.
func (f *Fleet) Index() *Index {
	r := &f.index
	for _, in := range r.stale {
		in.on.stale = false
		r.update(in)
	}
	r.stale = r.stale[:0]
	return r
}

// LastIndex returns the index as of the last refresh, for callers that iterate over one of its lists.
func (f *Fleet) LastIndex() *Index { return &f.index }

func (r *Index) update(in *Member) {
	there, on := in.State != drover.InstanceGone, &in.on
	ready := there && in.Open() && in.Free.CPU > 0
	if (ready || on.ready) && (on.anew || ready != on.ready || on.free != in.Free.CPU) {
		r.News = append(r.News, in)
		on.seen++
	}
	on.anew = false
	if on.ready && (!ready || on.free != in.Free.CPU) {
		at, _ := slices.BinarySearchFunc(r.Ready, in, ByFree)
		r.Ready, on.ready = slices.Delete(r.Ready, at, at+1), false
	}
	if ready && !on.ready {
		on.ready, on.free = true, in.Free.CPU
		at, _ := slices.BinarySearchFunc(r.Ready, in, ByFree)
		r.Ready = slices.Insert(r.Ready, at, in)
	}
	enter(&r.Roomy, &on.roomy, in, ready && (in.Free.Memory > 0 || in.slots > 0))
	enter(&r.Unheard, &on.unheard, in, in.State == drover.InstanceUnknown && in.TakesWork() && in.Free.CPU > 0)
	enter(&r.Coming, &on.coming, in, there && in.Coming())
	enter(&r.Reserved, &on.reserved, in, there && len(in.Reservations) > 0)
	enter(&r.Creating, &on.creating, in, there && (in.State == drover.InstanceCreating || len(in.Candidates) > 0))
	enter(&r.Idle, &on.idle, in, in.State == drover.InstanceIdle)
	enter(&r.Ending, &on.ending, in, in.State == drover.InstanceStopping)
	enter(&r.Reclaimed, &on.reclaimed, in, there && (in.Reclaimed != nil || in.Standby > 0))
	enter(&r.Unsettled, &on.unsettled, in, there && (!in.Listed || in.Unlocated || in.State == drover.InstanceStopping || in.State == drover.InstanceStopped))
}

// ByFree orders Ready, by the free vCPUs as of the last refresh.
func ByFree(a, b *Member) int {
	return cmp.Or(cmp.Compare(b.on.free, a.on.free), cmp.Compare(a.ID, b.ID))
}

// ByID orders the other lists.
func ByID(a, b *Member) int { return cmp.Compare(a.ID, b.ID) }

// enter adds an instance to a list or removes it.
func enter(roll *[]*Member, is *bool, in *Member, should bool) {
	if *is == should {
		return
	}
	*is = should
	at, _ := slices.BinarySearchFunc(*roll, in, ByID)
	if should {
		*roll = slices.Insert(*roll, at, in)
	} else {
		*roll = slices.Delete(*roll, at, at+1)
	}
}

// Changes counts how often the instance was found changed while ready.
func (in *Member) Changes() int { return in.on.seen }

// IsReady reports whether the index lists the instance as ready.
func (in *Member) IsReady() bool { return in.on.ready }
