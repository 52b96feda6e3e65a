package simtest

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine"
)

// refusal is a create that was refused for lack of quota or capacity: until another that it covers has been accepted,
// no two may be in flight.
type refusal struct {
	scope  drover.Scope
	of     drover.Offering
	market drover.Market
	until  drover.Time    // when it may be forgotten
	flying map[int64]bool // creates since, by effect
}

// forgets is after how long without a try a controller may have forgotten a refusal.
const forgets = 15 * time.Minute

// covers reports whether a refusal speaks of an offering.
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

// refused takes note of a refusal.
func (c *controller) refused(b engine.CreateFailed) {
	in, ok := c.w.Disk.instances[b.Instance]
	if !ok || c.calls[b.Effect] == "" || len(in.Candidates) == 0 || in.ProviderID != "" {
		return
	}
	switch b.Err.Kind {
	case drover.KindQuota, drover.KindCapacity:
	case drover.KindAuthentication: // which speaks of all the cloud has, and is waited for instead
		c.had(in.Candidates[0])
		return
	default:
		return
	}
	if was := c.w.blocked(in.Candidates[0]); was != nil && was.Reason.Cause != engine.Cause(b.Err.Kind) {
		return // it is left alone for another reason
	}
	c.refusals = slices.DeleteFunc(c.refusals, func(r *refusal) bool { return c.now() >= r.until }) // another does not bring it back
	for _, r := range c.refusals {
		if r.covers(in.Candidates[0]) {
			r.until = c.now().Add(forgets)
			return
		}
	}
	c.refusals = append(c.refusals, &refusal{b.Err.Scope, in.Candidates[0], b.Err.Market, c.now().Add(forgets), map[int64]bool{}})
}

// had takes note of an offering that can be had again. It speaks for its whole quota group, of which only the type that
// was refused is checked.
func (c *controller) had(o drover.Offering) {
	c.refusals = slices.DeleteFunc(c.refusals, func(r *refusal) bool {
		group := r.scope == drover.ScopeQuotaGroup && o.Cloud == r.of.Cloud && cmp.Or(r.market, o.Market) == o.Market && cmp.Or(o.QuotaGroup, r.of.QuotaGroup) == r.of.QuotaGroup
		return group || r.covers(o)
	})
}

// landed takes note of a create's answer.
func (c *controller) landed(effect int64) {
	delete(c.calls, effect)
	for _, r := range c.refusals {
		delete(r.flying, effect)
	}
}

// mayProbe checks that what was refused is tried by one create before others follow.
func (c *controller) mayProbe(effect int64, f engine.Create) {
	if c.w.asked[f.Name] || c.w.begun[f.Name] != c {
		return // what may exist, also because an earlier controller wrote down that it asks, is asked for again whatever was refused
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

// mayOwn checks that an instance that is asked for does not take its user over a limit, those that were adopted left
// out.
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

// mayAsk checks, once all of a decision is written, the instances that are asked for from now on: none of what they may
// become is blocked, but where they try themselves whether it still is. What is blocked by the same decision comes too
// late, and by one on what was taken in together with it.
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
