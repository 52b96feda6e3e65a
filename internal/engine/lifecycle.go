package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// check does at most one step that an instance's state and the time call for. nextCheck then says when to check again.
func (e *Engine) check(in *fleet.Member) {
	defer e.checkTag(in) // unless it is being destroyed now
	if in.Broken && in.State != drover.InstanceStopping {
		e.checkBroken(in)
		return
	}
	e.checkAge(in)
	e.forgetDrain(in)
	if e.checkHealth(in); in.Broken && in.State != drover.InstanceStopping {
		return
	}
	switch in.State {
	case drover.InstanceCreating:
		e.checkCreating(in)
	case drover.InstanceUnknown, drover.InstanceBooting:
		e.checkBooting(in)
	case drover.InstanceIdle, drover.InstanceRunning:
		e.checkReclaimed(in)
		e.checkReady(in)
	case drover.InstanceStopped:
		e.checkStopped(in)
	case drover.InstanceStopping:
		e.checkStopping(in)
	}
}

// nextCheck returns the earliest time after now at which check may have something to do, 0 for none.
func (e *Engine) nextCheck(in *fleet.Member) (at drover.Time) {
	switch {
	case in.State == drover.InstanceGone:
		return 0
	case in.Broken && in.State != drover.InstanceStopping:
		at = e.brokenUntil(in)
	default:
		at = sooner(e.nextStep(in), later(e.agesAt(in), e.s.Now))
	}
	at = sooner(at, e.nextTag(in))
	// A deadline that has passed waits for an event, such as a pending answer; check now and then all the same.
	if e.due(at) {
		at = e.s.Now.Add(time.Second)
	}
	return at
}

// nextStep returns when the next step in an instance's state is due, 0 for never.
func (e *Engine) nextStep(in *fleet.Member) (at drover.Time) {
	switch in.State {
	case drover.InstanceCreating:
		at = e.nextCreating(in)
	case drover.InstanceUnknown, drover.InstanceBooting:
		at = e.nextDial(in)
		at = sooner(at, e.nextBooting(in))
	case drover.InstanceIdle, drover.InstanceRunning:
		at = e.nextReady(in)
	case drover.InstanceStopped:
		at = e.nextSwitch(in)
	case drover.InstanceStopping:
		if in.Call == 0 && !in.GoingUnlisted() {
			at = e.nextDestroy(in)
		}
	}
	return at
}

func (e *Engine) nextCreating(in *fleet.Member) (at drover.Time) {
	if in.Call != 0 {
		return 0
	}
	at = in.Retry
	if !in.Held() {
		at = sooner(at, e.createDeadline(in))
	}
	if c := e.cloud(in.Cloud); c != nil {
		at = sooner(at, later(c.NextCreate, e.s.Now))
	}
	return at
}

func (e *Engine) nextReady(in *fleet.Member) (at drover.Time) {
	at = sooner(e.nextDial(in), later(in.ReclaimedBy(), e.s.Now))
	at = sooner(at, e.nextHealth(in))
	switch {
	case in.NoLogin:
		at = sooner(at, e.idleDeadline(in))
	case in.Connected:
		at = sooner(at, sooner(e.nextAttemptCheck(in), e.idleDeadline(in)))
		if e.limited() && in.State == drover.InstanceIdle {
			at = sooner(at, e.s.Now.Add(e.life().ProbeInterval)) // it costs money while idle
		}
	case !in.Held() && e.partitioned(in) == 0:
		at = sooner(at, in.Silent.Add(e.life().ProbeTimeout))
	case !in.Held():
		at = sooner(at, e.doubtEnds(e.cloud(in.Cloud).Partition))
	}
	return at
}

// nextBooting returns when an instance that is booting, or unknown, is given up.
func (e *Engine) nextBooting(in *fleet.Member) (at drover.Time) {
	switch {
	case in.Held(), in.NoLogin && in.Ready != 0 && !in.Off:
		return 0
	case e.partitioned(in) != 0:
		return e.doubtEnds(e.cloud(in.Cloud).Partition)
	case in.Unwanted != 0:
		at = in.Unwanted.Add(e.life().IdleTimeout)
	}
	return sooner(at, e.bootDeadline(in))
}

// later returns t if it is in the future, otherwise 0.
func later(t, now drover.Time) drover.Time {
	if t > now {
		return t
	}
	return 0
}

// due reports whether a time has come; 0 never does.
func (e *Engine) due(at drover.Time) bool { return at != 0 && at <= e.s.Now }

// createDeadline returns when an instance is given up that was requested but is not known to exist; 0 for never, as
// before the first request.
func (e *Engine) createDeadline(in *fleet.Member) drover.Time {
	if !in.Begun {
		return 0
	}
	return in.Asked.Add(e.life().BootTimeout)
}

func (e *Engine) checkCreating(in *fleet.Member) {
	if in.Call != 0 {
		return
	}
	c := e.cloud(in.Cloud)
	why, unwanted := e.unwanted(in, c)
	switch {
	case in.ProviderID != "": // a list showed it, but an earlier controller exited before the create call returned
		e.accepted(in)
	case !e.recordsCurrent(): // it may have been created and destroyed long ago
	case unwanted:
		e.stop(in, why)
	case !in.Held() && e.due(e.createDeadline(in)):
		e.breakInstance(in, e.verdict(drover.ReasonBootTimeout, "not created within %v%s", e.life().BootTimeout, lastFailure(in)))
	case e.dropBlockedCandidates(in):
		e.stop(in, e.verdict(drover.ReasonBlocked, "all offerings that it could use were blocked after it was planned"))
	case c == nil || in.Retry > e.s.Now || c.NextCreate > e.s.Now || e.callsLeft(in.Cloud) == 0:
	case e.waitsForThrottle(in):
	default:
		if !in.Begun && !e.beginCreate(in) {
			e.touchCreating(in.Cloud) // nothing else passes on its turn
			return
		}
		e.blocksChanged(e.market.Probe(in.ID, in.Candidates)) // a block may have ended since it was planned
		in.Call = e.effect(Effect{Create: &Create{
			Instance: in.ID, Name: in.Name, Cloud: in.Cloud, Candidates: in.Candidates, Disk: in.Resources.Disk, Prefix: in.Prefix, Owner: in.Owner, Pool: in.Pool, Template: in.Template,
		}})
	}
}

// beginCreate records that the instance is requested from now on. If time has passed since the plan, it checks the
// limits and budgets again and returns false if they are exceeded.
func (e *Engine) beginCreate(in *fleet.Member) bool {
	late := in.Asked < e.s.Now
	in.Asked = e.s.Now
	if late {
		e.changed(in) // its commitment
		if why, over := e.overLimit(in); over {
			e.stop(in, why)
			return false
		}
	}
	in.Begun = true
	e.writeInstance(in)
	return true
}

// unwanted reports whether an instance should not be created after all, and why.
func (e *Engine) unwanted(in *fleet.Member, c *Cloud) (why Verdict, so bool) {
	if why, so := e.departs(in); so || in.Held() {
		return why, so
	}
	switch {
	case e.s.Closing:
		return e.verdict(drover.ReasonClosing, "the fleet is shutting down"), true
	case c == nil:
		return e.verdict(drover.ReasonTypeRemoved, "its cloud is no longer configured"), true
	case !in.Begun && !in.Awaited():
		return e.verdict(drover.ReasonIdle, "it is no longer needed"), true
	}
	return Verdict{}, false
}

// callsLeft returns how many more create calls a cloud may have in flight. Booting instances do not count; instances
// that are leaving while their call is in flight do.
func (e *Engine) callsLeft(cloud string) int {
	left := e.limits(cloud).MaxCreating
	for _, in := range e.fleet.Index().Creating {
		if left <= 0 {
			return 0
		}
		if in.Cloud == cloud && len(in.Candidates) > 0 && in.Call != 0 {
			left--
		}
	}
	return max(0, left)
}

// touchCreating checks instances that wait for a create call, only as many as may call: thousands may wait.
func (e *Engine) touchCreating(cloud string) {
	left := e.callsLeft(cloud)
	if left == 0 {
		return
	}
	for _, in := range slices.Clone(e.fleet.Index().Creating) {
		if left == 0 {
			return
		}
		if in.Cloud == cloud && in.State == drover.InstanceCreating && in.Call == 0 && in.Retry <= e.s.Now && !e.waitsForThrottle(in) {
			e.touch(in)
			left--
		}
	}
}

func (e *Engine) checkBooting(in *fleet.Member) {
	why, useless := e.useless(in)
	e.runsUnseen(in)
	switch {
	case in.State.Ready():
	case in.NoLogin && in.Ready != 0 && !in.Off && !useless: // lists show whether it exists
	case in.Held():
		e.dial(in)
	case e.s.Now >= e.bootDeadline(in) && (in.TriedDial() || in.NoLogin) && !e.unlisted(in) && (!in.ShouldBeConnected() || e.blames(in)):
		cause, what := verdict.BootTimeout, "did not boot within"
		if in.Ready != 0 {
			cause, what = Cause(drover.ReasonSilent), "silent for"
		}
		e.breakInstance(in, e.verdict(cause, "%s %v%s", what, e.s.Now.Sub(e.bootBegan(in)).Round(time.Second), lastFailure(in)))
	case useless:
		e.stop(in, why)
	default:
		e.dial(in)
	}
}

// useless reports whether waiting for an instance that is booting or unknown is pointless, and why. One that departs
// but may run attempts is waited for.
func (e *Engine) useless(in *fleet.Member) (why Verdict, so bool) {
	if len(in.Load) > 0 || in.Held() || !e.nodeDrained(in) {
		return Verdict{}, false
	}
	why, so = e.departs(in)
	switch {
	case so && e.recordsCurrent() && (e.s.Draining || in.Begun && in.Ready == 0):
		return why, true
	case e.s.Closing && e.s.Now >= in.KeepUntil:
		return e.verdict(drover.ReasonClosing, "the fleet is shutting down"), true
	case e.unwantedFor(in) >= e.life().IdleTimeout && in.Unwanted != 0:
		return e.verdict(drover.ReasonIdle, "it is no longer needed"), true
	}
	return Verdict{}, false
}

// unwantedFor returns for how long nothing has waited for a booting instance.
func (e *Engine) unwantedFor(in *fleet.Member) time.Duration {
	switch wanted := in.Awaited() || in.Standby > 0 || !in.Begun || in.Ready != 0 || !e.recordsCurrent(); {
	case wanted:
		in.Unwanted = 0
	case in.Unwanted == 0:
		in.Unwanted = e.s.Now
	}
	return e.s.Now.Sub(cmp.Or(in.Unwanted, e.s.Now))
}

// lastFailure returns the last error in reaching the instance, as a suffix for a message.
func lastFailure(in *fleet.Member) string {
	if in.Reason == nil {
		return ""
	}
	return ": " + in.Reason.Text
}

// bootBegan returns since when an instance is waited for: its creation, which a restart does not change, or, if it had
// booted before, when this controller first saw it.
func (e *Engine) bootBegan(in *fleet.Member) drover.Time {
	if in.Ready != 0 {
		return in.Silent
	}
	return in.Created
}

func (e *Engine) bootDeadline(in *fleet.Member) drover.Time {
	if in.Woken != 0 {
		return max(in.Silent.Add(e.life().ProbeTimeout), in.Woken.Add(e.life().BootTimeout))
	}
	if in.Ready != 0 {
		return in.Silent.Add(e.life().ProbeTimeout)
	}
	at := max(in.Created.Add(e.life().BootTimeout), e.s.Looking.Add(e.life().ProbeInterval))
	if !in.Begun || !e.recordsCurrent() { // it was adopted and may have booted long ago
		at = max(at, in.Silent.Add(e.life().ProbeTimeout))
	}
	return at
}

func (e *Engine) checkReady(in *fleet.Member) {
	switch {
	case in.NoLogin:
		e.checkUnseen(in)
	case !in.Connected && !in.Held() && e.s.Now >= in.Silent.Add(e.life().ProbeTimeout) && in.TriedDial() && !e.unlisted(in) && e.blames(in):
		e.breakInstance(in, e.verdict(drover.ReasonSilent, "silent for %v%s", e.s.Now.Sub(in.Silent).Round(time.Second), lastFailure(in)))
	case !in.Connected:
		e.dial(in)
	case e.due(e.idleDeadline(in)): // it is connected, so nothing unknown has started there
		e.stop(in, e.whyIdle(in))
	default:
		if in.Expanding() {
			e.retryGrowing(in)
		}
		e.checkAttempts(in)
	}
}

// dial requests a connection to the instance, one try at a time. An instance that showed a wrong host key is never
// logged in to. An instance unknown to this controller must pass the boot probe again, since it may have broken
// meanwhile (behaviour D4).
func (e *Engine) dial(in *fleet.Member) {
	if in.Dial != 0 || in.Retry > e.s.Now || in.ProviderID == "" || in.Broken || in.NoLogin {
		return
	}
	in.Dial = e.effect(Effect{Connect: &Connect{
		Instance: in.ID, Name: in.CreatedName(), Cloud: in.Cloud, ProviderID: in.ProviderID, HostKey: in.HostKey, Pool: in.Pool,
		Probe: in.Ready == 0 || in.State == drover.InstanceUnknown || in.State == drover.InstanceBooting || !in.Heard, Apart: in.Isolated(), Arch: in.Type.Resources.Arch, Addresses: in.Addresses,
	}})
}

func (e *Engine) nextDial(in *fleet.Member) drover.Time {
	if in.Connected || in.Dial != 0 || in.ProviderID == "" || in.Broken || in.NoLogin {
		return 0
	}
	return max(in.Retry, 1)
}

// nextDestroy returns when the next destroy call may be made.
func (e *Engine) nextDestroy(in *fleet.Member) drover.Time {
	at := max(in.Retry, in.BrokenHookUntil)
	if c := e.cloud(in.Cloud); c != nil {
		at = max(at, c.NoDestroy)
	}
	return at
}

// checkStopping repeats the destroy call until the cloud no longer lists the instance.
func (e *Engine) checkStopping(in *fleet.Member) {
	if in.Call != 0 || in.GoingUnlisted() || e.nextDestroy(in) > e.s.Now {
		return
	}
	in.Retry = e.s.Now.Add(e.life().ShutdownTimeout)
	in.ByName = in.ProviderID == ""
	in.Call = e.effect(Effect{Destroy: &Destroy{Instance: in.ID, Name: in.Name, Cloud: in.Cloud, ProviderID: in.ProviderID}})
}
