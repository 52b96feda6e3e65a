package engine

import (
	"fmt"
	"strings"

	"drover"
	"drover/internal/engine/fleet"
)

// The controller can check the health of a pool's instances by connecting to a port of each.
//
//   - An instance is ready for its pool once its check has passed. If it does not pass in time, it is broken, or, while
//     jobs run there, unhealthy.
//   - An instance whose check fails is unhealthy and is replaced. But checks also fail if the controller's own network
//     does. So either another instance of the cloud must have passed meanwhile, or there are fewer instances than
//     suffice to assume a partition.
//   - While none of a cloud's instances passes, the controller assumes a partition, for as long as if none answered:
//     see Partition.

// checked reports whether the instance's health is checked.
func (e *Engine) checked(in *fleet.Member) bool {
	spec := e.poolSpec(in)
	return spec != nil && spec.CheckWithin > 0
}

// passesCheck reports whether no health check speaks against the instance.
func (e *Engine) passesCheck(in *fleet.Member) bool {
	return !e.checked(in) || in.Passed != 0 && in.Unfit == nil
}

// healthChecked handles the result of a health check.
func (e *Engine) healthChecked(b HealthChecked) {
	in := e.fleet.Member(b.Instance)
	if in == nil || !e.checked(in) || !in.State.Ready() || in.Broken {
		return
	}
	if b.Text == "" {
		e.passed(in)
	} else {
		was := in.Unfit
		why := e.verdict(drover.ReasonCheck, checkFails+"%.500s", b.Text)
		if was != nil {
			why.Since = was.Since
		}
		in.Unfit, in.Vouched = &why, b.Others
	}
	e.pools.revision++
	e.touch(in)
}

// passed records that an instance's check has passed, which ends an assumed partition.
func (e *Engine) passed(in *fleet.Member) {
	in.Unfit, in.Vouched = nil, false
	if c := e.cloud(in.Cloud); c != nil && c.Checks != (Partition{}) {
		if c.Checks.Since != 0 {
			e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s has passed its health check: cloud %s is reachable again", in.Name, c.Name), Instance: in.Name, Cloud: c.Name})
		}
		e.setChecks(c, Partition{})
		e.touchUnfit(c)
	}
	if in.Passed == 0 {
		in.Passed = e.s.Now
		e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s has passed its health check", in.Name), Instance: in.Name})
		e.announceReady(in)
		e.adapt(in)
		e.pending.Place, e.pending.Plan = true, true
		e.writeRevised(in)
	}
}

// announceReady announces once that an instance is ready, after its first passed check if it has one. An unhealthy one is
// announced when it recovers.
func (e *Engine) announceReady(in *fleet.Member) {
	if in.ReadyHookPending = e.checked(in) && in.Passed == 0; in.ReadyHookPending || in.Unhealthy != nil {
		return
	}
	if !e.inGroup(in) { // their nodes have to join first
		e.countTemplate(in, true)
	}
	e.fireReady(in)
}

func (e *Engine) fireReady(in *fleet.Member) {
	e.fire(drover.HookReady, in, e.verdict(drover.ReasonRunning, "%s", in.Where()))
}

// checkHealth gives up an instance whose check fails, unless a partition explains it.
func (e *Engine) checkHealth(in *fleet.Member) {
	switch {
	case in.ReadyHookPending && e.poolSpec(in) != nil && !e.checked(in):
		e.announceReady(in)
		e.writeInstance(in)
	case !e.checked(in) || !in.State.Ready() || in.Held() || e.leaving(in):
	case in.Passed == 0 && e.s.Now >= e.checkDeadline(in) && e.failureCounts(in):
		e.countTemplate(in, false)
		why := e.verdict(drover.ReasonCheck, "its health check did not pass within %v%s", e.poolSpec(in).CheckWithin, unfitWords(in))
		if len(in.Load) > 0 { // jobs use it, so it was ready before this check or start
			e.markUnhealthy(in, why)
			return
		}
		e.breakInstance(in, why)
	case in.Passed != 0 && in.Unfit != nil && e.failureCounts(in):
		why := *in.Unfit
		why.Since = e.s.Now
		e.markUnhealthy(in, why)
	}
}

// checkFails is the prefix of the reason while a check fails.
const checkFails = "its health check is failing: "

// unfitWords returns the last check's failure, as a suffix for a message.
func unfitWords(in *fleet.Member) string {
	if in.Unfit == nil {
		return ""
	}
	return ": " + strings.TrimPrefix(in.Unfit.Text, checkFails)
}

// checkDeadline returns when an instance's first check since its last start must have passed.
func (e *Engine) checkDeadline(in *fleet.Member) drover.Time {
	return max(in.Ready, in.Woken, e.s.Looking, e.s.Configured).Add(e.poolSpec(in).CheckWithin)
}

// nextHealth returns when an instance may be given up for its health; 0 if only an event can cause that.
func (e *Engine) nextHealth(in *fleet.Member) drover.Time {
	if !e.checked(in) || !in.State.Ready() || in.Held() || e.leaving(in) || in.Passed != 0 && in.Unfit == nil {
		return 0
	}
	if at := e.checkDeadline(in); in.Passed == 0 && at > e.s.Now {
		return at
	}
	if c := e.cloud(in.Cloud); c != nil && c.Checks.Since != 0 {
		return later(e.doubtEnds(c.Checks), e.s.Now)
	}
	return e.s.Now.Add(e.life().ProbeInterval) // the instances that might pass may have left
}

// setChecks records whether a partition of a cloud's health checks is assumed, which is a reason of pools.
func (e *Engine) setChecks(c *Cloud, p Partition) {
	c.Checks = p
	e.pools.reasons++
}

// failureCounts reports whether a failing check counts against an instance: another of its cloud has passed meanwhile,
// or there are too few to assume a partition, or PartitionTimeout has passed.
func (e *Engine) failureCounts(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	if c == nil || in.Vouched || c.Checks.Over {
		return true
	}
	if c.Checks.Since == 0 {
		failing, all := e.failing(c.Name)
		if failing < minSilent {
			return all
		}
		if !all { // the undecided ones either pass, which clears the others, or fail too
			return false
		}
		e.setChecks(c, Partition{Since: e.s.Now})
		why := e.whyUnchecked(c)
		e.note(Note{Level: Warn, Text: why.Text, Cloud: c.Name, Reason: new(why.Reason())})
	}
	if e.due(e.doubtEnds(c.Checks)) {
		e.setChecks(c, Partition{Over: true})
		text := fmt.Sprintf("no instance of cloud %s has passed its health check for %v, so the controller gives up on all of them", c.Name, e.life().PartitionTimeout)
		e.note(Note{Level: Warn, Text: text, Cloud: c.Name})
		e.touchUnfit(c)
	}
	return c.Checks.Since == 0
}

// failing counts a cloud's instances that fail their check, and reports whether none passes. Leaving instances do not
// count.
func (e *Engine) failing(cloud string) (n int, all bool) {
	for _, in := range e.fleet.All() {
		switch {
		case in.Cloud != cloud || !e.checked(in) || !in.State.Ready() || e.leaving(in):
		case in.Unfit != nil, in.Passed == 0 && e.s.Now >= e.checkDeadline(in):
			n++
		case in.Passed != 0:
			return n, false
		}
	}
	return n, true
}

// touchUnfit checks a cloud's instances that do not pass again.
func (e *Engine) touchUnfit(c *Cloud) {
	for _, in := range e.fleet.All() {
		if in.Cloud == c.Name && !e.passesCheck(in) {
			e.touch(in)
		}
	}
}

// forgetChecks drops the results from before a gap in observation.
func (e *Engine) forgetChecks() {
	for _, in := range e.fleet.All() {
		if in.Unfit != nil {
			in.Unfit, in.Vouched = nil, false
			e.pools.revision++
			e.touch(in)
		}
	}
}

// whyUnchecked explains why no instance of a cloud is given up for its health.
func (e *Engine) whyUnchecked(c *Cloud) Verdict {
	text := fmt.Sprintf("no instance of cloud %s is passing its health check: the controller assumes that its own network has failed, and keeps the instances", c.Name)
	return Verdict{Cause: drover.ReasonPartition, Text: text, Since: c.Checks.Since, Until: later(e.doubtEnds(c.Checks), e.s.Now)}
}

// Check describes an instance to be health-checked, and what is known about it.
type Check struct {
	Instance   int64
	Name       string
	Pool       string
	Cloud      string
	ProviderID string
	Addresses  drover.Addresses
	Passed     bool // its last known result is a pass
	Fails      bool
	Vouched    bool // another of its cloud has passed since
}

// Checks returns the instances to be health-checked, by pool and ID. Whenever they change, so does GroupRevision.
func (e *Engine) Checks() (all []Check) {
	for _, p := range e.pools.list {
		if p.spec.CheckWithin == 0 {
			continue
		}
		for _, in := range e.pools.members[p.Name] {
			if in.State.Ready() && !in.Broken && in.ProviderID != "" {
				all = append(all, Check{in.ID, in.Name, in.Pool, in.Cloud, in.ProviderID, in.Addresses, in.Passed != 0 && in.Unfit == nil, in.Unfit != nil, in.Vouched})
			}
		}
	}
	return all
}
