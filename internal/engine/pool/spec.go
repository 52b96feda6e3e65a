// Package pool says how many instances each pool should have in each zone, and which should go. It is pure: instances
// and capacity in, demands and releases out.
//
// The model: an instance counts unless it is going. Wanted is how many there should be. For a spare pool, that is the
// instances in use plus the spare ones. An instance that only one user's jobs may use is not spare: it goes when idle.
// Missing instances are demanded in the open place with the fewest; surplus ones are released from the place with the
// most. Outdated instances are replaced in steps: at most MaxUnavailable are missing meanwhile, and at most MaxSurge
// are beyond Wanted. Instances in places that no longer belong to the pool do not count, and go as others become ready.
//
// In a pool with a mix, a missing instance is requested on demand while too few are, unless no on-demand capacity is
// available. Within a place, the instances that the mix needs go last.
//
// A node group's autoscaler sets its number and chooses which instances to delete. This package releases only the
// outdated and too old ones.
//
// Stopped instances do not count toward Wanted. A stopped instance is started before a new one is demanded. If too few
// are stopped, more instances than Wanted are demanded, and an empty ready instance beyond Wanted is stopped. A stopped
// instance that was started for jobs counts neither as wanted nor as stopped while they use it.
//
// The invariants: a held instance is never released; nothing is demanded in a closed or exhausted place; equal inputs
// give equal plans; after a few plans have been carried out, the next one asks for nothing until something becomes
// ready, changes or reaches its maximum age.
package pool

import (
	"slices"
	"time"

	"drover"
)

// Spec is the configuration of a pool.
type Spec struct {
	Name   string            `json:"name"`
	Kind   drover.PoolKind   `json:"kind"`
	Count  int               `json:"count"`
	Ratio  int               `json:"ratio,omitempty"`  // of a spare pool: idle instances are at least this part of those in use, in hundredths of a percent
	Max    int               `json:"max,omitempty"`    // most instances of a spare or floor pool, or a node group; 0: no own limit
	Clouds []string          `json:"clouds"`           // at least one
	Zones  []string          `json:"zones,omitempty"`  // empty: all zones of its clouds
	Types  []string          `json:"types,omitempty"`  // type names; empty: any type that holds Need
	Need   drover.Resources  `json:"need,omitzero"`    // minimum of each instance
	Market drover.Market     `json:"market,omitempty"` // empty: either, according to Mix
	Mix    drover.Mix        `json:"mix,omitzero"`     // minimum on demand
	Spread drover.PoolSpread `json:"spread"`
	Disk   drover.Bytes      `json:"disk,omitempty"`
	Login  drover.PoolLogin  `json:"login"`
	Jobs   bool              `json:"jobs,omitempty"` // the queue may use its idle instances
	MaxAge time.Duration     `json:"max_age,omitempty"`

	Stopped int `json:"stopped,omitempty"` // how many are kept stopped, besides the size

	Budget      drover.Money  `json:"budget,omitempty"`       // of a node group: hourly limit for its instances together; 0: no own limit
	Min         int           `json:"min,omitempty"`          // likewise: reported to its autoscaler
	JoinTimeout time.Duration `json:"join_timeout,omitempty"` // likewise: time for a node to join its cluster

	CheckWithin time.Duration `json:"check_within,omitempty"` // time for the first pass of the controller's health check; 0: no check

	Cooldown  time.Duration `json:"cooldown"`            // how long an exhausted zone is avoided
	Rebalance bool          `json:"rebalance,omitempty"` // destroy ready instances to restore balance

	NamePrefix     string `json:"name_prefix,omitempty"` // of its instances' names in the cloud
	Template       string `json:"template"`              // hash of everything that determines what an instance of it is
	MaxUnavailable int    `json:"max_unavailable"`       // how many may be missing while instances are replaced
	MaxSurge       int    `json:"max_surge"`             // how many there may be beyond its size meanwhile

	UnavailablePart int `json:"unavailable_part,omitempty"` // instead of MaxUnavailable: this part of the wanted instances, in hundredths of a percent, at least one
	SurgePart       int `json:"surge_part,omitempty"`       // likewise, instead of MaxSurge
}

// wholeRatio is a Ratio of 100 %.
const wholeRatio = 100_00

// Share returns how many idle instances a spare pool's ratio demands while this many instances run jobs.
func (s *Spec) Share(inUse int) int { return (inUse*s.Ratio + wholeRatio - 1) / wholeRatio }

// Uses reports whether an offering suits the pool, wherever it is.
func (s *Spec) Uses(o drover.Offering) bool {
	if s.Market != "" && s.Market != o.Market || len(s.Types) > 0 && !slices.Contains(s.Types, o.Type.Name) {
		return false
	}
	return drover.Shape{Need: s.Need, Spot: drover.SpotPrefer}.Accepts(o)
}
