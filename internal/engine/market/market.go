// Package market knows what clouds offer, and what of that is not to be asked for now.
//
// The model: each cloud has a Catalogue of offerings, which comes as what has changed of it. A Block leaves alone what a cloud refused, or what is taken back
// too often, for a while. A lack of quota or capacity is not over because its time is: then one create of what the block covers goes first, its
// probe, and all others wait for the answer. A Throttle limits how many creates of one offering are under way at once. Limits are what the operator allows.
//
// The invariants: an offering that any block bars is not asked for, but by the block's own probe; meeting a block that has not ended changes nothing; each
// change of what may be had raises Revision, which is how others know that what they worked out of it is stale.
package market

import (
	"slices"
	"time"

	"drover"
)

// Market is what there is to rent. It is not safe for concurrent use: the engine's loop owns it.
type Market struct {
	now           drover.Time
	all           []*Catalogue // by cloud, as configured
	enabled       []*Catalogue // of the clouds in which instances may be rented
	blocks        []Block
	interruptions []Interruption // of late, by time
	offerings     []drover.Offering
	revision      int
	changed       bool // blocks are not as they were written
}

// New is a market with what was known of it before.
func New(blocks []Block, interruptions []Interruption) *Market {
	return &Market{blocks: blocks, interruptions: interruptions}
}

// State is what the market was made with, as it is now. It shares no memory with it.
func (m *Market) State() ([]Block, []Interruption) {
	return slices.Clone(m.blocks), slices.Clone(m.interruptions)
}

// Configure has the market follow these catalogues, of which the enabled are rented from.
func (m *Market) Configure(all, enabled []*Catalogue) {
	m.all, m.enabled, m.offerings = all, enabled, nil
	m.revision++
}

// At is the time for all that follows. It never decreases.
func (m *Market) At(now drover.Time) { m.now = now }

// Revision is how often what may be rented, or for how much, has changed.
func (m *Market) Revision() int { return m.revision }

// Offerings is every offering of the enabled clouds, the blocked ones included. It is never changed.
func (m *Market) Offerings() []drover.Offering {
	if m.offerings == nil {
		all := []drover.Offering{}
		for _, c := range m.enabled {
			all = append(all, c.Offerings...)
		}
		m.offerings = slices.Clip(all)
	}
	return m.offerings
}

// Complete reports whether the offerings of every enabled cloud are known.
func (m *Market) Complete() bool {
	return len(m.enabled) > 0 && !slices.ContainsFunc(m.enabled, func(c *Catalogue) bool { return !c.Known })
}

// backoff is the delay before the n-th try in a row: first doubled each time, at most most.
func backoff(n int, first, most time.Duration) time.Duration {
	for ; n > 1 && first < most; n-- {
		first *= 2
	}
	return min(first, most)
}
