package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// What has been seen often enough is expected again: how long a type boots, of which there is a mean in which what is new counts for more than
// what is old, so that it follows a change within a few times; and after how long work of a shape comes back (gaps.go).

// Stats are what has been seen, each by its key. They are observed: a store gives those back that it can tell from its records.
type Stats struct {
	Boots []Stat    `json:"boots,omitempty"` // from an instance's creation to its being ready, by cloud and type
	Gaps  []Gap     `json:"gaps,omitempty"`  // by shape
	Runs  []RunStat `json:"runs,omitempty"`  // how long jobs run, by key
}

// Stat is how long one thing takes.
type Stat struct {
	Key   string        `json:"key"`
	Count int           `json:"count"` // how often it was seen
	Mean  time.Duration `json:"mean"`
	Last  drover.Time   `json:"last"` // when
}

const (
	statsMost  = 200 // of a kind; what was not seen for longest is forgotten for what is new
	statWeight = 4   // what is new counts for one in so many, once there were as many
)

// BootKey is the key of a boot.
func BootKey(cloud, instanceType string) string { return cloud + "/" + instanceType }

// See is the statistics of a kind after something took so long once more. They are sorted by key and share no memory with those given.
func See(stats []Stat, key string, took time.Duration, at drover.Time) []Stat {
	all := slices.Clone(stats)
	place, known := slices.BinarySearchFunc(all, key, compareStat)
	if !known {
		if len(all) >= statsMost {
			oldest := slices.MinFunc(all, func(a, b Stat) int { return cmp.Compare(a.Last, b.Last) })
			all = slices.DeleteFunc(all, func(h Stat) bool { return h.Key == oldest.Key })
			place, _ = slices.BinarySearchFunc(all, key, compareStat)
		}
		all = slices.Insert(all, place, Stat{Key: key})
	}
	h := &all[place]
	h.Count, h.Last = h.Count+1, at
	h.Mean += (took - h.Mean) / time.Duration(min(h.Count, statWeight))
	return all
}

func compareStat(h Stat, key string) int { return cmp.Compare(h.Key, key) }

// stat is that of a key, if there is one.
func stat(stats []Stat, key string) (Stat, bool) {
	place, known := slices.BinarySearchFunc(stats, key, compareStat)
	if !known {
		return Stat{}, false
	}
	return stats[place], true
}

// booted learns how long an instance booted.
func (e *Engine) booted(in *fleet.Member) {
	if in.Begun && in.Created != 0 {
		e.s.Stats.Boots = See(e.s.Stats.Boots, BootKey(in.Cloud, in.Type.Name), e.s.Now.Sub(in.Created), e.s.Now)
		e.noteBoot()
	}
}

// shapeKey tells shapes apart.
func shapeKey(s drover.Shape) string {
	return fmt.Sprintf("%d %d %d %d %s %q %q %q %d %s", s.Need.CPU, s.Need.Memory, s.Need.Disk, s.Need.GPUs, s.Need.Arch, s.Placement.Cloud, s.Placement.Zone, s.Placement.Type, s.Placement.MaxPrice, s.Spot)
}
