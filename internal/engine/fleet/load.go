package fleet

import (
	"slices"

	"drover"
	"drover/internal/engine/queue"
)

// Attempt returns the live attempt of a job or element; nil if there is none.
func (f *Fleet) Attempt(id drover.JobID) *Attempt { return f.attempts[id] }

// Attempts returns the number of live attempts.
func (f *Fleet) Attempts() int { return len(f.attempts) }

// Load adds a live attempt to an instance; Unload removes it. Take and Give account for its room.
func (f *Fleet) Load(in *Member, a *Attempt) {
	f.attempts[a.ID.Job] = a
	at, _ := slices.BinarySearchFunc(in.Load, a.ID.Job, func(o *Attempt, id drover.JobID) int { return o.ID.Job.Compare(id) })
	in.Load = slices.Insert(in.Load, at, a)
}

func (f *Fleet) Unload(in *Member, a *Attempt) {
	delete(f.attempts, a.ID.Job)
	in.Load = slices.DeleteFunc(in.Load, func(o *Attempt) bool { return o == a })
}

// Take deducts from the free resources; Give adds to them.
func (in *Member) Take(need drover.Resources) { in.Free = in.Free.Minus(need, 1) }

func (in *Member) Give(need drover.Resources) { in.Free = in.Free.Plus(need, 1) }

// TakeSlot takes room for a gang's element during a placement; ReturnSlot returns it, before the index is refreshed.
func (in *Member) TakeSlot(need drover.Resources) {
	in.Take(need)
	in.slots++
}

func (in *Member) ReturnSlot(need drover.Resources) {
	in.Give(need)
	in.slots--
}

// Reserved returns how many of a class's elements have room reserved on the instance.
func (in *Member) Reserved(class queue.Key) int {
	if at := in.reservation(class); at >= 0 {
		return in.Reservations[at].Count
	}
	return 0
}

func (in *Member) reservation(class queue.Key) int {
	return slices.IndexFunc(in.Reservations, func(r Reservation) bool { return r.Group == class })
}

// Reserve adds n to a class's reservation; n may be negative.
func (in *Member) Reserve(class queue.Key, n int) {
	at := in.reservation(class)
	if at < 0 {
		at, in.Reservations = len(in.Reservations), append(in.Reservations, Reservation{Group: class})
	}
	if in.Reservations[at].Count += n; in.Reservations[at].Count == 0 {
		in.Reservations = slices.Delete(slices.Clone(in.Reservations), at, at+1)
	}
	in.Room = in.Room.Minus(class.Shape.Need, n)
}

// Unreserve ends and returns all reservations on the instance. What it was rented for is remembered in For.
func (in *Member) Unreserve() []Reservation {
	all := in.Reservations
	for _, r := range all {
		in.Room = in.Room.Plus(r.Group.Shape.Need, r.Count)
	}
	in.For, in.Reservations = all, nil
	return all
}
