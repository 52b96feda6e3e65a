package fleet

import (
	"slices"

	"drover"
	"drover/internal/engine/queue"
)

// Attempt is the live attempt of a job, or of an element; nil if it has none.
func (f *Fleet) Attempt(id drover.JobID) *Attempt { return f.attempts[id] }

// Attempts is how many attempts are live.
func (f *Fleet) Attempts() int { return len(f.attempts) }

// Load adds a live attempt to an instance, and Unload takes it off. The room that it has there is Take's and Give's.
func (f *Fleet) Load(in *Member, a *Attempt) {
	f.attempts[a.ID.Job] = a
	at, _ := slices.BinarySearchFunc(in.Load, a.ID.Job, func(o *Attempt, id drover.JobID) int { return o.ID.Job.Compare(id) })
	in.Load = slices.Insert(in.Load, at, a)
}

func (f *Fleet) Unload(in *Member, a *Attempt) {
	delete(f.attempts, a.ID.Job)
	in.Load = slices.DeleteFunc(in.Load, func(o *Attempt) bool { return o == a })
}

// Take has something take room that is free, and Give gives it back.
func (in *Member) Take(need drover.Resources) { in.Free = in.Free.Minus(need, 1) }

func (in *Member) Give(need drover.Resources) { in.Free = in.Free.Plus(need, 1) }

// TakeSlot takes room for a member of a gang until others were placed, and Unseat gives it back, before the index is refreshed again.
func (in *Member) TakeSlot(need drover.Resources) {
	in.Take(need)
	in.slots++
}

func (in *Member) ReturnSlot(need drover.Resources) {
	in.Give(need)
	in.slots--
}

// Reserved is how many of a class's elements have room reserved on the instance.
func (in *Member) Reserved(class queue.Key) int {
	if at := in.reservation(class); at >= 0 {
		return in.Reservations[at].Count
	}
	return 0
}

func (in *Member) reservation(class queue.Key) int {
	return slices.IndexFunc(in.Reservations, func(r Reservation) bool { return r.Group == class })
}

// Reserve reserves room for n more of a class's elements, or for fewer.
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

// Unreserve ends all reservations on the instance, and returns them. What it was rented for is remembered.
func (in *Member) Unreserve() []Reservation {
	all := in.Reservations
	for _, r := range all {
		in.Room = in.Room.Plus(r.Group.Shape.Need, r.Count)
	}
	in.For, in.Reservations = all, nil
	return all
}
