package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drover"
	"drover/internal/engine/verdict"
)

// With a schedule timeout, the time that jobs wait for offerings that are all blocked is counted (behaviour D11). While
// a group waits, its Blocked is set; when that ends, or a job leaves the group, the time is added to the job.

// waitsForBlocks reports whether the group's waiting jobs can only wait for a block to end: no instance may be planned
// for them, and none exists on which they may get a turn.
func (e *Engine) waitsForBlocks(g *group) bool {
	return g.Reason.Cause == verdict.Blocked && g.unreserved() > 0 && !e.nothingStarts() && !e.hosted(g)
}

// hosted reports whether an existing or coming instance may ever run the group's jobs. The result is cached per fleet
// revision.
func (e *Engine) hosted(g *group) bool {
	if g.hostRevision != e.fleet.Revision() {
		g.hostRevision = e.fleet.Revision()
		g.hasHost = e.fleet.Census().MayServe(&g.demand)
	}
	return g.hasHost
}

// markBlocked starts and ends the counting, according to the state after a decision.
func (e *Engine) markBlocked() {
	for _, g := range e.groups {
		switch waits := e.s.Settings.ScheduleTimeout > 0 && e.waitsForBlocks(g); {
		case waits && g.Blocked == 0:
			g.Blocked, g.Blocks = e.s.Now, e.blocksOf(g.Key.Shape)
			g.Most = *slices.MaxFunc(g.Jobs, func(a, b *Job) int { return cmp.Compare(*a.BlockedIn(g.Key), *b.BlockedIn(g.Key)) }).BlockedIn(g.Key)
		case !waits:
			e.endBlockedTime(g)
		}
	}
}

// countBlocked ends all counting.
func (e *Engine) countBlocked() {
	for _, g := range e.groups {
		e.endBlockedTime(g)
	}
}

// endBlockedTime ends a group's counting and adds the time to its jobs.
func (e *Engine) endBlockedTime(g *group) {
	if g.Blocked == 0 {
		return
	}
	for _, j := range g.Jobs {
		*j.BlockedIn(g.Key) = e.blockedFor(g, j)
		e.writeJob(j)
	}
	g.Blocked = 0
}

// blockedFor returns how long a job of the group has waited in total.
func (e *Engine) blockedFor(g *group, j *Job) time.Duration {
	if g.Blocked == 0 {
		return *j.BlockedIn(g.Key)
	}
	return *j.BlockedIn(g.Key) + e.s.Now.Sub(g.Blocked)
}

// blockedDeadline returns when the first of the group's jobs reaches the timeout, 0 for never.
func (e *Engine) blockedDeadline(g *group) drover.Time {
	limit := e.s.Settings.ScheduleTimeout
	if g.Blocked == 0 || limit == 0 {
		return 0
	}
	return max(g.Blocked.Add(limit-g.Most), e.s.Now+1)
}

// refuseBlocked cancels jobs that have waited too long.
func (e *Engine) refuseBlocked() {
	limit := e.s.Settings.ScheduleTimeout
	for _, g := range slices.Clone(e.groups) {
		if limit > 0 && g.Blocked != 0 && e.s.Now >= g.Blocked.Add(limit-g.Most) {
			e.refuseOverdue(g, limit)
		}
	}
}

func (e *Engine) refuseOverdue(g *group, limit time.Duration) {
	g.Most = 0
	for _, j := range slices.Clone(g.Jobs) {
		waited := e.blockedFor(g, j)
		if waited < limit {
			g.Most = max(g.Most, *j.BlockedIn(g.Key))
			continue
		}
		why := e.verdict(drover.ReasonSchedule, "blocked for %v: %s", waited.Round(time.Second), g.Blocks)
		if j.GrownIn(g.Key) != nil {
			e.dismiss(g, j, drover.JobCancelled, why)
		} else {
			e.cancelUnstarted(j, why)
		}
	}
}

// cancelUnstarted cancels a job's waiting elements. Those that run may finish.
func (e *Engine) cancelUnstarted(j *Job, why Verdict) {
	if len(e.attemptsOf(j)) == 0 {
		e.cancelJob(j, why)
		return
	}
	j.Overdue = &why
	var except Ranges
	if j.Gang > 0 {
		except = j.Postponed // their gangs have yet to end, and end or restart as a whole
	}
	e.cancelWaiting(j, except, why)
	e.writeJob(j)
}

// maxBlocks is how many blocks a sentence names.
const maxBlocks = 5

// blocksOf says which blocks affect a shape's offerings, until when, and why.
func (e *Engine) blocksOf(s drover.Shape) string {
	var said []string
	seen := map[*Block]bool{}
	for _, o := range e.market.Offerings() {
		if b := e.market.BlockOf(o); b != nil && !seen[b] && s.Accepts(o) {
			seen[b] = true
			said = append(said, fmt.Sprintf("%s until %s: %s", b.Subject(), clockTime(b.Reason.Until), blockText(*b)))
		}
	}
	if len(said) > maxBlocks {
		said = append(said[:maxBlocks], fmt.Sprintf("and %d more", len(said)-maxBlocks))
	}
	return strings.Join(said, "; ")
}

// clockTime formats a time to the second.
func clockTime(t drover.Time) string { return t.Std().Format(time.RFC3339) }
