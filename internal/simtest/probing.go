package simtest

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// refusal is a create that was refused for lack of quota or capacity. Until a create that it covers has been accepted,
// only one may be in flight.
type refusal struct {
	scope  drover.Scope
	of     drover.Offering
	market drover.Market
	until  drover.Time    // when the controller may forget it
	flying map[int64]bool // creates since, by effect
}

// forgets is how long after the last try a controller may forget a refusal.
const forgets = 15 * time.Minute

// covers reports whether a refusal applies to an offering.
func (r *refusal) covers(o drover.Offering) bool {
	same := o.Cloud == r.of.Cloud && cmp.Or(r.market, o.Market) == o.Market
	switch r.scope {
	case drover.ScopeType:
		return same && o.Type.Name == r.of.Type.Name && o.Zone == r.of.Zone && o.Market == r.of.Market
	case drover.ScopeQuotaGroup:
		return same && o.Type.Name == r.of.Type.Name && o.Market == r.of.Market
	case drover.ScopeZone:
		return same && o.Zone == r.of.Zone
	}
	return same
}

// refused records a refusal. The controller's clock may have leapt since it was received.
func (c *controller) refused(b engine.CreateFailed, at drover.Time) {
	in, ok := c.w.Disk.instances[b.Instance]
	if !ok || c.calls[b.Effect] == "" || len(in.Candidates) == 0 || in.ProviderID != "" {
		return
	}
	switch b.Err.Kind {
	case drover.KindQuota, drover.KindCapacity:
	case drover.KindAuthentication: // this concerns the whole cloud, and the controller waits for it differently
		c.had(in.Candidates[0])
		return
	default:
		return
	}
	if was := c.w.blocked(in.Candidates[0]); was != nil && was.Reason.Cause != engine.Cause(b.Err.Kind) {
		return // it is blocked for another reason
	}
	c.refusals = slices.DeleteFunc(c.refusals, func(r *refusal) bool { return at >= r.until }) // a new refusal does not revive a forgotten one
	for _, r := range c.refusals {
		if r.covers(in.Candidates[0]) {
			r.until = at.Add(forgets)
			return
		}
	}
	c.refusals = append(c.refusals, &refusal{b.Err.Scope, in.Candidates[0], b.Err.Market, at.Add(forgets), map[int64]bool{}})
}

// had records that an offering is available again. It stands for its whole quota group, of which only the refused type
// is checked.
func (c *controller) had(o drover.Offering) {
	c.refusals = slices.DeleteFunc(c.refusals, func(r *refusal) bool {
		group := r.scope == drover.ScopeQuotaGroup && o.Cloud == r.of.Cloud && cmp.Or(r.market, o.Market) == o.Market && cmp.Or(o.QuotaGroup, r.of.QuotaGroup) == r.of.QuotaGroup
		return group || r.covers(o)
	})
}

// landed records that a create was answered.
func (c *controller) landed(effect int64) {
	delete(c.calls, effect)
	for _, r := range c.refusals {
		delete(r.flying, effect)
	}
}

// mayProbe checks that one create tries a refused offering before others follow.
func (c *controller) mayProbe(effect int64, f engine.Create) {
	if c.w.asked[f.Name] || c.w.begun[f.Name] != c {
		return // an instance that may exist, or that an earlier controller recorded as requested, is requested again despite refusals
	}
	c.w.asked[f.Name] = true
	for _, r := range c.refusals {
		if !r.covers(f.Candidates[0]) || c.now() >= r.until {
			continue
		}
		if len(r.flying) > 0 {
			c.w.fail("instance %s is created while another create tries whether what was refused can be had again", f.Name)
		}
		r.flying[effect] = true
	}
}

// mayOwn checks that a requested instance does not take its user over a limit. Adopted instances do not count.
func (w *World) mayOwn(in engine.Instance) {
	most, n, cpu := w.settings.Users, 0, drover.MilliCPU(0)
	if w.settings.Lifecycle.Sharing != drover.ShareUser {
		return
	}
	for _, o := range w.Disk.instances {
		if o.Owner == in.Owner && w.Disk.named(o.Name) && o.State != drover.InstanceStopping {
			n, cpu = n+1, cpu+o.Resources.CPU
		}
	}
	if most.Instances > 0 && n > most.Instances || most.VCPUs > 0 && cpu > most.VCPUs {
		w.fail("instance %s is the %dth of its user, who then has %v vCPUs, and %+v is allowed", in.Name, n, cpu, most)
	}
}

// mayAsk checks a fully written decision for newly requested instances: none of their candidates is blocked, unless the
// instance itself probes the block. A block by the same decision comes too late, as does one by another event of the
// same step.
func (w *World) mayAsk(writes []engine.Write, decided []drover.Time) {
	for i, wr := range writes {
		in := wr.Instance
		if in == nil || !in.Begun || w.begun[in.Name] != nil {
			continue
		}
		w.begun[in.Name] = w.controller
		if in.State != drover.InstanceCreating {
			continue
		}
		w.mayOwn(*in)
		for _, b := range w.Disk.blocks {
			bars := b.Reason.Until > w.controller.now() || b.Over && b.Probe != 0
			if bars && b.Probe != in.ID && b.Reason.Since < decided[i] && slices.ContainsFunc(in.Candidates, b.Covers) {
				w.fail("instance %s is asked for although %s is blocked: %s", in.Name, b.Subject(), b.Reason.Text)
			}
		}
	}
}
