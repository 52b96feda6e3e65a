package engine

import (
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/fleet"
)

// A pool may keep instances stopped, beside its number: they cost only their volumes, and start in seconds. Each was ready once. A tag says that
// Drover has it stopped, so that it is told from one that its cloud stopped even if the store is lost. A stopped instance counts in every limit on
// instances, since it may be started at any time; it is not dialled, and lists alone tell whether it is there.
//
// It is started when its pool has too few, or when jobs would have another rented. What its cloud cannot start now is left stopped for a while, and
// something else is taken; what it will never start is destroyed.

const (
	startPause = time.Minute // before an instance that could not be started is tried again
	startMost  = 15 * time.Minute
)

// halt has an instance on which nothing runs stopped, to be started again.
func (e *Engine) halt(in *fleet.Member) {
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

// stoppable reports whether an instance of a pool may be stopped now: nothing can be running there.
func (e *Engine) stoppable(in *fleet.Member) bool {
	return in.Market == drover.OnDemand && in.State == drover.InstanceIdle && (in.Connected || in.NoLogin) && in.TakesWork() &&
		len(in.Orphans) == 0 && in.Standby == 0 && e.s.Now >= in.KeepUntil && in.Call == 0 && in.Dial == 0 && in.Growing == 0 && !in.Expanding()
}

// startable reports whether a stopped instance may be started now.
func (e *Engine) startable(in *fleet.Member) bool {
	return in.State == drover.InstanceStopped && in.Rests() && in.TakesWork() && in.Call == 0 && in.Retry <= e.s.Now && e.market.BlockOf(e.offeringOf(in)) == nil
}

// wake has a stopped instance started. It is paid like one that runs from now on.
func (e *Engine) wake(in *fleet.Member, lent bool, why Verdict) {
	in.Waking, in.Lent, in.Woken, in.Reason = true, lent, e.s.Now, &why
	e.runPaid(in)
	e.fleet.Moved()
	e.note(Note{Level: Info, Text: fmt.Sprintf("starting instance %s: %s", in.Name, why.Text), Instance: in.Name, Cloud: in.Cloud, Reason: new(why.Reason())})
	e.needsPlacing = true
	e.writeInstance(in)
	e.touch(in)
}

// runPaid has an instance cost what it costs when it runs.
func (e *Engine) runPaid(in *fleet.Member) {
	e.reprice(in, in.RunPrice)
	in.Rated, e.needsPricing = fleet.Rate{}, true
}

// asRunning is a stopped instance as it were if it ran.
func asRunning(in *fleet.Member) *fleet.Member {
	c := *in
	c.Price = in.RunPrice
	return &c
}

// volumePrice is what a stopped instance of an offering costs an hour: its volume, as far as its cloud says what that costs.
func volumePrice(o drover.Offering, volume drover.Bytes) drover.Money {
	if o.Type.Resources.Disk != 0 {
		return 0
	}
	o.Price = 0
	return o.WithVolume(volume).Price
}

// restPrice is what an instance costs an hour once it is stopped.
func (e *Engine) restPrice(in *fleet.Member) drover.Money {
	o, _ := e.listedAs(in)
	return volumePrice(o, in.Volume())
}

// awake notes that an instance that was started again is ready.
func (e *Engine) awake(in *fleet.Member) {
	in.Waking = false
	if in.Ready != 0 {
		e.fire(drover.HookReady, in, e.verdict(drover.ReasonRunning, "%s", in.Where()))
		e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s ready %v after it was started", in.Name, e.s.Now.Sub(in.Woken).Round(time.Millisecond)), Instance: in.Name, Cloud: in.Cloud})
	}
}

// checkStopped has a stopped instance go, or stopped or started if its cloud has yet to do that. Nothing is done by records that are in doubt: it may run.
func (e *Engine) checkStopped(in *fleet.Member) {
	if in.Call != 0 || !e.recordsCurrent() {
		return
	}
	why, departs := e.departs(in)
	switch at := e.nextSwitch(in); {
	case departs:
		e.stop(in, why)
	case e.s.Closing && !in.Held():
		e.stop(in, e.verdict(drover.ReasonClosing, "the fleet is closing"))
	case at != 0 && at <= e.s.Now:
		in.Call = e.effect(Effect{Switch: &Switch{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID, On: in.Waking}})
	}
}

// nextSwitch is when an instance's cloud is to be asked to stop or start it; 0 if it is not, or not before it has taken the tag that says so. A hold leaves
// a stopped instance as it is, but does not keep one between: it costs what a running one does once its start is decided.
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

// switched takes a cloud's answer to being asked to stop or start an instance.
func (e *Engine) switched(b Switched) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !answers(b.Effect, in.Call) {
		return
	}
	in.Call = 0
	e.touch(in)
	switch {
	case in.State != drover.InstanceStopped: // it is told to go, or a list has shown that it runs
	case b.Err != nil && in.Waking:
		e.notStarted(in, b.Err)
	case b.Err != nil:
		e.notStopped(in, b.Err)
	case in.Waking:
		e.hasCapacity(in)
		e.startsUp(in)
	default:
		e.isOff(in, in.Price)
		e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s is stopped", in.Name), Instance: in.Name, Cloud: in.Cloud})
	}
	e.lookSoon(e.cloud(in.Cloud))
}

// isOff has an instance count as stopped from now on, which costs this when it runs.
func (e *Engine) isOff(in *fleet.Member, price drover.Money) {
	in.Switched, in.Fails, in.Retry, in.Known = e.s.Now, 0, 0, e.s.Now
	in.RunPrice, in.Halted = price, true
	if in.Rests() {
		e.reprice(in, e.restPrice(in))
	}
	in.Rated, e.needsPricing, e.needsPlan = fleet.Rate{}, true, true
	e.unreserve(in)
	e.fleet.Moved()
	e.writeInstance(in)
}

// startsUp has a stopped instance count as one that boots from now on.
func (e *Engine) startsUp(in *fleet.Member) {
	in.Switched, in.Silent, in.Known = e.s.Now, e.s.Now, e.s.Now
	in.Fails, in.Retry, in.Tried, in.Unlocated, in.Halting = 0, 0, false, false, false
	in.Reason = in.Remark()
	if in.Halted {
		in.Halted = false
		e.runPaid(in)
	}
	e.retag(in)
	e.setState(in, drover.InstanceBooting)
}

// notStopped has the cloud asked again to stop an instance; if it never will, the pool keeps none stopped.
func (e *Engine) notStopped(in *fleet.Member, err *drover.Error) {
	e.note(Note{Level: Warn, Text: fmt.Sprintf("stopping instance %s: %s", in.Name, err.Message), Instance: in.Name, Cloud: in.Cloud, Reason: failure(err)})
	if err.Kind == drover.KindUnsupported {
		why := e.verdict(drover.ReasonStopped, "its cloud cannot stop it: %s", err.Message)
		if p := e.pool(in.Pool); p != nil {
			p.CannotStop = e.verdict(drover.ReasonStopped, "no instance is kept stopped any more, since cloud %s cannot stop instance %s: %s", in.Cloud, in.Name, err.Message)
		}
		e.stop(in, why)
		return
	}
	in.Fails++
	in.Retry = max(err.RetryAt, e.s.Now.Add(backoff(in.Fails, time.Second, e.life().ShutdownTimeout)))
	if c := e.cloud(in.Cloud); c != nil && err.Kind == drover.KindRateLimit {
		c.NoDestroy = max(c.NoDestroy, in.Retry)
	}
}

// notStarted has the cloud asked again soon if it did not answer, as long as a boot may take; else something else is taken. What lacks capacity stays
// stopped and is tried again later; what its cloud refuses to start for another reason is destroyed.
func (e *Engine) notStarted(in *fleet.Member, err *drover.Error) {
	e.note(Note{Level: Warn, Text: fmt.Sprintf("starting instance %s: %s", in.Name, err.Message), Instance: in.Name, Cloud: in.Cloud, Reason: failure(err)})
	e.limitCreates(in.Cloud, err)
	in.Fails++
	why := e.verdict(drover.ReasonCreateFailed, "it could not be started: %s", err.Message)
	switch err.Kind {
	case drover.KindTransient, drover.KindUnreachable, drover.KindInternal, drover.KindRateLimit, drover.KindNotFound:
		if e.s.Now < in.Woken.Add(e.life().BootTimeout) {
			in.Retry = max(err.RetryAt, e.s.Now.Add(backoff(in.Fails, 250*time.Millisecond, 30*time.Second)))
			return
		}
	case drover.KindCapacity, drover.KindQuota, drover.KindAuthentication:
		e.blockRefused(in, e.offeringOf(in), err)
	default:
		e.stop(in, why)
		return
	}
	e.dropAllReservations(in)
	in.Waking, in.Lent, in.Reason = false, false, &why
	in.Retry = max(err.RetryAt, e.s.Now.Add(backoff(in.Fails, startPause, startMost)))
	in.Rated, e.needsPricing, e.needsPlan = fleet.Rate{}, true, true
	e.fleet.Moved()
	e.writeInstance(in)
}

// showStopped takes in whether a list shows an instance as stopped. For those that Drover has stopped that is no news; nor is it of one that it has just
// started, since the list may be older than that.
func (e *Engine) showStopped(c *Cloud, in *fleet.Member, s *Sighting) {
	if s.Ended != 0 && !s.Stopped { // it is not stopped but gone
		return
	}
	ours := in.State == drover.InstanceStopped
	old := in.Switched != 0 && c.Good < in.Switched.Add(e.lag(in))
	in.Off = s.Stopped || s.Ending && (ours || old)
	switch {
	case in.State == drover.InstanceStopping:
	case in.State == drover.InstanceUnknown && s.Stopped && s.Kept != 0 && in.Pooled() && in.Created != 0:
		e.adoptStopped(in, *s)
	case !in.Off || !ours && !old:
		return
	}
	if in.State != drover.InstanceStopping {
		s.Stopped, s.Ending, s.Ended = false, false, 0
	}
}

// adoptStopped takes an instance over that is stopped and says by its tag that Drover did that, and when.
func (e *Engine) adoptStopped(in *fleet.Member, s Sighting) {
	why := e.verdict(drover.ReasonPool, "pool %s keeps it stopped, according to its tag", in.Pool)
	in.Reason = &why
	price := in.Price
	if since := min(max(s.Kept, in.PricedSince()), e.s.Now); in.Ready == 0 && len(in.Rates) == 0 && since > in.Created {
		in.Rates = []drover.Rate{{Price: price, Until: since}}
		if !in.Waking {
			in.Price = e.restPrice(in)
		}
	}
	e.isOff(in, price)
	in.Addresses, in.Off = drover.Addresses{}, true
	e.setState(in, drover.InstanceStopped)
}

// reviewStopped looks, once a good list is there, whether a stopped instance is as it should be. If an earlier controller was about to stop one, and it is
// listed as stopped, its cloud is asked again, since the list may be of an earlier stop. One that was stopped and runs all the same was started by somebody
// else.
func (e *Engine) reviewStopped(c *Cloud, in *fleet.Member) {
	switch {
	case in.Call != 0 || in.Switched == 0 && in.Halting:
	case in.Switched == 0 && in.Off:
		in.Halting = true
		e.touch(in)
	case !in.Off && c.Good >= in.Switched.Add(e.lag(in)):
		in.Woken = e.s.Now
		e.startsUp(in)
	}
}

// lend has stopped instances of pools started for groups that would have others rented, those that cost least first, and returns the groups that still need some.
func (e *Engine) lend(groups []*group) (left []*group) {
	for _, g := range groups {
		for g.wants()-g.awaits > g.Unmet && g.Key.Gang == 0 {
			in := e.lendable(g)
			if in == nil {
				break
			}
			e.wake(in, true, e.verdict(drover.ReasonRunning, "waiting jobs need it"))
			if n := e.affordableOn(in, g, g.bindable(in)); n > 0 {
				e.reserveFor(g, in, n)
				e.writeInstance(in)
			}
		}
		if g.wants()-g.awaits > g.Unmet {
			left = append(left, g)
		} else {
			g.wait(e.verdict(drover.ReasonBooting, bootingText))
		}
	}
	return left
}

// lendable is the stopped instance that costs least of those that may be started for the group; nil if there is none.
func (e *Engine) lendable(g *group) (best *fleet.Member) {
	for _, p := range e.pools.list {
		if p.spec.Stopped == 0 || !p.spec.Jobs {
			continue
		}
		for _, in := range e.pools.members[p.Name] {
			if !e.startable(in) || !asRunning(in).Accepts(&g.demand) || in.Room.Times(g.Key.Shape.Need, 1) == 0 || best != nil && best.RunPrice <= in.RunPrice {
				continue
			}
			if e.beyondBudget(p, asRunning(in).Offering()) == nil {
				best = in
			}
		}
	}
	return best
}
