package engine

import (
	"cmp"
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// ExplainInstance explains an instance, by anything that Find accepts, and what will change its state.
func (e *Engine) ExplainInstance(name string) (drover.Explanation, bool) {
	if in := e.find(name); in != nil {
		return e.explainInstance(in), true
	}
	return drover.Explanation{}, false
}

func (e *Engine) explainInstance(in *fleet.Member) drover.Explanation {
	x := drover.Explanation{Subject: in.Name}
	if in.State != drover.InstanceStopping {
		e.say(&x, e.whyUnusual(in)...)
	}
	e.say(&x, e.whyInState(in)...)
	x.Since = x.Reasons[len(x.Reasons)-1].Since
	return x
}

// whyUnusual explains what an instance differs in from others in its state.
func (e *Engine) whyUnusual(in *fleet.Member) []Verdict {
	why := present(in.IdleReason, in.Reclaimed, in.Unhealthy)
	if cause, departs := e.departs(in); departs && len(why) == 0 {
		why = append(why, cause)
	}
	if in.Broken {
		why = append(why, *in.Reason)
	}
	if in.State.Ready() && !e.passesCheck(in) && in.Unhealthy == nil && !in.Broken {
		why = append(why, e.whyUnfit(in))
	}
	return append(why, present(in.NodeWait)...)
}

// whyInState explains an instance's state.
func (e *Engine) whyInState(in *fleet.Member) []Verdict {
	switch in.State {
	case drover.InstanceCreating:
		return []Verdict{e.whyCreating(in)}
	case drover.InstanceUnknown, drover.InstanceBooting:
		return []Verdict{e.whyComing(in)}
	case drover.InstanceStopped:
		return []Verdict{e.whyStopped(in)}
	case drover.InstanceStopping:
		return e.whyStopping(in)
	}
	if !in.Connected && !in.NoLogin {
		return []Verdict{e.whySilent(in)}
	}
	if in.State == drover.InstanceRunning {
		return []Verdict{{Cause: drover.ReasonRunning, Text: "it runs " + countOf(len(in.Load), "attempt"), Since: in.Load[0].Started}}
	}
	return append([]Verdict{e.whyIsIdle(in)}, present(in.GrowFailed)...)
}

// whyUnfit explains why a ready instance does not count as ready in its pool.
func (e *Engine) whyUnfit(in *fleet.Member) Verdict {
	if in.Unfit != nil {
		return *in.Unfit
	}
	return Verdict{Cause: drover.ReasonCheck, Text: "its health check has not passed yet", Since: in.Ready, Until: e.checkDeadline(in)}
}

func (e *Engine) whyCreating(in *fleet.Member) Verdict {
	limits := e.limits(in.Cloud)
	why := Verdict{Cause: drover.ReasonBooting, Since: in.Asked, Until: e.createDeadline(in)}
	c := e.cloud(in.Cloud)
	switch {
	case in.Call != 0:
		why.Text = "its cloud has not answered the create request yet"
	case c == nil:
		why.Cause, why.Text, why.Until = drover.ReasonTypeRemoved, "its cloud is no longer configured", 0
	case c.NextCreate > e.s.Now:
		why.Cause, why.Text, why.Until = Cause(drover.KindRateLimit), "its cloud is not accepting create requests at the moment", c.NextCreate
	case in.Retry > e.s.Now:
		why.Cause, why.Text, why.Until = drover.ReasonCreateFailed, "the create request will be retried"+lastFailure(in), in.Retry
	case e.callsLeft(in.Cloud) == 0:
		why.Cause, why.Text, why.Until = drover.ReasonLimit, fmt.Sprintf("waiting for an earlier create request to finish (max_creating: %d)", limits.MaxCreating), 0
	case e.waitsForThrottle(in):
		most, _ := e.throttled(in)
		why.Cause, why.Text, why.Until = drover.ReasonCapacity, fmt.Sprintf("waiting: its cloud ran out of capacity, so Drover requests only %s at a time", countOf(most, "instance")), 0
	default:
		why.Text = "its create request is about to be sent"
	}
	if in.Held() && why.Cause == verdict.Booting {
		why.Until = 0
	}
	return why
}

// whyComing explains what a booting or unknown instance waits for.
func (e *Engine) whyComing(in *fleet.Member) Verdict {
	why := Verdict{Cause: drover.ReasonBooting, Text: "it is booting", Since: in.Created, Until: e.bootDeadline(in)}
	switch {
	case in.State == drover.InstanceUnknown:
		why.Text, why.Since = "it has not answered since this controller started", e.s.Looking
	case in.Broken:
		why.Text = "it has not become ready"
	}
	if in.Reason != nil && in.Reason.Cause == verdict.Unreachable {
		why.Text += lastFailure(in)
	}
	if e.partitioned(in) != 0 {
		why.Cause, why.Text = drover.ReasonPartition, why.Text+"; no other instance in its cloud is answering either, so the controller assumes a network failure"
		why.Until = e.doubtEnds(e.cloud(in.Cloud).Partition)
	}
	if in.Held() || in.Broken {
		why.Until = 0
	}
	return why
}

// whyLate explains what delays the first of these instances that is coming and delayed, or waits for its node.
func (e *Engine) whyLate(all []*fleet.Member) []Verdict {
	for _, in := range all {
		if !in.Coming() && !e.awaitsNode(in) {
			continue
		}
		if why := e.whyDelayed(in); len(why) > 0 {
			return why
		}
	}
	return nil
}

// awaitsNode reports whether a ready instance's node has yet to join its cluster, or to be drained.
func (e *Engine) awaitsNode(in *fleet.Member) bool {
	return in.State.Ready() && (in.NodeWait != nil || e.inGroup(in) && in.Joined == 0 && !e.leaving(in))
}

// whyDelayed explains what delays an instance; nothing if it is just booting.
func (e *Engine) whyDelayed(in *fleet.Member) (why []Verdict) {
	own := e.whyInState(in)[0]
	if in.NodeWait != nil {
		own = *in.NodeWait
	}
	if own.Cause != drover.ReasonBooting || in.Reason != nil {
		own.Text = in.Name + ": " + own.Text
		why = append(why, own)
	}
	if c := e.cloud(in.Cloud); c != nil && c.Unlisted.Cause != "" {
		why = append(why, e.whyUnlisted(c))
	}
	return why
}

// whyStopped explains what a stopped instance waits for.
func (e *Engine) whyStopped(in *fleet.Member) Verdict {
	why := Verdict{Cause: drover.ReasonPool, Text: "stopped; Drover starts it before renting another instance", Since: cmp.Or(in.Switched, e.s.Now)}
	switch {
	case in.Waking:
		why.Text, why.Since, why.Until = "waiting for its cloud to start it", in.Woken, in.Retry
	case in.Switched == 0:
		why.Text, why.Until = "waiting for its cloud to stop it"+refusal(in), in.Retry
	case in.Held():
		why.Text = "stays stopped until it is released or killed"
	case in.Retry > e.s.Now:
		why.Text, why.Until = "stopped; starting it failed and will be retried", in.Retry
	}
	return why
}

func (e *Engine) whyStopping(in *fleet.Member) []Verdict {
	next := Verdict{Cause: in.Reason.Cause, Text: "waiting for its cloud to destroy it" + refusal(in), Since: in.Reason.Since, Until: e.nextDestroy(in)}
	switch {
	case in.GoingUnlisted():
		next.Text = "its cloud has accepted the destroy request and no longer lists it; lists may lag, so Drover waits before it counts the instance as gone"
		next.Until = in.Missing.Add(in.MissingFor(e.lag(in)))
	case in.Accepted:
		// Repeating the call may change nothing: the next good list does.
		next.Text, next.Until = "its cloud has accepted the destroy request; Drover repeats the request until no list shows the instance", 0
	}
	return []Verdict{*in.Reason, next}
}

// refusal returns why the last call to stop or destroy an instance failed, as a suffix for a message.
func refusal(in *fleet.Member) string {
	if in.Fails == 0 || in.Refused == nil {
		return ""
	}
	return ", which failed: " + in.Refused.Text
}

func (e *Engine) whySilent(in *fleet.Member) Verdict {
	why := Verdict{Cause: drover.ReasonSilent, Text: "instance " + in.Name + " is not answering", Since: in.Silent}
	if in.Reason != nil && in.Reason.Cause == verdict.Unreachable {
		why.Text += lastFailure(in)
	}
	switch {
	case e.partitioned(in) != 0:
		why.Cause, why.Text = drover.ReasonPartition, why.Text+"; no other instance in its cloud is answering either, so the controller assumes a network failure"
		why.Until = e.doubtEnds(e.cloud(in.Cloud).Partition)
	case !in.Held() && !in.Broken:
		why.Until = in.Silent.Add(e.life().ProbeTimeout)
	}
	return why
}

func (e *Engine) whyIsIdle(in *fleet.Member) Verdict {
	why := Verdict{Cause: drover.ReasonIdle, Text: fmt.Sprintf("will be destroyed after %v without work", e.life().IdleTimeout), Since: in.IdleSince, Until: e.idleDeadline(in)}
	if hold, because := e.holding(in); because != "" {
		why.Text = fmt.Sprintf("kept for %v: %s", hold.Round(time.Second), because)
	}
	why.Text += whose(in)
	_, leaves := e.drainsNode(in)
	switch {
	case in.Held():
		why.Text = "stays until it is released or killed"
	case in.Unhealthy != nil && why.Until > in.Unhealthy.Since:
		why.Text = "kept for inspection because it is broken"
	case len(in.Orphans) > 0:
		why.Text = "stopping " + countOf(len(in.Orphans), "unknown attempt")
	case in.ForGang:
		why.Text = fmt.Sprintf("reserved for %s of incomplete gangs", countOf(in.Standby, "job"))
	case in.Standby > 0:
		why.Text = fmt.Sprintf("reserved for %s that will restart here once interrupted instances are gone", countOf(in.Standby, "attempt"))
	case in.Expanding():
		why.Cause, why.Text = drover.ReasonGrowing, fmt.Sprintf("its volume is growing from %s to %s for waiting jobs", in.Resources.Disk.Rounded(), in.Grow.Rounded())
	case leaves && !e.nodeDrained(in):
		why.Cause, why.Text, why.Until = drover.ReasonPool, "waiting for its node to be drained", 0
	case e.inGroup(in) && in.Joined == 0:
		why.Cause, why.Text, why.Until = drover.ReasonPool, "its node has not joined the cluster yet", e.overdue(in)
	case in.Pooled() && why.Until == 0:
		why.Cause, why.Text = drover.ReasonPool, "kept by pool "+in.Pool
	case in.KeepUntil > e.s.Now:
		why.Text = "kept for inspection because a job failed on it"
	}
	return why
}
