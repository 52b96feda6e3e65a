package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
)

// What has been seen often enough is expected again: how long a type boots, of which there is a mean in which what is new counts for more than
// what is old, so that it follows a change within a few times; and after how long work of a shape comes back (pauses.go).

// Habits are what has been seen, each by its key. They are observed: a store gives those back that it can tell from its records.
type Habits struct {
	Boots  []Habit `json:"boots,omitempty"`  // from an instance's creation to its being ready, by cloud and type
	Pauses []Pause `json:"pauses,omitempty"` // by shape
}

// Habit is how long one thing takes.
type Habit struct {
	Key   string        `json:"key"`
	Count int           `json:"count"` // how often it was seen
	Mean  time.Duration `json:"mean"`
	Last  drover.Time   `json:"last"` // when
}

const (
	habitsMost  = 200 // of a kind; what was not seen for longest is forgotten for what is new
	habitWeight = 4   // what is new counts for one in so many, once there were as many
)

// BootKey is the key of a boot.
func BootKey(cloud, instanceType string) string { return cloud + "/" + instanceType }

// See is the habits of a kind after something took so long once more. They are sorted by key and share no memory with those given.
func See(habits []Habit, key string, took time.Duration, at drover.Time) []Habit {
	all := slices.Clone(habits)
	place, known := slices.BinarySearchFunc(all, key, compareHabit)
	if !known {
		if len(all) >= habitsMost {
			oldest := slices.MinFunc(all, func(a, b Habit) int { return cmp.Compare(a.Last, b.Last) })
			all = slices.DeleteFunc(all, func(h Habit) bool { return h.Key == oldest.Key })
			place, _ = slices.BinarySearchFunc(all, key, compareHabit)
		}
		all = slices.Insert(all, place, Habit{Key: key})
	}
	h := &all[place]
	h.Count, h.Last = h.Count+1, at
	h.Mean += (took - h.Mean) / time.Duration(min(h.Count, habitWeight))
	return all
}

func compareHabit(h Habit, key string) int { return cmp.Compare(h.Key, key) }

// habit is the habit of a key, if there is one.
func habit(habits []Habit, key string) (Habit, bool) {
	place, known := slices.BinarySearchFunc(habits, key, compareHabit)
	if !known {
		return Habit{}, false
	}
	return habits[place], true
}

// booted learns how long an instance booted.
func (e *Engine) booted(in *instance) {
	if in.Begun && in.Created != 0 {
		e.s.Habits.Boots = See(e.s.Habits.Boots, BootKey(in.Cloud, in.Type.Name), e.s.Now.Sub(in.Created), e.s.Now)
		e.reboot()
	}
}

// shapeKey tells shapes apart.
func shapeKey(s drover.Shape) string {
	return fmt.Sprintf("%d %d %d %d %s %q %q %q %d %s", s.Need.CPU, s.Need.Memory, s.Need.Disk, s.Need.GPUs, s.Need.Arch, s.Placement.Cloud, s.Placement.Zone, s.Placement.Type, s.Placement.MaxPrice, s.Spot)
}
