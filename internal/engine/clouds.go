package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/market"
	"drover/internal/engine/timers"
)

const (
	offersInterval = time.Hour   // default interval between requests for a cloud's types and prices
	offersAgain    = time.Minute // until the next one, if jobs need a type that the last answer lacks
	soon           = 100 * time.Millisecond
)

// checkCloud requests a cloud's catalogue and list when they are due.
func (e *Engine) checkCloud(c *Cloud) {
	if c.OfferCall == 0 && c.NextOffer <= e.s.Now {
		c.OfferCall = e.effect(Effect{ListOfferings: &ListOfferings{Cloud: c.Name, Have: c.Hash}})
	}
	if c.ListCall == 0 && c.NextList <= e.s.Now {
		c.Began = e.s.Now
		c.ListCall = e.effect(Effect{ListInstances: &ListInstances{Cloud: c.Name}})
	}
}

// listSoon lists the cloud early because an instance is expected to appear or go. Each time in a row, it waits longer.
func (e *Engine) listSoon(c *Cloud) {
	if c == nil {
		return
	}
	at := e.s.Now
	if c.Hurry > 0 {
		at = at.Add(timers.Backoff(c.Hurry, soon, e.limits(c.Name).ListInterval))
	}
	e.listBy(c, at)
}

// listDestroyed lists the cloud when a destroyed instance is expected to be missing: on some clouds a minute later.
func (e *Engine) listDestroyed(in *fleet.Member) {
	c := e.cloud(in.Cloud)
	if c == nil {
		return
	}
	if at := e.delistedAt(in); at > e.s.Now {
		e.listBy(c, at)
		return
	}
	c.Hurry = 0
	e.listSoon(c)
}

// delistedAt returns when lists are expected to lack an instance whose destruction was accepted; 0 if unknown.
func (e *Engine) delistedAt(in *fleet.Member) drover.Time {
	if !in.Accepted || in.State != drover.InstanceStopping {
		return 0
	}
	if after, known := e.forecast.Delisting(in.Cloud); known {
		return in.Known.Add(after)
	}
	return 0
}

// listBy lists the cloud no later than a given time.
func (e *Engine) listBy(c *Cloud, at drover.Time) {
	c.NextList = max(c.NoList, min(c.NextList, max(at, e.s.Now, c.Began.Add(soon))))
}

func (e *Engine) offered(b Offered) {
	c := e.cloud(b.Cloud)
	if c == nil || !answers(b.Effect, c.OfferCall) {
		return
	}
	c.OfferCall = 0
	if b.Err != nil {
		c.Fails++
		c.Mute = e.repeatedFailure(c.Mute, drover.ReasonCatalogue, b.Err)
		c.NextOffer = max(b.Err.RetryAt, e.s.Now.Add(timers.Backoff(c.Fails, time.Second, 5*time.Minute)))
		e.note(Note{Level: Warn, Text: fmt.Sprintf("fetching the instance types of cloud %s failed: %s", c.Name, b.Err.Explained()), Cloud: c.Name, Reason: failure(b.Err)})
		return
	}
	c.Fails, c.Mute = 0, Verdict{}
	c.NextOffer = e.s.Now.Add(cmp.Or(e.limits(c.Name).OffersInterval, offersInterval))
	missed := len(c.Missing) > 0
	news, askAgain := e.market.Revise(&c.Catalogue, market.Update{Base: b.Base, Hash: b.Hash, Offerings: b.Offerings, Removed: b.Removed})
	if askAgain {
		c.NextOffer = e.s.Now
	} else if news || missed {
		e.pending.Plan, e.pending.FitCheck = true, true
		e.typesRevision++
	}
	if news {
		e.pending.Price = true
		e.pools.revision++ // they may have other zones
		for _, in := range e.fleet.All() {
			if in.Cloud == c.Name && in.Typeless() {
				e.touch(in)
			}
		}
	}
	e.applyPastPrices(c, b.Past) // with the volume price of the current catalogue
}

// typeRemoved reports whether an adopted instance's type is missing from its cloud's catalogue.
func (e *Engine) typeRemoved(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	return in.Typeless() && c != nil && c.Known &&
		!slices.ContainsFunc(c.Offerings, func(o drover.Offering) bool { return o.Type.ProviderType == in.Type.ProviderType })
}

// listed compares a cloud's list with the fleet. Only a list that began after something was known contradicts it.
func (e *Engine) listed(b Listed) {
	c := e.cloud(b.Cloud)
	if c == nil || !answers(b.Effect, c.ListCall) {
		return
	}
	c.ListCall = 0
	interval := e.limits(c.Name).ListInterval
	c.NextList = e.s.Now.Add(interval)
	if b.Err != nil {
		e.note(Note{Level: Warn, Text: fmt.Sprintf("listing the instances of cloud %s failed: %s", c.Name, b.Err.Explained()), Cloud: c.Name, Reason: failure(b.Err)})
		c.ListFails++
		c.Unlisted = e.repeatedFailure(c.Unlisted, drover.ReasonUnlisted, b.Err)
		c.NoList = max(c.NoList, b.Err.RetryAt) // the time that the cloud named, if any
		c.NextList = max(c.NoList, e.s.Now.Add(timers.Backoff(c.ListFails, time.Second, interval)))
		return
	}
	c.ListFails, c.Unlisted = 0, Verdict{}
	c.Listed, c.Good, c.GoodBefore = e.s.Now, b.Began, c.Good
	c.addGoodList(b.Began, e.limits(c.Name).ListLag)
	for _, s := range b.Added {
		e.handleSighting(c, s)
	}
	for _, id := range b.Removed {
		e.noteUnlisted(c, id)
	}
	e.reviveListed(c)
	e.scheduleSecondList(c)
	if e.missing(c, b.Began) {
		c.Hurry++
		e.listSoon(c)
	} else {
		c.Hurry = 0
	}
}

// scheduleSecondList schedules the second list as early as it can show what the first may have missed, when that
// matters: before stale records are trusted, and before a draining controller exits.
func (e *Engine) scheduleSecondList(c *Cloud) {
	if (!e.recordsCurrent() || e.s.Draining) && c.First != 0 && !c.Twice {
		e.listBy(c, c.secondListTime(e.limits(c.Name).ListLag))
	}
}

// noteUnlisted records that a list no longer has an instance.
func (e *Engine) noteUnlisted(c *Cloud, id string) {
	if in := e.fleet.ByProviderID(c.Name, id); in != nil {
		e.clearEnd(in, c.GoodBefore)
		in.Listed, in.Lacked, in.Ending, in.Over = false, true, false, false
		e.fleet.Relist(in)
	} else {
		e.fleet.ShowDeparted(c.Name, id, nil)
	}
}

// handleSighting handles an instance that is new in a list, or has changed since the last one.
func (e *Engine) handleSighting(c *Cloud, s Sighting) {
	in := e.fleet.ForSighting(c.Name, s)
	if in == nil {
		if !e.fleet.ShowDeparted(c.Name, s.ProviderID, &s) {
			e.adopt(c, s)
		}
		return
	}
	idle := cmp.Or(s.Idle, drover.IdleRun)
	e.believeTag(in, idle)
	e.clearEnd(in, c.GoodBefore)
	in.Reshown = in.Reshown || in.Lacked && in.EndTold != 0
	in.Listed, in.Lacked, in.Missing = true, false, 0
	e.fleet.Relist(in)
	e.setAddresses(in, s.Addresses)
	if !in.Seen {
		in.Seen = true
		e.writeInstance(in)
	}
	e.tagSeen(in, idle)
	if in.ProviderID == "" {
		// The create call's answer was lost, or has not arrived yet.
		if o := in.ChosenFrom(s); o != nil {
			in.Become(*o)
			e.fleet.Revise(in)
		}
		e.fleet.SetProviderID(in, s.ProviderID)
		in.Created = in.CreatedAt(s, e.s.Now)
		e.priceAnew(in)
		if in.Call == 0 {
			e.accepted(in)
		} else {
			e.writeInstance(in)
		}
	}
	e.applySighting(c, in, s)
}

// setAddresses records an instance's addresses and dials it there.
func (e *Engine) setAddresses(in *fleet.Member, a drover.Addresses) {
	if a == (drover.Addresses{}) || a == in.Addresses || in.State == drover.InstanceStopped {
		return
	}
	in.Addresses = a
	if !in.Connected && in.State != drover.InstanceStopping {
		in.Retry = e.s.Now
	}
	e.writeInstance(in)
}

// applySighting records an instance's state as listed.
func (e *Engine) applySighting(c *Cloud, in *fleet.Member, s Sighting) {
	e.showStopped(c, in, &s)
	in.Over = s.Ended != 0
	e.recordEnd(in, s.Ended)
	if in.Ending = s.Ending; in.Ending {
		e.endBill(in, c.Good)
	} else {
		in.Shown, in.Reshown = true, in.EndTold != 0
		e.clearEnd(in, c.Good)
		e.reopenBill(in, c.Good)
	}
	if s.Reclaimed {
		e.reclaim(in, reclaimedText)
	}
	switch {
	case in.Created == 0:
	case s.Failed != nil:
		e.creationFailed(in, s.Failed)
	case s.Stopped:
		e.stopped(in)
	}
	e.touch(in)
}

// adopt takes over an instance with this fleet's tag that the store does not know. Attempts of another store on it are
// stopped before it takes work, and it counts as used. The second instance of a name is destroyed.
func (e *Engine) adopt(c *Cloud, s Sighting) {
	kept := s.Kept != 0 && s.Pool != "" && (s.Stopped || s.Ending)
	if kept {
		s.Ending, s.Ended = false, 0
	}
	e.checkName(s.Name)
	e.s.LastInstance++
	name, first := s.Name, e.fleet.Named(s.Name)
	if first != nil {
		name = fleet.TwinName(name, s.ProviderID)
	}
	in := &fleet.Member{Instance: Instance{
		ID: e.s.LastInstance, Name: name, Cloud: c.Name, ProviderID: s.ProviderID, Zone: s.Zone, Market: s.Market, Price: s.Price,
		Type: drover.InstanceType{Name: s.Type, ProviderType: s.ProviderType}, HostKey: s.HostKey,
		State: drover.InstanceUnknown, Asked: e.s.Now, Created: e.billFrom(first, s), Seen: true, Used: !e.ours(s.Name), Owner: s.Owner, Pool: cmp.Or(s.Pool, e.s.Settings.DefaultGroup), Template: s.Template, Addresses: s.Addresses,
		Observed: Observed{Known: e.s.Now, Listed: true, Shown: !s.Ending, Ending: s.Ending, Over: s.Ended != 0, Silent: e.s.Now},
	}}
	if spec := e.poolSpec(in); spec != nil {
		in.Prefix = spec.NamePrefix
	}
	e.takeTag(in, s.Idle)
	in.Reason = in.Remark()
	for _, o := range c.Offerings {
		if o.Type.ProviderType == s.ProviderType {
			in.Type, in.Resources = o.Type, o.Type.Resources
		}
	}
	e.addInstance(in)
	e.writeInstance(in)
	e.recordEnd(in, s.Ended)
	e.priceAnew(in)
	if s.Stopped && kept {
		e.adoptStopped(in, s)
	}
	e.note(Note{Level: Warn, Text: fmt.Sprintf("adopted instance %s, which has this fleet's tag", in.Name), Instance: in.Name, Cloud: in.Cloud})
	if s.Reclaimed {
		e.reclaim(in, reclaimedText)
	}
	switch {
	case first != nil && !in.Held():
		e.stopTwin(in, s.Name)
	case s.Failed != nil:
		e.endUncreated(in, s.Failed)
	case s.Stopped && in.State != drover.InstanceStopped:
		e.stopped(in)
	}
}

// stopTwin destroys one of two instances that were created with one name.
func (e *Engine) stopTwin(in *fleet.Member, name string) {
	e.stop(in, e.verdict(drover.ReasonTwin, "the cloud created instance %s twice", name))
}

// billFrom returns when the bill of an adopted instance begins. A twin is billed since it was created; another instance
// that this store named was billed before, until it counted as gone.
func (e *Engine) billFrom(first *fleet.Member, s Sighting) drover.Time {
	switch {
	case first != nil:
		return first.CreatedAt(s, e.s.Now)
	case e.ours(s.Name):
		return e.s.Now
	}
	return cmp.Or(s.Created, e.s.Now)
}

// takeTag sets an instance's idle behaviour from its tag; one that names none counts as none.
func (e *Engine) takeTag(in *fleet.Member, tag drover.IdleBehavior) {
	in.Idle, in.IdleReason = drover.IdleRun, nil
	switch tag {
	case drover.IdleHold:
		in.Idle, in.IdleReason = tag, new(e.verdict(drover.ReasonOperator, "held, according to its tag"))
	case drover.IdleDrain:
		in.Idle, in.IdleReason = tag, new(e.verdict(drover.ReasonOperator, "drained, according to its tag"))
	}
}

// createFailed handles a failed create call. If the cloud refused, the instance does not exist and its work is planned
// for again; if it may exist, it is requested again under the same name.
func (e *Engine) createFailed(b CreateFailed) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Call) || len(in.Candidates) == 0 {
		return
	}
	in.Call = 0
	e.limitCreates(in.Cloud, b.Err)
	if in.ProviderID != "" {
		e.accepted(in) // it exists nevertheless
		return
	}
	in.Fails++
	in.Known = e.s.Now
	why := e.verdict(drover.ReasonCreateFailed, "%s", b.Err.Explained())
	e.note(Note{Level: Warn, Text: fmt.Sprintf("creating instance %s failed: %s", in.Name, b.Err.Explained()), Instance: in.Name, Cloud: in.Cloud, Reason: failure(b.Err)})
	switch b.Err.Kind {
	case drover.KindTransient, drover.KindUnreachable, drover.KindInternal:
		in.Reason, in.Unsure = &why, true
		in.Retry = e.s.Now.Add(timers.Backoff(in.Fails, 250*time.Millisecond, 30*time.Second))
		if c := e.cloud(in.Cloud); c != nil {
			e.listSoon(c)
			c.Unsure = e.s.Now
		}
	case drover.KindRateLimit:
	default:
		if b.Err.Kind != drover.KindCapacity && b.Err.Kind != drover.KindQuota && b.Err.Kind != drover.KindAuthentication {
			e.countTemplate(in, false)
		}
		e.blockTried(in, b.Tried, b.Err)
		if !in.Unsure || !in.Held() { // otherwise it is requested again
			e.nodeFailed(in, string(b.Err.Kind), why)
		}
		e.refuse(in, why)
		e.dropBlocked(in.Cloud)
	}
	e.touchCreating(in.Cloud)
	if in.State != drover.InstanceGone {
		e.touch(in)
	}
}

// limitCreates makes no create call before the time that the cloud named, if any.
func (e *Engine) limitCreates(cloud string, err *drover.Error) {
	if c := e.cloud(cloud); c != nil && err.Kind == drover.KindRateLimit {
		if c.NextCreate <= e.s.Now {
			c.Slowed = e.s.Now
		}
		c.NextCreate = max(c.NextCreate, err.RetryAt, e.s.Now.Add(time.Second))
	}
}

// refuse gives up an instance that its cloud refused to create. If an earlier call was not answered, only lists can
// show that it does not exist, and a held instance is requested again.
func (e *Engine) refuse(in *fleet.Member, why Verdict) {
	switch {
	case !in.Unsure:
		e.gone(in, why)
	case in.State == drover.InstanceStopping:
	case in.Held():
		in.Reason, in.Retry = &why, e.s.Now.Add(market.BlockTime)
		e.endProbe(in)
	default:
		e.stop(in, why)
	}
}

// nextWake returns when the engine wants its next event. While instances exist, that is early enough to notice a
// suspension of the controller.
func (e *Engine) nextWake() drover.Time {
	at := sooner(e.fleet.FirstCheck(), e.queue.NextTry())
	for _, c := range e.clouds {
		if c.OfferCall == 0 {
			at = sooner(at, c.NextOffer)
		}
		if c.ListCall == 0 {
			at = sooner(at, c.NextList)
		}
	}
	at = sooner(at, e.market.Next(e.billBegan))
	at = sooner(at, e.nextPools())
	at = sooner(at, later(e.pending.Await, e.s.Now))
	for _, g := range e.groups {
		at = sooner(at, e.blockedDeadline(g))
		at = sooner(at, later(g.retryAt(), e.s.Now))
	}
	if len(e.groups) > 0 {
		at = sooner(at, e.ledger.Ends())
	}
	if e.fleet.Len() > 0 {
		at = sooner(at, e.s.Now.Add(e.life().ProbeInterval))
	}
	return at
}
