package engine

import (
	"cmp"
	"slices"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/market"
)

// Package market knows what can be rented. This file tells it about instances, and acts on its results.

// What clouds offer, as the store and the shells use it.
type (
	Block        = market.Block
	Interruption = market.Interruption
	Throttle     = market.Throttle
	Catalogue    = market.Catalogue
	OfferingKey  = market.OfferingKey
)

// KeyOf returns an offering's key within its cloud.
func KeyOf(o drover.Offering) OfferingKey { return market.KeyOf(o) }

// Sorted returns a catalogue's offerings in the engine's order. It shares no memory with its argument.
func Sorted(all []drover.Offering) []drover.Offering { return market.Sorted(all) }

// Changes returns the difference between two Sorted catalogues of a cloud: new or changed offerings, and removed ones.
func Changes(was, now []drover.Offering) (changed []drover.Offering, removed []OfferingKey) {
	return market.Changes(was, now)
}

// followMarket configures the market with the configured clouds.
func (e *Engine) followMarket() {
	var all, enabled []*Catalogue
	for _, c := range e.clouds {
		all = append(all, &c.Catalogue)
	}
	for _, c := range e.enabled() {
		enabled = append(enabled, &c.Catalogue)
	}
	e.market.Configure(all, enabled)
}

// enabled returns the clouds in which instances may be rented.
func (e *Engine) enabled() []*Cloud {
	return slices.DeleteFunc(slices.Clone(e.clouds), func(c *Cloud) bool { return e.limits(c.Name).Leaving })
}

// keyOf returns the key of the instance's offering within its cloud.
func keyOf(in *fleet.Member) OfferingKey {
	return OfferingKey{Type: in.Type.Name, Zone: in.Zone, Market: in.Market}
}

// isOf reports whether the instance is of the offering.
func isOf(in *fleet.Member, o drover.Offering) bool {
	return in.Cloud == o.Cloud && keyOf(in) == KeyOf(o)
}

// offeringOf returns the instance as its cloud offers it.
func (e *Engine) offeringOf(in *fleet.Member) drover.Offering {
	if o, listed := e.listedAs(in); listed && !e.limits(in.Cloud).Leaving {
		return o
	}
	return in.Offering()
}

// blockTried blocks what the error covers; if capacity was short, each candidate that was tried.
func (e *Engine) blockTried(in *fleet.Member, tried int, err *drover.Error) {
	candidates := in.Candidates[:max(1, min(tried, len(in.Candidates)))]
	if err.Kind != drover.KindCapacity {
		candidates = candidates[:1]
	}
	for _, o := range candidates {
		e.blockRefused(in, o, err)
	}
}

// blockRefused blocks what an error about an offering covers. If capacity was short, fewer are requested at a time from
// now on.
func (e *Engine) blockRefused(in *fleet.Member, o drover.Offering, err *drover.Error) {
	if c := e.cloud(o.Cloud); e.block(in, market.BlockFor(o, err)) && err.Kind == drover.KindCapacity && c != nil {
		c.Throttle(o, e.asking(o), e.s.Now)
	}
}

// block starts a block because of what happened to an instance, and reports whether it did. It fires the hook for zones
// that are now exhausted.
func (e *Engine) block(in *fleet.Member, b Block) bool {
	began, exhausted := e.market.Add(b, in.ID)
	for _, zone := range exhausted {
		if in.Pooled() { // its pool reports it
			break
		}
		e.effect(Effect{Fire: &Fire{Hook: drover.HookExhausted, Cloud: b.Cloud, Zone: zone, Reason: e.market.Blocks()[len(e.market.Blocks())-1].Reason.Reason()}})
	}
	return began
}

// blockUnusable blocks the offering of an instance that never became usable: the next one would probably fail too, and
// cost as much.
func (e *Engine) blockUnusable(in *fleet.Member, why Verdict) {
	b := Block{Cloud: in.Cloud, Zone: in.Zone, Type: in.Type.Name, Market: in.Market}
	of := ""
	if in.Pooled() { // its image or boot probe may be to blame
		of = " of pool " + in.Pool
	}
	b.Reason = e.verdict(why.Cause, "instance %s%s never became usable: %s", in.Name, of, why.Text)
	e.block(in, b)
}

// interrupted counts an interruption, which may block the offering; not of an instance that is being destroyed, since a
// restarted driver may take that for one.
func (e *Engine) interrupted(in *fleet.Member) {
	if in.Market == drover.Spot && in.State != drover.InstanceStopping && e.market.Interrupted(in.ID, in.Name, in.Offering(), e.countRemaining(in)) {
		e.dropBlocked(in.Cloud)
	}
}

// countRemaining counts the instances of the same offering that are not being interrupted.
func (e *Engine) countRemaining(as *fleet.Member) (n int) {
	for _, in := range e.fleet.All() {
		alike := in.Cloud == as.Cloud && keyOf(in) == keyOf(as)
		if alike && in.Created != 0 && in.Reclaimed == nil && in.State != drover.InstanceStopping {
			n++
		}
	}
	return n
}

// blocksChanged requests a plan if blocks have changed.
func (e *Engine) blocksChanged(changed bool) { e.pending.Plan = e.pending.Plan || changed }

// endProbe ends an instance's probing of blocks, according to what became of it.
func (e *Engine) endProbe(in *fleet.Member) {
	e.blocksChanged(e.market.EndProbe(in.ID, e.offeringOf(in), in.Created != 0, in.State == drover.InstanceGone))
}

// billBegan returns when an instance's bill began; false if there is no such instance.
func (e *Engine) billBegan(id int64) (at drover.Time, there bool) {
	in := e.fleet.Member(id)
	if in == nil {
		return 0, false
	}
	return in.Created, true
}

// dropBlockedCandidates drops candidates that were blocked after the plan, and reports whether none is left. An
// instance that was already requested may exist, so it is requested again regardless of blocks; stale records may not
// know about the request.
func (e *Engine) dropBlockedCandidates(in *fleet.Member) bool {
	if in.Begun || !e.recordsCurrent() || len(e.market.Blocks()) == 0 {
		return false
	}
	left := slices.DeleteFunc(slices.Clone(in.Candidates), func(o drover.Offering) bool { return e.market.BlockFrom(o, in.ID) != nil })
	if len(left) == 0 || len(left) == len(in.Candidates) {
		return len(left) == 0
	}
	in.Become(left[0])
	e.chosen(in, left)
	e.writeInstance(in)
	return false
}

// dropBlocked gives up instances that were not requested yet and that the cloud would refuse too. Their work is planned
// for again.
func (e *Engine) dropBlocked(cloud string) {
	for _, in := range slices.Backward(slices.Clone(e.fleet.All())) {
		if in.Cloud == cloud && in.State == drover.InstanceCreating && !in.Held() && e.dropBlockedCandidates(in) {
			e.gone(in, e.market.BlockFrom(in.Candidates[0], in.ID).Reason)
		}
	}
}

// ease allows one more request at a time after a success, unless the request was older than the last shortage.
func (e *Engine) ease(in *fleet.Member) {
	c, o := e.cloud(in.Cloud), e.offeringOf(in)
	if c != nil && e.market.BlockFrom(o, in.ID) == nil {
		c.Ease(o, e.limits(c.Name).MaxCreating)
	}
}

// throttled reports whether an instance has to wait because enough requests for its offering are in flight, and how
// many may be.
func (e *Engine) throttled(in *fleet.Member) (most int, so bool) {
	c := e.cloud(in.Cloud)
	if c == nil || len(in.Candidates) == 0 {
		return 0, false
	}
	most, limited := c.AtOnce(in.Candidates[0])
	return most, limited && e.asking(in.Candidates[0]) >= most
}

func (e *Engine) waitsForThrottle(in *fleet.Member) bool {
	_, so := e.throttled(in)
	return so
}

// asking counts the create calls in flight whose first candidate is the offering.
func (e *Engine) asking(o drover.Offering) (n int) {
	for _, in := range e.fleet.Index().Creating {
		if in.State == drover.InstanceCreating && in.Call != 0 && in.Cloud == o.Cloud && len(in.Candidates) > 0 && KeyOf(in.Candidates[0]) == KeyOf(o) {
			n++
		}
	}
	return n
}

// limitsLeft returns what the limits within clouds leave now, for the caller to change; nil without limits.
func (e *Engine) limitsLeft() market.Limits {
	if !slices.ContainsFunc(e.s.Settings.Clouds, func(c CloudSettings) bool { return len(c.Limits) > 0 }) {
		return nil // saves the census
	}
	if fleet := e.fleet.Revision(); e.limitsCache.fleet != fleet || e.limitsCache.types != e.typesRevision {
		e.limitsCache = limitsLeft{fleet, e.typesRevision, e.takeLimits(e.fleet.Census())}
	}
	return slices.Clone(e.limitsCache.limits)
}

// limitsLeft is what remains of the limits, as of certain revisions of the fleet and the types.
type limitsLeft struct {
	fleet, types int
	limits       market.Limits
}

func (e *Engine) takeLimits(c *fleet.Census) market.Limits {
	left := e.allLimits()
	if len(left) == 0 {
		return nil
	}
	for _, in := range c.Creating {
		left.Take(1, e.countsAs(in)...)
	}
	for _, k := range c.Kinds {
		if !k.Creating() {
			left.Take(k.Len(), e.countsAs(k.One())...)
		}
	}
	return left
}

// allLimits returns the limits with nothing deducted.
func (e *Engine) allLimits() (left market.Limits) {
	for _, c := range e.s.Settings.Clouds {
		for _, l := range c.Limits {
			l.Cloud = c.Name
			left = append(left, l)
		}
	}
	return left
}

// countsAs returns the offerings that the instance counts as. If its type is no longer offered, its quota group is
// unknown, and it counts in all.
func (e *Engine) countsAs(in *fleet.Member) []drover.Offering {
	if len(in.Candidates) > 0 {
		return in.Candidates
	}
	o, listed := e.listedAs(in)
	if listed {
		return []drover.Offering{o}
	}
	o = in.Offering()
	all := []drover.Offering{o}
	for _, l := range e.limits(in.Cloud).Limits {
		if o.QuotaGroup = l.QuotaGroup; o.QuotaGroup != "" {
			all = append(all, o)
		}
	}
	return all
}

// whyPassed explains that one more instance of the offering would exceed a limit, since its last instance was
// requested; or that any would, since the limit was configured.
func (e *Engine) whyPassed(o drover.Offering) (Verdict, bool) {
	why, l := e.passedBy(e.limitsLeft(), o)
	if l == nil {
		return why, false
	}
	why.Since = cmp.Or(e.lastAsked(func(in *fleet.Member) bool { return slices.ContainsFunc(e.countsAs(in), l.Covers) }), e.s.Configured)
	return why, true
}

// passedBy explains which limit one more instance of the offering would exceed, given what is left; l is nil if none.
func (e *Engine) passedBy(left market.Limits, o drover.Offering) (why Verdict, l *drover.Limit) {
	if l = e.allLimits().Passed(o); l != nil {
		return e.verdict(drover.ReasonLimit, "a single instance would exceed %s; raise the limit", l.Name()), l
	}
	if l = left.Passed(o); l != nil {
		return e.verdict(drover.ReasonLimit, "one more instance would exceed %s; wait until an instance that counts against it is gone, or raise the limit", l.Name()), l
	}
	return why, nil
}
