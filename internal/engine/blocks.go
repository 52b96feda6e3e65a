package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
)

// What a cloud refused is left alone for a while. A lack of quota or capacity is not over because its time is: then one create of what the
// block covers goes first, its probe, and all others wait for the answer. If the cloud takes it, the block is forgotten; if it is refused
// for the same reason, the block begins anew, longer each time. Meeting a block that has not ended changes nothing.

const (
	blockTime = time.Minute      // how long an offering is left alone after the cloud refused it
	blockMost = 15 * time.Minute // and at most, after many failed probes; a block that nothing probed for as long is forgotten
)

// Covers reports whether the block is about the offering.
func (b Block) Covers(o drover.Offering) bool {
	return b.Cloud == o.Cloud && (b.Zone == "" || b.Zone == o.Zone) && (b.Type == "" || b.Type == o.Type.Name) &&
		(b.Market == "" || b.Market == o.Market) && (b.QuotaGroup == "" || b.QuotaGroup == o.QuotaGroup)
}

func (b Block) same(o Block) bool {
	return b.Cloud == o.Cloud && b.Zone == o.Zone && b.Type == o.Type && b.Market == o.Market && b.QuotaGroup == o.QuotaGroup
}

// bars reports whether the block keeps what it covers from being asked for, other than by its own probe.
func (b Block) bars(probe int64) bool { return !b.Over || b.Probe != 0 && b.Probe != probe }

// probed reports whether the end of such a block is tried with one create before others follow.
func (b Block) probed() bool {
	return b.Reason.Code == string(drover.KindQuota) || b.Reason.Code == string(drover.KindCapacity) || b.unstable()
}

// block leaves alone what the error covers: of a lack of capacity, each candidate that was tried, of which fewer at once are asked for
// from now on.
func (e *Engine) block(in *instance, tried int, err *drover.Error) {
	candidates := in.Candidates[:max(1, min(tried, len(in.Candidates)))]
	if err.Kind != drover.KindCapacity {
		candidates = candidates[:1]
	}
	for _, o := range candidates {
		if e.addBlock(blockFor(o, err), in.ID) && err.Kind == drover.KindCapacity {
			e.throttle(o)
		}
	}
}

// blockFor is what an error about an offering covers. One that is about the request itself covers that offering alone.
func blockFor(o drover.Offering, err *drover.Error) Block {
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
	b.Reason = drover.Reason{Code: string(err.Kind), Text: err.Message}
	return b
}

// leaveAlone blocks the offering of an instance that never became usable: the next one would hardly fare better, and costs as much.
func (e *Engine) leaveAlone(in *instance, why drover.Reason) {
	b := Block{Cloud: in.Cloud, Zone: in.Zone, Type: in.Type.Name, Market: in.Market}
	b.Reason = drover.Reason{Code: why.Code, Text: fmt.Sprintf("instance %s never became usable: %s", in.Name, why.Text)}
	e.addBlock(b, in.ID)
}

// addBlock begins a block because of what an instance met, and reports whether it did.
func (e *Engine) addBlock(b Block, instance int64) bool {
	b.Reason.Since = e.s.Now
	at := slices.IndexFunc(e.s.Blocks, b.same)
	switch {
	case at < 0:
		first, _ := b.pause()
		b.Reason.Until = e.s.Now.Add(first)
		before := e.s.Blocks
		e.s.Blocks = append(slices.Clip(before), b)
		e.exhausted(b, before)
	case e.s.Blocks[at].bars(instance) && !e.ran(e.s.Blocks[at]):
		return false
	default:
		b.Fails = e.s.Blocks[at].Fails + 1
		first, most := b.pause()
		b.Reason.Until = e.s.Now.Add(backoff(b.Fails+1, first, most))
		e.s.Blocks = slices.Clone(e.s.Blocks)
		e.s.Blocks[at] = b
	}
	e.blocked = true
	e.moved()
	return true
}

// ran reports whether a block's time is over and nothing has taken note of that yet.
func (e *Engine) ran(b Block) bool { return !b.Over && b.Reason.Until <= e.s.Now }

// exhausted runs the hook of each zone that has nothing left since a block: that is on the last offering there that had none.
func (e *Engine) exhausted(b Block, before []Block) {
	c := e.cloud(b.Cloud)
	if b.Reason.Code != string(drover.KindCapacity) || c == nil {
		return
	}
	var zones []string // that the block empties
	left := map[string]bool{}
	for _, o := range c.Offerings {
		switch {
		case blocked(before, o):
		case !b.Covers(o):
			left[o.Zone] = true
		case !slices.Contains(zones, o.Zone):
			zones = append(zones, o.Zone)
		}
	}
	for _, zone := range zones {
		if !left[zone] {
			e.effect(Effect{Fire: &Fire{Hook: drover.HookExhausted, Cloud: b.Cloud, Zone: zone, Reason: b.Reason}})
		}
	}
}

func blocked(blocks []Block, o drover.Offering) bool {
	return slices.ContainsFunc(blocks, func(b Block) bool { return b.Covers(o) })
}

// expireBlocks ends the blocks whose time has come. Of those that are probed, it forgets what nothing was probed of for long.
func (e *Engine) expireBlocks() {
	e.changeBlocks(func(b *Block) (keep bool) {
		switch {
		case b.Reason.Until > e.s.Now:
			return true
		case b.Over:
			if e.instance(b.Probe) == nil {
				b.Probe = 0
			}
			if at := e.calmAt(*b); at != 0 && at <= e.s.Now {
				return false
			}
			return b.Probe != 0 || b.Reason.Until.Add(blockMost) > e.s.Now
		}
		b.Over = true
		return b.probed()
	})
}

// unblockQuota ends the quota blocks that cover an instance which is gone.
func (e *Engine) unblockQuota(in *instance) {
	o := e.offeringOf(in)
	e.changeBlocks(func(b *Block) (keep bool) {
		if !b.Over && b.Reason.Code == string(drover.KindQuota) && b.Covers(o) {
			b.Over, b.Reason.Until = true, e.s.Now
		}
		return true
	})
}

// offeringOf is the instance as its cloud offers it.
func (e *Engine) offeringOf(in *instance) drover.Offering {
	if o, listed := e.listedAs(in); listed && !e.limits(in.Cloud).Leaving {
		return o
	}
	return in.offering()
}

// probe makes an instance that is asked for the probe of the blocks that are over and cover it.
func (e *Engine) probe(in *instance) {
	e.changeBlocks(func(b *Block) (keep bool) {
		if b.Over && b.Probe == 0 && slices.ContainsFunc(in.Candidates, b.Covers) {
			b.Probe = in.ID
		}
		return true
	})
}

// endProbe ends an instance's probing: the blocks that cover what it turned out to be, if it did, are forgotten. One for interruptions goes on
// being probed until the instance has lived for a while, or is gone.
func (e *Engine) endProbe(in *instance) {
	taken := e.offeringOf(in)
	e.changeBlocks(func(b *Block) (keep bool) {
		if b.Probe != in.ID || b.unstable() && in.Created != 0 && b.Covers(taken) && in.State != drover.InstanceGone {
			return true
		}
		b.Probe, b.Reason.Until = 0, max(b.Reason.Until, e.s.Now) // from when on nothing probes it
		return in.Created == 0 || !b.Covers(taken) || b.unstable()
	})
}

// changeBlocks changes blocks, or drops those that are not to be kept.
func (e *Engine) changeBlocks(change func(*Block) (keep bool)) {
	var kept []Block
	changed := false
	for _, was := range e.s.Blocks {
		b := was
		if !change(&b) {
			changed = true
			continue
		}
		changed = changed || b != was
		kept = append(kept, b)
	}
	if changed {
		e.s.Blocks = kept
		e.blocked, e.replan = true, true
		e.moved()
	}
}

// blockOf is the block that bars an offering longest, nil if none does.
func (e *Engine) blockOf(o drover.Offering) *Block { return e.blockFrom(o, 0) }

// blockFrom is the block that bars an offering longest from an instance that may be the probe of one.
func (e *Engine) blockFrom(o drover.Offering, probe int64) (longest *Block) {
	for i, b := range e.s.Blocks {
		if b.bars(probe) && b.Covers(o) && (longest == nil || b.Reason.Until > longest.Reason.Until) {
			longest = &e.s.Blocks[i]
		}
	}
	return longest
}

// barred drops those of an instance's candidates that were blocked since it was planned, and reports whether none is left. One that its
// cloud was already asked for may exist, so it is asked for again whatever is blocked; records that are in doubt may not know that it was.
func (e *Engine) barred(in *instance) bool {
	if in.Begun || !e.proved() || len(e.s.Blocks) == 0 {
		return false
	}
	left := slices.DeleteFunc(slices.Clone(in.Candidates), func(o drover.Offering) bool { return e.blockFrom(o, in.ID) != nil })
	if len(left) == 0 || len(left) == len(in.Candidates) {
		return len(left) == 0
	}
	in.Candidates = left
	in.become(left[0])
	e.fleet++
	e.writeInstance(in)
	return false
}

// dropBlocked gives up what a cloud has not been asked for yet and would refuse as well: what it was rented for is planned anew, with what may
// still be had.
func (e *Engine) dropBlocked(cloud string) {
	for _, in := range slices.Backward(slices.Clone(e.instances)) {
		if in.Cloud == cloud && in.State == drover.InstanceCreating && !in.held() && e.barred(in) {
			e.gone(in, e.blockFrom(in.Candidates[0], in.ID).Reason)
		}
	}
}

// nextBlock is when a block ends, or is forgotten, next; 0 for never.
func (e *Engine) nextBlock() (at drover.Time) {
	for _, b := range e.s.Blocks {
		switch {
		case !b.Over:
			at = sooner(at, b.Reason.Until)
		case b.Probe == 0:
			at = sooner(at, b.Reason.Until.Add(blockMost))
		default:
			at = sooner(at, e.calmAt(b))
		}
	}
	return at
}
