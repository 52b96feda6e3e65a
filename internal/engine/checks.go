package engine

import (
	"fmt"
	"strings"

	"drover"
	"drover/internal/engine/fleet"
)

// A pool may have its instances' health checked by the controller, which tries a port of each from where it is.
//
//   - An instance is ready for its pool once its check has passed. One whose check has not passed in time is broken.
//   - One whose check fails ails, and is replaced. But a check also fails if the controller's own network does. So another instance of its cloud has to have
//     passed meanwhile, which proves that the controller hears, or there are fewer than make it doubt itself.
//   - While none of a cloud passes, the controller takes itself for cut off, for as long as it does where none answers: see Partition.

// checked reports whether the instance's health is checked.
func (e *Engine) checked(in *fleet.Member) bool {
	spec := e.poolSpec(in)
	return spec != nil && spec.CheckWithin > 0
}

// fit reports whether nothing is known against the instance's health.
func (e *Engine) fit(in *fleet.Member) bool {
	return !e.checked(in) || in.Passed != 0 && in.Unfit == nil
}

// healthChecked takes what the check of an instance's health found.
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

// passed notes that an instance's check has passed, which ends the doubt about its cloud.
func (e *Engine) passed(in *fleet.Member) {
	in.Unfit, in.Vouched = nil, false
	if c := e.cloud(in.Cloud); c != nil && c.Checks != (Partition{}) {
		if c.Checks.Since != 0 {
			e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s passes its health check: cloud %s is reachable again", in.Name, c.Name), Instance: in.Name, Cloud: c.Name})
		}
		c.Checks = Partition{}
		e.touchUnfit(c)
	}
	if in.Passed == 0 {
		in.Passed = e.s.Now
		e.note(Note{Level: Info, Text: fmt.Sprintf("instance %s passes its health check", in.Name), Instance: in.Name})
		e.welcome(in)
		e.adapt(in)
		e.needsPlacing, e.needsPlan = true, true
		e.fleet.Moved()
		e.writeInstance(in)
	}
}

// welcome tells that an instance is ready, once, unless its check has still to pass.
func (e *Engine) welcome(in *fleet.Member) {
	if in.Untold = e.checked(in) && in.Passed == 0; in.Untold {
		return
	}
	if !e.inGroup(in) { // whose nodes have to join first
		e.proves(in, true)
	}
	e.fire(drover.HookReady, in, e.verdict(drover.ReasonRunning, "%s", in.Where()))
}

// checkHealth gives up an instance whose check does not pass, if that may be held against it.
func (e *Engine) checkHealth(in *fleet.Member) {
	switch {
	case in.Untold && !e.checked(in):
		e.welcome(in)
		e.writeInstance(in)
	case !e.checked(in) || !in.State.Ready() || in.Held() || e.going(in):
	case in.Passed == 0 && e.s.Now >= e.passesBy(in) && e.counts(in):
		e.proves(in, false)
		e.breakInstance(in, e.verdict(drover.ReasonCheck, "its health check did not pass within %v%s", e.poolSpec(in).CheckWithin, unfitWords(in)))
	case in.Passed != 0 && in.Unfit != nil && e.counts(in):
		why := *in.Unfit
		why.Since = e.s.Now
		e.markUnhealthy(in, why)
	}
}

// checkFails begins what is said of an instance whose check fails.
const checkFails = "its health check fails: "

// unfitWords is what the last check met.
func unfitWords(in *fleet.Member) string {
	if in.Unfit == nil {
		return ""
	}
	return ": " + strings.TrimPrefix(in.Unfit.Text, checkFails)
}

// passesBy is when an instance's check has to have passed first.
func (e *Engine) passesBy(in *fleet.Member) drover.Time {
	return max(in.Ready, e.s.Looking, e.s.Configured).Add(e.poolSpec(in).CheckWithin)
}

// nextHealth is when an instance may be given up for its health; 0 if only an event has it be.
func (e *Engine) nextHealth(in *fleet.Member) drover.Time {
	if !e.checked(in) || !in.State.Ready() || in.Held() || e.going(in) || in.Passed != 0 && in.Unfit == nil {
		return 0
	}
	if at := e.passesBy(in); in.Passed == 0 && at > e.s.Now {
		return at
	}
	if c := e.cloud(in.Cloud); c != nil {
		return later(e.doubtEnds(c.Checks), e.s.Now)
	}
	return 0
}

// counts reports whether a check that fails may be held against an instance: another of its cloud passed meanwhile, or there are too few to doubt, or the
// doubt has lasted long enough.
func (e *Engine) counts(in *fleet.Member) bool {
	c := e.cloud(in.Cloud)
	if c == nil || in.Vouched || c.Checks.Over {
		return true
	}
	if c.Checks.Since == 0 {
		failing, all := e.failing(c.Name)
		if failing < fewest {
			return all
		}
		if !all { // which either passes next, and vouches for the others, or fails too
			return false
		}
		c.Checks.Since = e.s.Now
		why := e.whyUnchecked(c)
		e.note(Note{Level: Warn, Text: why.Text, Cloud: c.Name, Reason: new(why.Reason())})
	}
	if at := e.doubtEnds(c.Checks); at != 0 && e.s.Now >= at {
		c.Checks = Partition{Over: true}
		text := fmt.Sprintf("no instance of cloud %s has passed its health check for %v: they are now given up", c.Name, e.life().PartitionTimeout)
		e.note(Note{Level: Warn, Text: text, Cloud: c.Name})
		e.touchUnfit(c)
	}
	return c.Checks.Since == 0
}

// failing counts a cloud's instances that fail their check, and reports whether none passes. Those on their way out do not count.
func (e *Engine) failing(cloud string) (n int, all bool) {
	for _, name := range e.pools.names {
		for _, in := range e.pools.members[name] {
			switch {
			case in.Cloud != cloud || !e.checked(in) || !in.State.Ready() || e.going(in):
			case in.Unfit != nil, in.Passed == 0 && e.s.Now >= e.passesBy(in):
				n++
			case in.Passed != 0:
				return n, false
			}
		}
	}
	return n, true
}

// touchUnfit has the instances of a cloud looked at again whose check does not pass.
func (e *Engine) touchUnfit(c *Cloud) {
	for _, name := range e.pools.names {
		for _, in := range e.pools.members[name] {
			if in.Cloud == c.Name && e.checked(in) && !e.fit(in) {
				e.touch(in)
			}
		}
	}
}

// forgetChecks forgets what was found before a time in which nobody looked.
func (e *Engine) forgetChecks() {
	for _, name := range e.pools.names {
		for _, in := range e.pools.members[name] {
			if in.Unfit != nil {
				in.Unfit, in.Vouched = nil, false
				e.pools.revision++
				e.touch(in)
			}
		}
	}
}

// whyUnchecked says why no instance of a cloud is given up for its health.
func (e *Engine) whyUnchecked(c *Cloud) Verdict {
	text := fmt.Sprintf("no instance of cloud %s passes its health check: the controller assumes that its own network has failed, and keeps them", c.Name)
	return Verdict{Cause: drover.ReasonPartition, Text: text, Since: c.Checks.Since, Until: later(e.doubtEnds(c.Checks), e.s.Now)}
}

// Check is an instance whose health is to be checked, and what is known of it.
type Check struct {
	Instance   int64
	Name       string
	Pool       string
	Cloud      string
	ProviderID string
	Addresses  drover.Addresses
	Passed     bool // it has, and does as far as is known
	Fails      bool
	Vouched    bool // another of its cloud has passed since
}

// Checks are the instances whose health is to be checked, by pool and ID. GroupRevision changes whenever they may.
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
