// Package pool says how many instances of each pool there are to be in each zone, and which are to go. It is pure: instances and capacity in, demands
// and releases out.
package pool

import (
	"time"

	"drover"
)

// Spec is a pool as it is configured: which instances are to be kept.
type Spec struct {
	Name   string            `json:"name"`
	Kind   drover.PoolKind   `json:"kind"`
	Count  int               `json:"count"`
	Max    int               `json:"max,omitempty"`   // most instances of a spare or floor pool; 0: no limit of its own
	Clouds []string          `json:"clouds"`          // at least one
	Zones  []string          `json:"zones,omitempty"` // empty: all zones of its clouds
	Types  []string          `json:"types,omitempty"` // type names; empty: any type that holds Need
	Need   drover.Resources  `json:"need,omitzero"`   // what each instance has at least
	Market drover.Market     `json:"market"`
	Spread drover.PoolSpread `json:"spread"`
	Disk   drover.Bytes      `json:"disk,omitempty"`
	Login  drover.PoolLogin  `json:"login"`
	Jobs   bool              `json:"jobs,omitempty"` // the queue may use its idle instances
	MaxAge time.Duration     `json:"max_age,omitempty"`

	Cooldown  time.Duration `json:"cooldown"`            // for how long an exhausted zone is left alone
	Rebalance bool          `json:"rebalance,omitempty"` // destroy ready instances to restore balance

	Template       string `json:"template"`        // a hash of all that makes an instance of it what it is
	MaxUnavailable int    `json:"max_unavailable"` // how many may be missing while a changed template replaces instances
	MaxSurge       int    `json:"max_surge"`       // and how many there may be beyond its number
}
