// Package market knows what clouds offer, and which offerings must not be requested now.
//
// The model: each cloud has a Catalogue of offerings, updated by differences. A Block keeps offerings from being
// requested for a while, because the cloud refused them or interrupts them too often. When a block for quota or
// capacity has expired, one create request goes first, the probe, and all others wait for its answer. A Throttle limits
// how many creates of one offering run at once. Limits are the operator's.
//
// The invariants: only its block's probe requests a blocked offering; adding a block that already holds changes
// nothing; every change of offerings or blocks raises Revision, so that caches of derived data can tell that they are
// stale.
package market

import (
	"slices"

	"drover"
)

// Market holds what can be rented. It is not safe for concurrent use: the engine's loop owns it.
type Market struct {
	now           drover.Time
	all           []*Catalogue // by cloud
	enabled       []*Catalogue // of the clouds in which instances may be rented
	blocks        []Block
	interruptions []Interruption // recent ones, by time
	offerings     []drover.Offering
	revision      int
	changed       bool // blocks changed since they were last taken
}

// New makes a market from its State.
func New(blocks []Block, interruptions []Interruption) *Market {
	return &Market{blocks: blocks, interruptions: interruptions}
}

// State returns what New takes. It shares no memory with the market.
func (m *Market) State() ([]Block, []Interruption) {
	return slices.Clone(m.blocks), slices.Clone(m.interruptions)
}

// Configure sets the catalogues of all clouds, and those of the clouds in which instances may be rented.
func (m *Market) Configure(all, enabled []*Catalogue) {
	m.all, m.enabled, m.offerings = all, enabled, nil
	m.revision++
}

// At sets the present time. It never decreases.
func (m *Market) At(now drover.Time) { m.now = now }

// Revision counts the changes of what may be rented, and for how much.
func (m *Market) Revision() int { return m.revision }

// Offerings lists every offering of the enabled clouds, blocked ones included. The slice is never changed.
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

// Complete reports whether the catalogue of every enabled cloud is known.
func (m *Market) Complete() bool {
	return len(m.enabled) > 0 && !slices.ContainsFunc(m.enabled, func(c *Catalogue) bool { return !c.Known })
}
