package fleet

import (
	"cmp"
	"slices"

	"drover"
)

// Index are the instances that something may be done with, by what that is, each in an order of its own. They follow an instance when it changes,
// so that a decision looks at those that it concerns and not at all that there are.
type Index struct {
	Ready     []*Member // on which work may be begun, with vCPUs free: those with most of them first, of these the oldest
	Coming    []*Member // on their way, to which work may be bound; this and the others by ID
	Reserved  []*Member // to which some is
	Creating  []*Member // that their cloud was asked for, or will be
	Idle      []*Member
	Ending    []*Member
	Reclaimed []*Member // that their clouds take back, or whose room is kept for what runs on those
	Takers    int       // how many take work, now or once they can

	News  []*Member // those of Ready that have changed since this was last emptied
	stale []*Member // that have changed since it was refreshed
}

// indexEntry is where in the index an instance is.
type indexEntry struct {
	stale                                                      bool
	anew                                                       bool // what it has, or who may have it, has changed
	ready, coming, reserved, creating, idle, ending, reclaimed bool
	takes                                                      bool
	free                                                       drover.MilliCPU // its place among those that are ready
	seen                                                       int             // how often it was found changed
}

// Changed has an instance that has changed looked at when the index is refreshed next.
func (f *Fleet) Changed(in *Member) {
	in.on.anew = true
	f.HoldChanged(in)
}

// HoldChanged is Changed of an instance of which only that has changed whether room is kept on it.
func (f *Fleet) HoldChanged(in *Member) {
	if !in.on.stale {
		in.on.stale = true
		f.index.stale = append(f.index.stale, in)
	}
}

// Index is the index, brought up to what there is now. It is not to be called while one of the lists is gone through.
func (f *Fleet) Index() *Index {
	r := &f.index
	for _, in := range r.stale {
		in.on.stale = false
		r.update(in)
	}
	r.stale = r.stale[:0]
	return r
}

// LastIndex is the index as of when it was last brought up to date, for those who go through one of its lists.
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
	enter(&r.Coming, &on.coming, in, there && in.Coming())
	enter(&r.Reserved, &on.reserved, in, there && len(in.Reservations) > 0)
	enter(&r.Creating, &on.creating, in, there && (in.State == drover.InstanceCreating || len(in.Candidates) > 0))
	enter(&r.Idle, &on.idle, in, in.State == drover.InstanceIdle)
	enter(&r.Ending, &on.ending, in, in.State == drover.InstanceStopping)
	enter(&r.Reclaimed, &on.reclaimed, in, there && (in.Reclaimed != nil || in.Standby > 0))
	if takes := there && in.Serving(); takes != on.takes {
		on.takes = takes
		r.Takers += map[bool]int{false: -1, true: 1}[takes]
	}
}

// ByFree is the order of those that are ready, by what was free of them when they were enrolled.
func ByFree(a, b *Member) int {
	return cmp.Or(cmp.Compare(b.on.free, a.on.free), cmp.Compare(a.ID, b.ID))
}

// ByID is the order of all.
func ByID(a, b *Member) int { return cmp.Compare(a.ID, b.ID) }

// enter puts an instance on a roll or takes it off.
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

// Changes counts how often the instance, being ready, was found changed.
func (in *Member) Changes() int { return in.on.seen }

// IsReady reports whether the index has the instance as ready.
func (in *Member) IsReady() bool { return in.on.ready }
