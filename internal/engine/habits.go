package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
)

// What has been seen often enough is expected again: how long a type boots, and after how long more work of a shape arrives. Of each there is
// a mean in which what is new counts for more than what is old, so that it follows a change within a few times.

// Habits are what has been seen, each by its key. They are observed: a store gives those back that it can tell from its records.
type Habits struct {
	Boots []Habit `json:"boots,omitempty"` // from an instance's creation to its being ready, by cloud and type
	Gaps  []Habit `json:"gaps,omitempty"`  // between two arrivals of work of one shape, however much it is
}

// Habit is how long one thing takes.
type Habit struct {
	Key   string        `json:"key"`
	Shape *drover.Shape `json:"shape,omitempty"` // that arrives
	Count int           `json:"count"`           // how often it was seen
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
	}
}

// arrived learns after how long work of a shape arrives again. The first time there is nothing to be learned but when it was.
func (e *Engine) arrived(s drover.Shape) {
	key := shapeKey(s)
	was, known := habit(e.s.Habits.Gaps, key)
	switch {
	case known && was.Last == e.s.Now: // it came together
		return
	case known:
		e.s.Habits.Gaps = See(e.s.Habits.Gaps, key, e.s.Now.Sub(was.Last), e.s.Now)
		return
	}
	e.s.Habits.Gaps = See(e.s.Habits.Gaps, key, 0, e.s.Now)
	place, _ := slices.BinarySearchFunc(e.s.Habits.Gaps, key, compareHabit)
	e.s.Habits.Gaps[place].Count, e.s.Habits.Gaps[place].Shape = 0, &s
}

// shapeKey tells shapes apart.
func shapeKey(s drover.Shape) string {
	return fmt.Sprintf("%d %d %d %d %s %q %q %q %s", s.Need.CPU, s.Need.Memory, s.Need.Disk, s.Need.GPUs, s.Need.Arch, s.Placement.Cloud, s.Placement.Zone, s.Placement.Type, s.Spot)
}
