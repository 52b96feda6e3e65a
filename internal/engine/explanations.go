package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// Explain explains an unfinished job, all of an array, or one element.
func (e *Engine) Explain(id drover.JobID) (drover.Explanation, bool) {
	j := e.job(id.Number)
	if j == nil {
		return drover.Explanation{}, false
	}
	x := drover.Explanation{Subject: id.String(), Since: j.Since, Likely: drover.Seconds(e.likely(j).Mean())}
	if x.Count = j.Waits(id); x.Count > 0 {
		x.Waiting, x.Reasons = true, verdict.Reasons(e.whyQueued(j, id)...)
	}
	running := e.whyRunning(j, id)
	if x.Count == 0 && len(running) > 0 {
		x.Since = running[0].Since
	}
	say(&x, running...)
	return x, len(x.Reasons) > 0
}

// whyQueued explains why a job or element waits, for each of its groups.
func (e *Engine) whyQueued(j *Job, id drover.JobID) (why []Verdict) {
	if r, ok := e.whyHeld(j); ok {
		return []Verdict{r}
	}
	if j.Postponed.Has(id.Index) {
		return e.whyPostponed(j, id)
	}
	if id.Index >= 0 || !j.Array.Set {
		if g := e.byKey[e.queue.KeyOf(j).With(j.MemoryOf(id.Index))]; g != nil {
			return e.whyIn(g, j, j.WaitingRanges(g.Key).Rank(id.Index), 1)
		}
	}
	if g := e.byKey[e.queue.KeyOf(j)]; g != nil {
		why = e.whyIn(g, j, 0, j.WaitingIn(g.Key))
	}
	for _, grown := range j.Grown {
		if g := e.byKey[e.queue.KeyOf(j).With(grown.Memory)]; g != nil {
			why = append(why, e.whyIn(g, j, 0, j.WaitingIn(g.Key))...)
		}
	}
	if why = append(why, e.whyPostponed(j, id)...); len(why) == 0 {
		why = []Verdict{{Cause: drover.ReasonPlanning, Text: planningText, Since: j.Since}}
	}
	return why
}

// whyIn explains why n of the job's elements wait in a group, with place other elements of the job ahead of them.
func (e *Engine) whyIn(g *group, j *Job, place, n int) []Verdict {
	if n == 0 {
		return nil
	}
	for _, o := range g.Jobs {
		if o == j {
			break
		}
		place += o.WaitingIn(g.Key)
	}
	booting := min(n, max(0, g.booting()-place))
	if booting == 0 {
		return e.whyUnreserved(g, j)
	}
	why := []Verdict{whyBooting(e.arrivalsOf(g)[g.Key])}
	if booting < n {
		return append(why, e.whyUnreserved(g, j)...)
	}
	return append(why, e.whyGang(g)...)
}

// whyUnreserved explains why elements of a group without a reservation wait. The schedule timeout is that of job j.
func (e *Engine) whyUnreserved(g *group, j *Job) []Verdict {
	why := []Verdict{g.Reason}
	if g.Refused != nil {
		why = append(why, *g.Refused)
	}
	if g.Reason.Cause == verdict.Blocked && e.totalRoom() == 0 {
		why = append(why, e.whyNoRoom(e.useOfAll))
	}
	if anew, known := e.costNewInstance(g); known && g.Reason.Cause == drover.ReasonEnding {
		boots := e.soloPrice(g.Key.Shape).For(e.bootTimes().usual)
		why = append(why, Verdict{Cause: drover.ReasonEnding, Text: fmt.Sprintf("a new instance would cost about %v for each, %v of it to boot", anew, boots), Since: g.Reason.Since})
	}
	if g.Reason.Cause == verdict.Limit {
		if a, cheapest := e.pricedOut(g); a != nil {
			dear := e.whyPricedOut(g, a, cheapest)
			dear.Since = max(j.Since, e.unpaidSince(g, a))
			why = append(why, dear)
		}
	}
	if limit := e.s.Settings.ScheduleTimeout; limit > 0 && g.Blocked != 0 {
		text := fmt.Sprintf("cancelled once it has been blocked for %v in total", limit)
		why = append(why, Verdict{Cause: drover.ReasonSchedule, Text: text, Since: g.Blocked, Until: g.Blocked.Add(limit - *j.BlockedIn(g.Key))})
	}
	return slices.Concat(why, e.whyGang(g), e.whyShare(g))
}

// arrivals are the instances that are coming for a group.
type arrivals struct {
	count int
	first *fleet.Member
	until drover.Time // when the first of them is given up
}

func (e *Engine) arrives(to *arrivals, in *fleet.Member) {
	if to.count++; to.count == 1 {
		to.first = in
	}
	to.until = sooner(to.until, e.arrivalDeadline(in))
}

// arrivalsOf finds what is coming for each of the groups, visiting each instance once.
func (e *Engine) arrivalsOf(groups ...*group) map[GroupKey]*arrivals {
	coming := make(map[GroupKey]*arrivals, len(groups))
	for _, g := range groups {
		coming[g.Key] = &arrivals{}
	}
	for _, in := range e.fleet.All() {
		for _, b := range in.Reservations {
			if to := coming[b.Group]; to != nil {
				e.arrives(to, in)
			}
		}
	}
	return coming
}

// whyBooting names the instances that are coming for a group, and when the first is given up.
func whyBooting(coming *arrivals) Verdict {
	why := Verdict{Cause: drover.ReasonBooting, Text: bootingText, Until: coming.until}
	if coming.count > 0 {
		why.Text += ": " + coming.first.Name
		why.Since = coming.first.Asked
	}
	if coming.count > 1 {
		why.Text += fmt.Sprintf(" and %d more", coming.count-1)
	}
	return why
}

// arrivalDeadline returns when a coming instance is given up.
func (e *Engine) arrivalDeadline(in *fleet.Member) drover.Time {
	if in.State == drover.InstanceCreating {
		return later(e.createDeadline(in), e.s.Now)
	}
	return later(e.bootDeadline(in), e.s.Now)
}

// whyRunning says where a job, or one element of it, runs.
func (e *Engine) whyRunning(j *Job, id drover.JobID) []Verdict {
	if id.Index < 0 && j.Array.Set {
		return e.howManyRun(j)
	}
	a := e.fleet.Attempt(id)
	if a == nil {
		return nil
	}
	in := e.fleet.Member(a.Instance)
	why := Verdict{Cause: drover.ReasonRunning, Text: fmt.Sprintf("attempt %d runs on %s", a.ID.Number, in.Name), Since: a.Started}
	switch {
	case a.State == drover.AttemptStarting:
		why.Text = fmt.Sprintf("attempt %d is being started on %s", a.ID.Number, in.Name)
	case a.State == drover.AttemptCollecting:
		why.Text, why.Until = fmt.Sprintf("attempt %d has ended on %s, and its output is being stored", a.ID.Number, in.Name), later(a.Retry, e.s.Now)
	}
	all := []Verdict{why}
	if a.Stop != nil {
		stop := *a.Stop
		stop.Text = "it is being stopped: " + stop.Text
		all = append(all, stop)
	}
	switch {
	case in.State == drover.InstanceStopping:
		all = append(all, Verdict{Cause: in.Reason.Cause, Text: "its instance is being destroyed: " + in.Reason.Text, Since: in.Reason.Since})
	case !in.Connected:
		all = append(all, e.whySilent(in))
	}
	return all
}

func (e *Engine) howManyRun(j *Job) []Verdict {
	live := e.attemptsOf(j)
	if len(live) == 0 {
		return nil
	}
	first := slices.MinFunc(live, func(a, b *Attempt) int { return cmp.Compare(a.Started, b.Started) })
	return []Verdict{{Cause: drover.ReasonRunning, Text: fmt.Sprintf("%d of %d run", len(live), j.Array.Size()), Since: first.Started}}
}

// ExplainInstance explains an instance, by anything that Find accepts, and what will change its state.
func (e *Engine) ExplainInstance(name string) (drover.Explanation, bool) {
	if in := e.find(name); in != nil {
		return e.explainInstance(in), true
	}
	return drover.Explanation{}, false
}

func (e *Engine) explainInstance(in *fleet.Member) drover.Explanation {
	x := drover.Explanation{Subject: in.Name}
	why, departs := e.departs(in)
	switch {
	case in.State == drover.InstanceStopping:
	case in.Told != nil:
		say(&x, *in.Told)
	case in.Reclaimed != nil, in.Unhealthy != nil:
	case departs:
		say(&x, why)
	}
	for _, why := range []*Verdict{in.Reclaimed, in.Unhealthy} {
		if why != nil && in.State != drover.InstanceStopping {
			say(&x, *why)
		}
	}
	if in.Broken && in.State != drover.InstanceStopping {
		say(&x, *in.Reason)
	}
	say(&x, e.whyInState(in)...)
	x.Since = x.Reasons[len(x.Reasons)-1].Since
	return x
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
		return []Verdict{{Cause: drover.ReasonRunning, Text: fmt.Sprintf("attempts on it: %d", len(in.Load)), Since: in.Load[0].Started}}
	}
	if in.GrowFailed != nil {
		return []Verdict{e.whyIsIdle(in), *in.GrowFailed}
	}
	return []Verdict{e.whyIsIdle(in)}
}

func (e *Engine) whyCreating(in *fleet.Member) Verdict {
	limits := e.limits(in.Cloud)
	why := Verdict{Cause: drover.ReasonBooting, Since: in.Asked, Until: later(e.createDeadline(in), e.s.Now)}
	c := e.cloud(in.Cloud)
	switch {
	case in.Call != 0:
		why.Text = "its cloud has not answered the create request yet"
	case c == nil:
		why.Cause, why.Text, why.Until = drover.ReasonTypeRemoved, "its cloud is no longer configured", 0
	case c.NextCreate > e.s.Now:
		why.Cause, why.Text, why.Until = Cause(drover.KindRateLimit), "its cloud accepts no create requests for a while", c.NextCreate
	case in.Retry > e.s.Now:
		why.Cause, why.Text, why.Until = drover.ReasonCreateFailed, "its cloud will be asked again"+lastFailure(in), in.Retry
	case e.callsLeft(in.Cloud) == 0:
		why.Cause, why.Text, why.Until = drover.ReasonLimit, fmt.Sprintf("waits for one of the %d create requests that may run at once", limits.MaxCreating), 0
	case e.waitsForThrottle(in):
		most, _ := e.throttled(in)
		why.Cause, why.Text, why.Until = drover.ReasonCapacity, fmt.Sprintf("waits, because its cloud ran out of capacity and is asked for only %d at a time", most), 0
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
	why := Verdict{Cause: drover.ReasonBooting, Text: "boots", Since: in.Created, Until: later(e.bootDeadline(in), e.s.Now)}
	switch {
	case in.State == drover.InstanceUnknown:
		why.Text, why.Since = "it has not answered since this controller started", e.s.Looking
	case in.Broken:
		why.Text = "has not become ready"
	}
	if in.Reason != nil && in.Reason.Cause == verdict.Unreachable {
		why.Text += lastFailure(in)
	}
	if e.partitioned(in) != 0 {
		why.Cause, why.Text = drover.ReasonPartition, why.Text+"; nor has any other instance in its cloud: the controller assumes a network failure"
		why.Until = later(e.partitionEnds(e.cloud(in.Cloud)), e.s.Now)
	}
	if in.Held() || in.Broken {
		why.Until = 0
	}
	return why
}

// whyStopped explains what a stopped instance waits for.
func (e *Engine) whyStopped(in *fleet.Member) Verdict {
	why := Verdict{Cause: drover.ReasonPool, Text: "stopped; it will be started before another is rented", Since: cmp.Or(in.Switched, e.s.Now)}
	switch {
	case in.Waking:
		why.Text, why.Since, why.Until = "its cloud is being asked to start it", in.Woken, later(in.Retry, e.s.Now)
	case in.Switched == 0:
		why.Text, why.Until = "its cloud is being asked to stop it", later(in.Retry, e.s.Now)
	case in.Retry > e.s.Now:
		why.Text, why.Until = "stopped; it could not be started, and will not be tried again for a while", in.Retry
	}
	return why
}

func (e *Engine) whyStopping(in *fleet.Member) []Verdict {
	next := Verdict{Cause: in.Reason.Cause, Text: "its cloud is being asked to destroy it", Since: in.Reason.Since, Until: later(e.nextDestroy(in), e.s.Now)}
	switch {
	case in.GoingUnlisted():
		next.Text = "its cloud has accepted the destroy request and does not list it; lists may lag, so it counts as gone only after a while"
		next.Until = later(in.Missing.Add(in.MissingFor(e.lag(in))), e.s.Now)
	case in.Accepted:
		// Repeating the call changes nothing: the next good list does.
		next.Text, next.Until = "its cloud has accepted the destroy request, and no list has shown yet that it is gone", 0
	}
	return []Verdict{*in.Reason, next}
}

func (e *Engine) whySilent(in *fleet.Member) Verdict {
	why := Verdict{Cause: drover.ReasonSilent, Text: "instance " + in.Name + " does not answer", Since: in.Silent}
	if in.Reason != nil && in.Reason.Cause == verdict.Unreachable {
		why.Text += lastFailure(in)
	}
	switch {
	case e.partitioned(in) != 0:
		why.Cause, why.Text = drover.ReasonPartition, why.Text+", nor does any other instance in its cloud: the controller assumes a network failure"
		why.Until = later(e.partitionEnds(e.cloud(in.Cloud)), e.s.Now)
	case !in.Held() && !in.Broken:
		why.Until = later(in.Silent.Add(e.life().ProbeTimeout), e.s.Now)
	}
	return why
}

func (e *Engine) whyIsIdle(in *fleet.Member) Verdict {
	why := Verdict{Cause: drover.ReasonIdle, Text: fmt.Sprintf("idle; destroyed after %v without work", e.life().IdleTimeout), Since: in.IdleSince, Until: e.idleDeadline(in)}
	if hold, because := e.holding(in); because != "" {
		why.Text = fmt.Sprintf("idle, and kept for %v: %s", hold.Round(time.Second), because)
	}
	why.Text += whose(in)
	switch {
	case in.Held():
		why.Text = "has no work, and stays until it is released or killed"
	case in.Unhealthy != nil && why.Until > in.Unhealthy.Since:
		why.Text = "has no work, and is kept for inspection because it is broken"
	case len(in.Orphans) > 0:
		why.Text = fmt.Sprintf("unknown attempts on it, which are being stopped: %d", len(in.Orphans))
	case in.ForGang:
		why.Text = fmt.Sprintf("reserved for jobs whose gangs do not have all their places yet: %d", in.Standby)
	case in.Standby > 0:
		why.Text = fmt.Sprintf("reserved for attempts that will restart here when their interrupted instances are gone: %d", in.Standby)
	case in.Expanding():
		why.Cause, why.Text = drover.ReasonGrowing, fmt.Sprintf("its volume is being grown from %s to %s, for waiting jobs", in.Resources.Disk.Rounded(), in.Grow.Rounded())
	case in.Pooled() && why.Until == 0:
		why.Cause, why.Text = drover.ReasonPool, "kept by pool "+in.Pool
	case in.KeepUntil > e.s.Now:
		why.Text = "idle, and kept for inspection because a job failed on it"
	}
	return why
}
