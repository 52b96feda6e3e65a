package engine

import (
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/timers"
)

// A pool may keep stopped instances besides its size: they cost only their volumes, and start in seconds. Each was
// ready once. A tag says that Drover stopped it, to distinguish it from one that its cloud stopped, even if the store
// is lost. A stopped instance counts in every limit on instances, since it may be started at any time; it is not
// dialled, and lists alone tell whether it exists.
//
// It is started when its pool has too few, or when jobs would otherwise rent another. If its cloud cannot start it now,
// it stays stopped for a while, and something else is used; if the cloud refuses for another reason, it is destroyed.

const (
	startPause = time.Minute // before starting an instance again that could not be started
	startMost  = 15 * time.Minute
)

// beginStop stops an instance that runs nothing, to be started again later.
func (e *Engine) beginStop(in *fleet.Member) {
	why := e.verdict(drover.ReasonPool, "pool %s keeps it stopped", in.Pool)
	in.Reason = &why
	in.Switched, in.Waking, in.Lent, in.Halting = 0, false, false, true
	in.Addresses, in.Fails, in.Retry, in.Known = drover.Addresses{}, 0, 0, e.s.Now
	in.Connected = false
	e.retag(in)
	e.setState(in, drover.InstanceStopped)
	e.effect(Effect{Disconnect: &Disconnect{Instance: in.ID}})
	e.fire(drover.HookStopped, in, why)
	e.note(Note{Level: Info, Text: fmt.Sprintf("stopping instance %s: %s", in.Name, why.Text), Instance: in.Name, Cloud: in.Cloud, Reason: new(why.Reason())})
}

// stoppable reports whether a pool's instance may be stopped now: nothing can be running there.
func (e *Engine) stoppable(in *fleet.Member) bool {
	return in.Market == drover.OnDemand && in.State == drover.InstanceIdle && (in.Connected || in.NoLogin) && in.TakesWork() &&
		len(in.Orphans) == 0 && in.Standby == 0 && e.s.Now >= in.KeepUntil && in.Call == 0 && in.Dial == 0 && in.Growing == 0 && !in.Expanding()
}

// startable reports whether a stopped instance may be started now.
func (e *Engine) startable(in *fleet.Member) bool {
	return in.State == drover.InstanceStopped && in.Rests() && in.TakesWork() && in.Call == 0 && in.Retry <= e.s.Now && e.market.BlockOf(e.offeringOf(in)) == nil
}

// wake starts a stopped instance. It is billed as running from now on.
func (e *Engine) wake(in *fleet.Member, lent bool, why Verdict) {
	in.Waking, in.Lent, in.Woken, in.Reason = true, lent, e.s.Now, &why
	e.restorePrice(in)
	e.note(Note{Level: Info, Text: fmt.Sprintf("starting instance %s: %s", in.Name, why.Text), Instance: in.Name, Cloud: in.Cloud, Reason: new(why.Reason())})
	e.pending.Place = true
	e.writeRevised(in)
	e.touch(in)
}

// restorePrice restores an instance's price when running.
func (e *Engine) restorePrice(in *fleet.Member) {
	e.reprice(in, in.RunPrice)
	in.Rated = fleet.Rate{}
	e.priceAnew(in)
}

// asRunning returns a stopped instance as if it were running.
func asRunning(in *fleet.Member) *fleet.Member {
	c := *in
	c.Price = in.RunPrice
	return &c
}

// volumePrice returns the hourly price of a stopped instance of an offering: its volume's, if its cloud states one.
func volumePrice(o drover.Offering, volume drover.Bytes) drover.Money {
	if o.Type.Resources.Disk != 0 {
		return 0
	}
	o.Price = 0
	return o.WithVolume(volume).Price
}

// restPrice returns an instance's hourly price once it is stopped.
func (e *Engine) restPrice(in *fleet.Member) drover.Money {
	o, _ := e.listedAs(in)
	return volumePrice(o, in.Volume())
}

// noteRestarted records that a restarted instance is ready.
func (e *Engine) noteRestarted(in *fleet.Member) {
	in.Waking = false
	if in.Ready != 0 {
		e.announceReady(in)
		e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s ready %v after it was started", in.Name, e.s.Now.Sub(in.Woken).Round(time.Millisecond)), Instance: in.Name, Cloud: in.Cloud})
	}
}

// checkStopped destroys a stopped instance that departs, or stops or starts it if its cloud has yet to do so. With
// stale records it does nothing: the instance may be running.
func (e *Engine) checkStopped(in *fleet.Member) {
	if in.Call != 0 || !e.recordsCurrent() {
		return
	}
	why, departs := e.departs(in)
	switch {
	case departs:
		e.stop(in, why)
	case e.s.Closing && !in.Held():
		e.stop(in, e.verdict(drover.ReasonClosing, "the fleet is shutting down"))
	case e.due(e.nextSwitch(in)):
		in.Call = e.effect(Effect{Switch: &Switch{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID, On: in.Waking}})
	}
}

// nextSwitch returns when to ask an instance's cloud to stop or start it; 0 if not, or not before the tag is set. A
// hold leaves a stopped instance stopped, but does not interrupt a stop or start: once decided, a start is billed as
// running.
func (e *Engine) nextSwitch(in *fleet.Member) (at drover.Time) {
	off := in.Switched == 0 && in.Halting
	c := e.cloud(in.Cloud)
	switch {
	case c == nil || in.Call != 0 || in.Held() && !off && !in.Waking:
		return 0
	case in.Waking:
		return max(in.Retry, c.NextCreate, 1)
	case off && !in.Retag:
		return max(in.Retry, c.NoDestroy, 1)
	}
	return 0
}

// switched handles a cloud's answer to a stop or start call.
func (e *Engine) switched(b Switched) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Call) {
		return
	}
	in.Call = 0
	e.touch(in)
	switch {
	case in.State != drover.InstanceStopped: // it is being destroyed, or a list has shown it running
	case b.Err != nil && in.Waking:
		e.notStarted(in, b.Err)
	case b.Err != nil:
		e.notStopped(in, b.Err)
	case in.Waking:
		e.hasCapacity(in)
		e.beginBoot(in)
	default:
		e.markOff(in, in.Price)
		e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s is stopped", in.Name), Instance: in.Name, Cloud: in.Cloud})
	}
	e.listSoon(e.cloud(in.Cloud))
}

// markOff makes an instance count as stopped from now on; price is its price when running.
func (e *Engine) markOff(in *fleet.Member, price drover.Money) {
	in.Switched, in.Fails, in.Retry, in.Known = e.s.Now, 0, 0, e.s.Now
	in.RunPrice, in.StopAccepted = price, true
	if in.Rests() {
		e.reprice(in, e.restPrice(in))
	}
	in.Rated, e.pending.Plan = fleet.Rate{}, true
	e.priceAnew(in)
	e.unreserve(in)
	e.writeRevised(in)
}

// beginBoot makes a stopped instance count as booting from now on. It has to pass its health check again.
func (e *Engine) beginBoot(in *fleet.Member) {
	in.Passed = 0
	if e.adapt(in); in.NoJobs {
		e.dropAllReservations(in)
	}
	in.Switched, in.Silent, in.Known = e.s.Now, e.s.Now, e.s.Now
	in.Fails, in.Retry, in.Tried, in.Unlocated, in.Halting = 0, 0, false, false, false
	in.Reason = in.Remark()
	if in.StopAccepted {
		in.StopAccepted = false
		e.restorePrice(in)
	}
	e.retag(in)
	e.setState(in, drover.InstanceBooting)
}

// notStopped retries a failed stop, unless the cloud no longer has the instance. If the cloud does not support it, the
// pool keeps none stopped, and the instance is destroyed unless it is held.
func (e *Engine) notStopped(in *fleet.Member, err *drover.Error) {
	e.note(Note{Level: Warn, Text: fmt.Sprintf("stopping instance %s failed: %s", in.Name, err.Explained()), Instance: in.Name, Cloud: in.Cloud, Reason: failure(err)})
	if err.Kind == drover.KindNotFound && e.s.Now >= e.describable(in) { // lists may show it for as long as they like
		e.endedInCloud(in, e.verdict(drover.ReasonVanished, "its cloud did not find it when asked to stop it: %s", err.Explained()))
		return
	}
	if err.Kind == drover.KindUnsupported {
		why := e.verdict(drover.ReasonStopped, "its cloud cannot stop it: %s", err.Explained())
		if p := e.pool(in.Pool); p != nil {
			p.CannotStop = e.verdict(drover.ReasonStopped, "cloud %s cannot stop instance %s, so Drover no longer keeps stopped instances there: %s", in.Cloud, in.Name, err.Explained())
			e.pools.revision++
		}
		if !in.Held() {
			e.stop(in, why)
			return
		}
	}
	e.retryEnding(in, err)
}

// retryEnding sets when a failed destroy or stop call is repeated. A rate limit holds for all of the cloud's.
func (e *Engine) retryEnding(in *fleet.Member, err *drover.Error) {
	in.Fails++
	in.Refused = new(e.verdict(Cause(err.Kind), "%s", err.Explained()))
	in.Retry = max(err.RetryAt, e.s.Now.Add(timers.Backoff(in.Fails, time.Second, e.life().ShutdownTimeout)))
	if c := e.cloud(in.Cloud); c != nil && err.Kind == drover.KindRateLimit {
		c.NoDestroy = max(c.NoDestroy, in.Retry)
	}
}

// notStarted retries a start that is unanswered, or whose instance is not found, for as long as a boot may take; then
// something else is used. Without an answer or capacity the instance stays stopped and is tried again later; if the
// cloud does not find it or refuses to start it for another reason, it is destroyed unless it is held.
func (e *Engine) notStarted(in *fleet.Member, err *drover.Error) {
	e.note(Note{Level: Warn, Text: fmt.Sprintf("starting instance %s failed: %s", in.Name, err.Explained()), Instance: in.Name, Cloud: in.Cloud, Reason: failure(err)})
	e.limitCreates(in.Cloud, err)
	in.Fails++
	why := e.verdict(drover.ReasonCreateFailed, "it could not be started: %s", err.Explained())
	switch err.Kind {
	case drover.KindTransient, drover.KindUnreachable, drover.KindInternal, drover.KindRateLimit, drover.KindNotFound:
		if e.s.Now < in.Woken.Add(e.life().BootTimeout) {
			in.Retry = max(err.RetryAt, e.s.Now.Add(timers.Backoff(in.Fails, 250*time.Millisecond, 30*time.Second)))
			return
		}
		if err.Kind == drover.KindNotFound && !in.Held() {
			e.stop(in, why)
			return
		}
	case drover.KindCapacity, drover.KindQuota, drover.KindAuthentication:
		e.blockRefused(in, e.offeringOf(in), err)
	default:
		if !in.Held() {
			e.stop(in, why)
			return
		}
	}
	e.dropAllReservations(in)
	in.Waking, in.Lent, in.Reason = false, false, &why
	in.Retry = max(err.RetryAt, e.s.Now.Add(timers.Backoff(in.Fails, startPause, startMost)))
	in.Rated, e.pending.Plan = fleet.Rate{}, true
	e.priceAnew(in)
	e.writeRevised(in)
}

// showStopped handles a listed instance's being stopped or not. That is not news for an instance that Drover has
// stopped, nor for one that it has just started, since the list may be older. One with attempts was stopped after these
// records were copied; it ends, and they with it.
func (e *Engine) showStopped(c *Cloud, in *fleet.Member, s *Sighting) {
	if s.Ended != 0 && !s.Stopped { // it is gone, not stopped
		return
	}
	ours := in.State == drover.InstanceStopped
	news := s.Kept > in.Switched || s.Ended > in.Switched.Add(clockSkew) // it was stopped since then
	old := in.Switched != 0 && !news && !e.listedSinceSwitch(c, in)
	in.Off = s.Stopped || s.Ending && (ours || old)
	switch {
	case in.State == drover.InstanceStopping:
	case in.State == drover.InstanceUnknown && s.Stopped && !old && len(in.Load) == 0 && s.Kept != 0 && in.Pooled() && in.Created != 0:
		e.adoptStopped(in, *s)
	case !in.Off || !ours && !old:
		return
	}
	if in.State != drover.InstanceStopping {
		s.Stopped, s.Ending, s.Ended = false, false, 0
	}
}

// listedSinceSwitch reports whether the last good list shows what the instance's last stop or start call did. Until the
// controller has run for as long as lists may lag, that is unknown: the clock may have leapt over any time.
func (e *Engine) listedSinceSwitch(c *Cloud, in *fleet.Member) bool {
	return c.Good >= max(in.Switched, e.s.Looking).Add(e.lag(in))
}

// adoptStopped adopts a stopped instance whose tag says that Drover stopped it, and when.
func (e *Engine) adoptStopped(in *fleet.Member, s Sighting) {
	why := e.verdict(drover.ReasonPool, "its tag says that pool %s keeps it stopped", in.Pool)
	in.Reason = &why
	price := in.Price
	if since := min(max(s.Kept, in.PricedSince()), e.s.Now); in.Ready == 0 && len(in.Rates) == 0 && since > in.Created {
		in.Rates = []drover.Rate{{Price: price, Until: since}}
		if !in.Waking {
			in.Price = e.restPrice(in)
		}
	}
	e.markOff(in, price)
	in.Addresses, in.Off = drover.Addresses{}, true
	e.setState(in, drover.InstanceStopped)
}

// reviewStopped checks a stopped instance against a good list. If an earlier controller was about to stop it and it is
// listed as stopped, the cloud is asked again, since the list may show an earlier stop. If it was stopped and is
// running, somebody else started it.
func (e *Engine) reviewStopped(c *Cloud, in *fleet.Member) {
	switch {
	case in.Call != 0 || in.Switched == 0 && in.Halting:
	case in.Switched == 0 && in.Off:
		in.Halting = true
		e.touch(in)
	case !in.Off && e.listedSinceSwitch(c, in):
		in.Waking, in.Woken = true, e.s.Now
		e.beginBoot(in)
	}
}

// startLendable starts stopped instances of pools for groups that would otherwise rent, cheapest first, and returns the
// groups that still need some.
func (e *Engine) startLendable(groups []*group) (left []*group) {
	for _, g := range groups {
		for g.netDemand()-g.awaitingEnds > g.Unmet && g.Key.Gang == 0 {
			in := e.lendable(g)
			if in == nil {
				break
			}
			e.wake(in, true, e.verdict(drover.ReasonRunning, "waiting jobs need it"))
			if n := e.affordableOn(in, g, g.fitting(in)); n > 0 {
				e.reserveFor(g, in, n)
				e.writeInstance(in)
			}
		}
		if g.netDemand()-g.awaitingEnds > g.Unmet {
			left = append(left, g)
		} else {
			g.setReason(e.verdict(drover.ReasonBooting, bootingText))
		}
	}
	return left
}

// lendable returns the cheapest stopped instance that may be started for the group, and then run one of its jobs; nil if
// there is none.
func (e *Engine) lendable(g *group) (best *fleet.Member) {
	for _, p := range e.pools.list {
		if p.spec.Stopped == 0 || !p.spec.Jobs {
			continue
		}
		for _, in := range e.pools.members[p.Name] {
			if !e.startable(in) || !asRunning(in).Accepts(&g.demand) || in.Room.Times(g.Key.Shape.Need, 1) == 0 || best != nil && best.RunPrice <= in.RunPrice {
				continue
			}
			lost := len(g.Jobs) > 0 && slices.Contains(in.Lost, g.Jobs[0].Number)
			if !lost && e.beyondBudget(p, asRunning(in).Offering()) == nil && e.affordsLent(in, g) {
				best = in
			}
		}
	}
	return best
}

// affordsLent reports whether the budgets allow one of the group's jobs on a stopped instance that is started for it.
func (e *Engine) affordsLent(in *fleet.Member, g *group) bool {
	if !e.limited() {
		return true
	}
	p := e.rental([]drover.Offering{asRunning(in).Offering()}, wanted{g, 1})
	p.Loads = payOn(in, p.Loads)
	return e.ledger.Refuses(nil, p) == nil
}
