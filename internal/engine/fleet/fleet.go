// Package fleet holds the instances that are not gone, and knows what may be done with each.
//
// The model: an Instance is the record of a virtual machine, from the decision to rent it until it is proved gone; its
// Observed part is what this controller has seen and the next controller must see for itself. A Member is an Instance
// with what follows from the rest of the State: its Policy, its Load of live attempts, and the room that these and its
// reservations leave. A Reservation keeps room for elements of one class on an instance that is on its way. The queue
// or a pool owns each instance; owner.go says what that implies. An instance that is gone is remembered for a while as
// Departed, since a lagging list may show it again.
//
// Work finds instances by the Index: lists of those that are ready, coming, idle and so on. It is updated when the
// caller reports a change with Changed, so the cost of a decision depends on what has changed, not on the size of the
// fleet. Questions about every waiting class are answered by the Census, which counts instances of one kind together
// and is updated when the caller reports a change with Revise.
//
// Clouds' lists lag, so lists.go says when one proves an instance gone. The package has no effects, no clock and no
// prices, and knows neither budgets nor the market. The engine drives each instance through its states.
//
// The invariants: IDs and names are unique. The Load's needs and Free add up to Resources, the reservations and Room to
// what the instance will have. An attempt is live on one instance. Index and Census equal ones built from scratch,
// which Check verifies.
package fleet

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/timers"
)

// Fleet is the instances that are not gone. It is not safe for concurrent use: the engine's loop owns it.
type Fleet struct {
	members  []*Member // by ID
	byName   map[string]*Member
	provided map[providerKey][]*Member // by ID: a cloud should give each another provider ID, but may not
	inCloud  map[string]int
	attempts map[drover.JobID]*Attempt // live
	departed []*Departed               // in the order they went
	shown    int                       // how many of them a list shows
	timers   timers.Timers
	index    Index
	census   Census
	revision int
}

// providerKey identifies an instance to its cloud. Those that a cloud has not accepted yet have an empty provider ID.
type providerKey struct{ cloud, id string }

// New makes an empty fleet with its departed instances.
func New(departed []*Departed) *Fleet {
	f := &Fleet{byName: map[string]*Member{}, provided: map[providerKey][]*Member{}, inCloud: map[string]int{}, attempts: map[drover.JobID]*Attempt{}, departed: departed}
	for _, d := range departed {
		f.countShown(d, 1)
	}
	return f
}

// State returns the fleet's part of the State. It shares no mutable memory with the fleet.
func (f *Fleet) State() (instances []Instance, attempts []Attempt, departed []*Departed) {
	for _, in := range f.members {
		c := in.Clone()
		c.Check = f.timers.At(in.ID)
		instances = append(instances, c)
		for _, a := range in.Load {
			attempts = append(attempts, *a)
		}
	}
	slices.SortFunc(attempts, func(a, b Attempt) int { return a.ID.Job.Compare(b.ID.Job) })
	return instances, attempts, slices.Clone(f.departed)
}

// Revision counts changes of which instances exist, what they are, and whether they may take work.
func (f *Fleet) Revision() int { return f.revision }

// Revise records such a change of an instance.
func (f *Fleet) Revise(in *Member) {
	f.revision++
	if !in.counted.revised {
		in.counted.revised = true
		f.census.revised = append(f.census.revised, in)
	}
}

// ReviseAll records that any instance may have changed.
func (f *Fleet) ReviseAll() {
	for _, in := range f.members {
		f.Revise(in)
	}
	f.revision++ // also of an empty fleet
}

// All returns the members, by ID. The slice belongs to the fleet and changes with it.
func (f *Fleet) All() []*Member { return f.members }

// Len returns the number of members.
func (f *Fleet) Len() int { return len(f.members) }

// In returns the number of members in a cloud.
func (f *Fleet) In(cloud string) int { return f.inCloud[cloud] }

// Add adds an instance with all of its resources free except for its reservations.
func (f *Fleet) Add(in *Member) {
	in.Free, in.Room = in.Resources, in.Expanded()
	for _, r := range in.Reservations {
		in.Room = in.Room.Minus(r.Group.Shape.Need, r.Count)
	}
	at, _ := f.at(in.ID) // one that was gone may return between others
	f.members = slices.Insert(f.members, at, in)
	f.byName[in.Name] = in
	f.addProvided(in)
	f.inCloud[in.Cloud]++
	f.Revise(in)
	f.Changed(in)
}

// Remove removes an instance that is gone.
func (f *Fleet) Remove(in *Member) {
	f.timers.Set(in.ID, 0)
	delete(f.byName, in.Name)
	f.removeProvided(in)
	if at, ok := f.at(in.ID); ok {
		f.members = slices.Delete(f.members, at, at+1)
		if f.inCloud[in.Cloud]--; f.inCloud[in.Cloud] == 0 {
			delete(f.inCloud, in.Cloud)
		}
	}
	f.revision++
	f.census.remove(in, len(f.members))
	f.Changed(in)
}

func (f *Fleet) at(id int64) (place int, ok bool) {
	return slices.BinarySearchFunc(f.members, id, func(in *Member, id int64) int { return cmp.Compare(in.ID, id) })
}

// Member returns the instance with an ID; nil if it does not exist or is gone.
func (f *Fleet) Member(id int64) *Member {
	at, ok := f.at(id)
	if !ok {
		return nil
	}
	return f.members[at]
}

// Named returns the instance with a name; nil if there is none.
func (f *Fleet) Named(name string) *Member { return f.byName[name] }

// ByProviderID returns the instance with a provider ID in a cloud; nil if there is none.
func (f *Fleet) ByProviderID(cloud, id string) *Member {
	if all := f.provided[providerKey{cloud, id}]; len(all) > 0 {
		return all[0]
	}
	return nil
}

// SetProviderID records a member's provider ID.
func (f *Fleet) SetProviderID(in *Member, id string) {
	f.removeProvided(in)
	in.ProviderID = id
	f.addProvided(in)
}

func (f *Fleet) addProvided(in *Member) {
	key := providerKey{in.Cloud, in.ProviderID}
	all := f.provided[key]
	at, _ := slices.BinarySearchFunc(all, in, ByID)
	f.provided[key] = slices.Insert(all, at, in)
}

func (f *Fleet) removeProvided(in *Member) {
	key := providerKey{in.Cloud, in.ProviderID}
	all := f.provided[key]
	if at, ok := slices.BinarySearchFunc(all, in, ByID); ok {
		if all = slices.Delete(all, at, at+1); len(all) == 0 {
			delete(f.provided, key)
		} else {
			f.provided[key] = all
		}
	}
}

// ForSighting returns the instance that a list shows: the one with its name, unless that has another ID because the
// cloud created two; nil if none is known.
func (f *Fleet) ForSighting(cloud string, s Sighting) *Member {
	in := f.byName[s.Name]
	if in != nil && (in.ProviderID == "" || in.ProviderID == s.ProviderID) {
		return in
	}
	return f.ByProviderID(cloud, s.ProviderID)
}

// CheckAt schedules an instance's next check; 0: never.
func (f *Fleet) CheckAt(in *Member, at drover.Time) { f.timers.Set(in.ID, at) }

// NextCheck returns when the instance is to be checked; 0: never.
func (f *Fleet) NextCheck(in *Member) drover.Time { return f.timers.At(in.ID) }

// FirstCheck returns when the first instance is to be checked; 0: never.
func (f *Fleet) FirstCheck() drover.Time { return f.timers.First() }

// Due dequeues an instance that is to be checked now; nil if there is none.
func (f *Fleet) Due(now drover.Time) *Member {
	if id := f.timers.Due(now); id != 0 {
		return f.Member(id)
	}
	return nil
}
