package market

import (
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine/timers"
	"drover/internal/engine/verdict"
)

const (
	// BlockTime is how long an offering is blocked after the cloud refused it.
	BlockTime = time.Minute

	blockMost = 15 * time.Minute // the longest block, after many failed probes; one that nothing has probed for this long is forgotten
)

// Block keeps an offering from being requested until its end, and after that until one probe has succeeded. An empty
// field matches everything.
type Block struct {
	Cloud      string          `json:"cloud"`
	Zone       string          `json:"zone,omitempty"`
	Type       string          `json:"type,omitempty"`
	Market     drover.Market   `json:"market,omitempty"`
	QuotaGroup string          `json:"quota_group,omitempty"`
	Reason     verdict.Verdict `json:"reason"`          // its Until is the block's end
	Over       bool            `json:"over,omitempty"`  // its time has run out; one create request probes whether its cause is gone
	Probe      int64           `json:"probe,omitempty"` // the instance whose create request is the probe
	Fails      int             `json:"fails,omitempty"` // probes refused in a row
}

// Until is when the block runs out.
func (b Block) Until() drover.Time { return b.Reason.Until }

// ForQuota reports whether the cause is a lack of quota.
func (b Block) ForQuota() bool { return b.Reason.Cause == verdict.Quota }

// ForCapacity reports whether the cause is a lack of capacity.
func (b Block) ForCapacity() bool { return b.Reason.Cause == verdict.Capacity }

// ForInterruptions reports whether the cause is too many interruptions.
func (b Block) ForInterruptions() bool { return b.Reason.Cause == verdict.Interrupted }

// Covers reports whether the offering matches the block.
func (b Block) Covers(o drover.Offering) bool {
	return b.Cloud == o.Cloud && (b.Zone == "" || b.Zone == o.Zone) && (b.Type == "" || b.Type == o.Type.Name) &&
		(b.Market == "" || b.Market == o.Market) && (b.QuotaGroup == "" || b.QuotaGroup == o.QuotaGroup)
}

func (b Block) same(o Block) bool {
	return b.Cloud == o.Cloud && b.Zone == o.Zone && b.Type == o.Type && b.Market == o.Market && b.QuotaGroup == o.QuotaGroup
}

// bars reports whether the block forbids a request by an instance, other than by its probe.
func (b Block) bars(probe int64) bool { return !b.Over || b.Probe != 0 && b.Probe != probe }

// probed reports whether such a block ends with a probe.
func (b Block) probed() bool { return b.ForQuota() || b.ForCapacity() || b.ForInterruptions() }

// pause returns how long such a block lasts at first, and at most.
func (b Block) pause() (first, most time.Duration) {
	if b.ForInterruptions() {
		return unstableTime, unstableMost
	}
	return BlockTime, blockMost
}

// Subject names what the block covers, as CLOUD/ZONE/TYPE/MARKET, with * for a part that matches everything and
// quota=GROUP for the types of a quota group.
func (b Block) Subject() string {
	parts := []string{b.Cloud, b.Zone, b.Type, string(b.Market)}
	if b.QuotaGroup != "" {
		parts[2] = "quota=" + b.QuotaGroup
	}
	for i, p := range parts {
		if p == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// BlockFor returns the block for an error about an offering. An error about the request itself covers that offering
// alone.
func BlockFor(o drover.Offering, err *drover.Error) Block {
	exactly := Block{Cloud: o.Cloud, Zone: o.Zone, Type: o.Type.Name, Market: o.Market}
	b := Block{Cloud: o.Cloud, Market: err.Market}
	switch {
	case err.Kind == drover.KindAuthentication:
		b.Market = ""
	case err.Kind != drover.KindQuota && err.Kind != drover.KindCapacity, err.Scope == drover.ScopeType:
		b = exactly
	case err.Scope == drover.ScopeQuotaGroup && o.QuotaGroup != "":
		b.QuotaGroup = o.QuotaGroup
	case err.Scope == drover.ScopeQuotaGroup:
		b.Type, b.Market = o.Type.Name, o.Market
	case err.Scope == drover.ScopeSubnet, err.Scope == drover.ScopeZone:
		b.Zone = o.Zone
	}
	b.Reason = verdict.Verdict{Cause: verdict.Cause(err.Kind), Text: err.Explained()}
	return b
}

// Blocks lists all blocks. The slice belongs to the market.
func (m *Market) Blocks() []Block { return m.blocks }

// Changed reports whether blocks have changed since the last Taken.
func (m *Market) Changed() bool { return m.changed }

// Taken returns all blocks, to be stored. The slice is never nil.
func (m *Market) Taken() []Block {
	m.changed = false
	return append([]Block{}, m.blocks...)
}

// Add starts a block because of what happened to an instance. It reports whether it did, and the zones in which no
// unblocked offering is left.
func (m *Market) Add(b Block, instance int64) (began bool, exhausted []string) {
	b.Reason.Since = m.now
	at := slices.IndexFunc(m.blocks, b.same)
	switch {
	case at < 0:
		first, _ := b.pause()
		b.Reason.Until = m.now.Add(first)
		exhausted = m.exhausts(b)
		m.blocks = append(slices.Clip(m.blocks), b)
	case m.blocks[at].bars(instance) && !m.ran(m.blocks[at]):
		return false, nil
	default:
		b.Fails = m.blocks[at].Fails + 1
		first, most := b.pause()
		b.Reason.Until = m.now.Add(timers.Backoff(b.Fails+1, first, most))
		m.blocks = slices.Clone(m.blocks)
		m.blocks[at] = b
	}
	m.changed = true
	m.revision++
	return true, exhausted
}

// ran reports whether a block has run out and Expire has not seen it yet.
func (m *Market) ran(b Block) bool { return !b.Over && b.Until() <= m.now }

// exhausts lists the zones whose last unblocked offerings a new block would cover.
func (m *Market) exhausts(b Block) (zones []string) {
	at := slices.IndexFunc(m.all, func(c *Catalogue) bool { return c.Name == b.Cloud })
	if !b.ForCapacity() || at < 0 {
		return nil
	}
	left := map[string]bool{}
	for _, o := range m.all[at].Offerings {
		switch {
		case slices.ContainsFunc(m.blocks, func(b Block) bool { return b.Covers(o) }):
		case !b.Covers(o):
			left[o.Zone] = true
		case !slices.Contains(zones, o.Zone):
			zones = append(zones, o.Zone)
		}
	}
	return slices.DeleteFunc(zones, func(zone string) bool { return left[zone] })
}

// Created returns when an instance was created, 0 if it is not yet; false if there is no such instance.
type Created func(instance int64) (at drover.Time, there bool)

// Expire ends blocks that have run out, forgets those that nothing has probed for long, and reports whether any
// changed.
func (m *Market) Expire(created Created) (changed bool) {
	return m.change(func(b *Block) (keep bool) {
		switch {
		case b.Until() > m.now:
			return true
		case b.Over:
			if _, there := created(b.Probe); !there {
				b.Probe = 0
			}
			if at := calmAt(*b, created); at != 0 && at <= m.now {
				return false
			}
			return b.Probe != 0 || b.Until().Add(blockMost) > m.now
		}
		b.Over = true
		return b.probed()
	})
}

// Free ends the blocks with a cause that cover any of the offerings, so that one create request may probe them: for
// quota when an instance is gone, for capacity when a pool's cooldown of a zone is over.
func (m *Market) Free(of verdict.Cause, offers ...drover.Offering) (changed bool) {
	return m.change(func(b *Block) (keep bool) {
		if !b.Over && b.Reason.Cause == of && slices.ContainsFunc(offers, b.Covers) {
			b.Over, b.Reason.Until = true, m.now
		}
		return true
	})
}

// Probe makes a requested instance the probe of the expired blocks that cover what it may be.
func (m *Market) Probe(instance int64, mayBe []drover.Offering) (changed bool) {
	return m.change(func(b *Block) (keep bool) {
		if b.Over && b.Probe == 0 && slices.ContainsFunc(mayBe, b.Covers) {
			b.Probe = instance
		}
		return true
	})
}

// EndProbe ends an instance's probe. If it was created, the blocks that cover what it turned out to be are dropped; a
// block for interruptions is probed until the instance has lived for a while, or is gone.
func (m *Market) EndProbe(instance int64, is drover.Offering, created, gone bool) (changed bool) {
	return m.change(func(b *Block) (keep bool) {
		if b.Probe != instance || b.ForInterruptions() && created && b.Covers(is) && !gone {
			return true
		}
		b.Probe, b.Reason.Until = 0, max(b.Until(), m.now) // nothing probes it from now on
		return !created || !b.Covers(is) || b.ForInterruptions()
	})
}

// change applies a change to each block, drops those not to be kept, and reports whether any changed.
func (m *Market) change(change func(*Block) (keep bool)) (changed bool) {
	var kept []Block
	for _, was := range m.blocks {
		b := was
		if !change(&b) {
			changed = true
			continue
		}
		changed = changed || b != was
		kept = append(kept, b)
	}
	if changed {
		m.blocks, m.changed = kept, true
		m.revision++
	}
	return changed
}

// BlockOf returns the block that bars an offering longest; nil if none does.
func (m *Market) BlockOf(o drover.Offering) *Block { return m.BlockFrom(o, 0) }

// BlockFrom returns BlockOf for an instance that may be the probe.
func (m *Market) BlockFrom(o drover.Offering, probe int64) (longest *Block) {
	for i, b := range m.blocks {
		if b.bars(probe) && b.Covers(o) && (longest == nil || b.Until() > longest.Until()) {
			longest = &m.blocks[i]
		}
	}
	return longest
}

// Next returns when a block next ends or is forgotten; 0: never.
func (m *Market) Next(created Created) (at drover.Time) {
	for _, b := range m.blocks {
		switch {
		case !b.Over:
			at = sooner(at, b.Until())
		case b.Probe == 0:
			at = sooner(at, b.Until().Add(blockMost))
		default:
			at = sooner(at, calmAt(b, created))
		}
	}
	return at
}

// sooner returns the earlier of two times, of which 0 means never.
func sooner(a, b drover.Time) drover.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
