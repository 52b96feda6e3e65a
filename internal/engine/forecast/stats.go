package forecast

import (
	"cmp"
	"slices"
	"time"

	"drover"
)

// Stats are the observed durations, sorted by key. The store restores those that follow from its records.
type Stats struct {
	Boots []Stat    `json:"boots,omitempty"` // from creation to ready, by cloud and type
	Calls []Stat    `json:"calls,omitempty"` // from the request for an instance to its creation, by cloud
	Gaps  []Gap     `json:"gaps,omitempty"`  // by shape and user
	Runs  []RunStat `json:"runs,omitempty"`  // run times, by key

	Delistings []Stat `json:"delistings,omitempty"` // from an accepted destroy call until lists lack the instance, by cloud
}

// Stat is a mean duration.
type Stat struct {
	Key   string        `json:"key"`
	Count int           `json:"count"` // number of observations
	Mean  time.Duration `json:"mean"`
	Last  drover.Time   `json:"last"` // latest observation
}

const (
	statsMost   = 200  // per kind; the entry not updated for longest is dropped for a new one
	gapKeysMost = 1000 // of gaps
	statWeight  = 4    // a new value counts for one in this many, once there are as many
)

// BootKey returns the key of a boot time.
func BootKey(cloud, instanceType string) string { return cloud + "/" + instanceType }

// See returns the statistics with one more duration. They are sorted by key and share no memory with the argument.
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

// stat returns the entry of a key, if any.
func stat(stats []Stat, key string) (Stat, bool) {
	place, known := slices.BinarySearchFunc(stats, key, compareStat)
	if !known {
		return Stat{}, false
	}
	return stats[place], true
}
