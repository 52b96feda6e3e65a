package engine

import (
	"cmp"
	"fmt"
	"slices"

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
	x := drover.Explanation{Subject: id.String(), Since: j.Since}
	x.Likely, x.Stated, x.Learned = drover.Seconds(e.runTimeOf(j).Alone.Mean()), forecastJob(j).Expected > 0, e.forecast.Learned()
	if x.Count = j.Waits(id); x.Count > 0 {
		x.Waiting, x.Reasons = true, verdict.Reasons(e.s.Now, e.whyQueued(j, id)...)
	}
	running := e.whyRunning(j, id)
	if x.Count == 0 && len(running) > 0 {
		x.Since = running[0].Since
	}
	e.say(&x, running...)
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
	why := e.whyBooting(e.arrivalsOf(g)[g.Key])
	if booting < n {
		return append(why, e.whyUnreserved(g, j)...)
	}
	return append(why, e.whyGang(g)...)
}

// whyUnreserved explains why elements of a group without a reservation wait. The schedule timeout is that of job j.
func (e *Engine) whyUnreserved(g *group, j *Job) []Verdict {
	why := append([]Verdict{g.Reason}, present(g.Refused)...)
	if g.Reason.Cause == verdict.Blocked && e.totalRoom() == 0 {
		why = append(why, e.whyNoRoom(e.useOfAll))
	}
	if anew, known := e.costNewInstance(g); known && g.Reason.Cause == drover.ReasonEnding {
		boots := e.soloPrice(g.Key.Shape).For(e.forecast.BootTimes().Usual)
		why = append(why, Verdict{Cause: drover.ReasonEnding, Text: fmt.Sprintf("a new instance would cost about %v per job, including %v for booting", anew, boots), Since: g.Reason.Since})
	}
	if g.Reason.Cause == verdict.Limit {
		if dear, a := e.whyPricedOut(g); a != nil {
			dear.Since = max(j.Since, e.unpaidSince(g, a))
			why = append(why, dear)
		}
	}
	if g.Reason.Cause == verdict.Budget {
		why = append(why, e.budgetUses(payer(g.Key))...)
	}
	if limit := e.s.Settings.ScheduleTimeout; limit > 0 && g.Blocked != 0 {
		text := fmt.Sprintf("will be cancelled once it has been blocked for %v in total", limit)
		why = append(why, Verdict{Cause: drover.ReasonSchedule, Text: text, Since: g.Blocked, Until: g.Blocked.Add(limit - *j.BlockedIn(g.Key))})
	}
	return slices.Concat(why, e.whyGang(g), e.whyShare(g))
}

// arrivals are the instances that are coming for a group.
type arrivals struct {
	all   []*fleet.Member
	until drover.Time // when the first of them is given up
}

// arrivalsOf finds what is coming for each of the groups, visiting each instance once.
func (e *Engine) arrivalsOf(groups ...*group) map[GroupKey]*arrivals {
	coming := make(map[GroupKey]*arrivals, len(groups))
	for _, g := range groups {
		coming[g.Key] = &arrivals{}
	}
	for _, in := range e.fleet.All() {
		for _, b := range in.Reservations {
			to := coming[b.Group]
			if to == nil {
				continue
			}
			to.all = append(to.all, in)
			to.until = sooner(to.until, e.arrivalDeadline(in))
		}
	}
	return coming
}

// whyBooting names the instances that are coming for a group, when the first is given up, and what delays one of them.
func (e *Engine) whyBooting(coming *arrivals) []Verdict {
	why := Verdict{Cause: drover.ReasonBooting, Text: bootingText, Until: coming.until}
	if len(coming.all) == 0 {
		return []Verdict{why}
	}
	why.Text += ": " + coming.all[0].Name
	why.Since = coming.all[0].Asked
	if more := len(coming.all) - 1; more > 0 {
		why.Text += fmt.Sprintf(" and %d more", more)
	}
	return append([]Verdict{why}, e.whyLate(coming.all)...)
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
	why := Verdict{Cause: drover.ReasonRunning, Text: fmt.Sprintf("attempt %d is running on %s", a.ID.Number, in.Name), Since: a.Started}
	switch {
	case a.State == drover.AttemptStarting:
		why.Text = fmt.Sprintf("attempt %d is being started on %s", a.ID.Number, in.Name)
	case a.State == drover.AttemptCollecting:
		why.Text, why.Until = fmt.Sprintf("attempt %d has ended on %s, and its output is being stored", a.ID.Number, in.Name), a.Retry
	}
	all := []Verdict{why}
	if failed := a.Unkept; failed.Cause != "" {
		failed.Text = "storing its output failed and will be retried: " + failed.Text
		all = append(all, failed)
	}
	over := a.Started.Add(j.Timeout)
	switch {
	case a.Stop != nil:
		stop := *a.Stop
		stop.Text = "it is being stopped: " + stop.Text
		all = append(all, stop)
	case a.State == drover.AttemptRunning && j.Timeout > 0 && over <= e.s.Now: // the runner stops it by itself
		text := fmt.Sprintf("it is being stopped: its timeout of %v has passed; if it does not end, it will be killed %v after SIGTERM", j.Timeout, e.life().TermTimeout)
		all = append(all, Verdict{Cause: drover.ReasonTimeout, Text: text, Since: over, Until: over.Add(e.life().TermTimeout)})
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
	return []Verdict{{Cause: drover.ReasonRunning, Text: fmt.Sprintf("%d of %d elements running", len(live), j.Array.Size()), Since: first.Started}}
}
