package engine

import (
	"fmt"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// An instance that is being interrupted gets no more work, whether it runs, drains or is held. Its attempts count as
// work to come, so that a replacement is coming before they end; a new attempt starts only once the old one is known to
// have ended. If the old one succeeds after all, the replacement goes like any instance that nothing waits for.

// noticed handles an instance's report of an interruption notice.
func (e *Engine) noticed(b Noticed) {
	if in := e.fleet.Member(b.Instance); in != nil {
		e.reclaim(in, noticeText(b.Notice))
	}
}

// reclaimedText is the reason if a cloud lists an instance as being interrupted.
const reclaimedText = "its cloud lists it as being reclaimed"

func noticeText(n drover.Notice) string {
	text := fmt.Sprintf("its cloud is reclaiming it: %.200s", n.Cause)
	if n.Deadline != 0 {
		text += fmt.Sprintf(", at %s by the cloud's clock", n.Deadline.Std().Format(time.RFC3339))
	}
	return text
}

// reclaim marks an instance as interrupted by its cloud.
func (e *Engine) reclaim(in *fleet.Member, text string) {
	if in.Reclaimed != nil || in.State == drover.InstanceGone {
		return
	}
	why := e.verdict(drover.ReasonInterrupted, "%s", text)
	e.nodeFailed(in, string(drover.KindCapacity), why)
	in.Reclaimed = &why
	e.note(Note{Level: Warn, Text: fmt.Sprintf("instance %s: %s", in.Name, text), Instance: in.Name, Cloud: in.Cloud, Reason: new(why.Reason())})
	e.interrupted(in)
	e.retire(in)
}

// checkReclaimed releases the replacements of an instance that was not interrupted after all.
func (e *Engine) checkReclaimed(in *fleet.Member) {
	if e.due(in.ReclaimedBy()) {
		e.pending.Place = true
	}
}

// countComing counts, by group, the attempts that will have to be retried because their instances are being
// interrupted.
func (e *Engine) countComing(r *fleet.Index) {
	for _, g := range e.groups {
		g.Coming, g.Standby = 0, 0
	}
	for _, in := range r.Reclaimed {
		if in.Standby > 0 {
			in.Standby, in.ForGang = 0, false
			e.fleet.Relist(in)
			e.fleet.CheckAt(in, max(e.s.Now, 1))
		}
		if e.s.Now >= in.ReclaimedBy() {
			continue
		}
		for _, a := range in.Load {
			if j := e.job(a.ID.Job.Number); a.Doomed() && j.MayStart() && j.Gang == 0 {
				e.group(e.queue.KeyOf(j).With(j.MemoryOf(a.ID.Job.Index))).Coming++
			}
		}
	}
}

// holdForComing holds free room for work that a group will get back soon, so that it is neither planned for twice nor
// given away. Room that later groups may not use is held by the backfill.
func (e *Engine) holdForComing(g *group) {
	for f := range e.allFits(g) {
		in, left := f.in, g.Coming-g.Standby
		if left <= 0 {
			return
		}
		// What the work costs elsewhere depends on Standby, so it is computed again for each instance.
		if in.Full() || !in.Accepts(&g.demand) || !e.costEffective(g)(in) || e.reservedFor(in) != nil {
			continue
		}
		if n := in.Free.Times(g.Key.Shape.Need, in.AtOnce(left)); n > 0 {
			g.Standby += n
			in.Standby = n
			e.fleet.Changed(in)
			e.backfill.by[in] = g
		}
	}
}

// lose ends an attempt through no fault of its command.
func (e *Engine) lose(a *Attempt, format string, args ...any) {
	state, cause := e.lossOf(a), Cause(drover.ReasonInstanceLost)
	if state == drover.AttemptInterrupted {
		cause = verdict.Interrupted
	}
	e.end(a, state, e.verdict(cause, format, args...))
}

// lossOf returns how an attempt counts that ended through no fault of its command. It does not count against the job if
// the instance was interrupted, which may well begin with the death of a supervisor; nor if the records are older than
// the attempt's fate or the order to stop it.
func (e *Engine) lossOf(a *Attempt) drover.AttemptState {
	told := a.Exit != nil && (a.Exit.Cause == drover.CauseInterrupted || a.Exit.Cause == drover.CauseStopped)
	if told || e.fleet.Member(a.Instance).Reclaimed != nil || !e.recordsCurrent() {
		return drover.AttemptInterrupted
	}
	return drover.AttemptLost
}

// whyInterrupted says what interrupted an attempt that its runner stopped for that.
func (e *Engine) whyInterrupted(a *Attempt) string {
	if in := e.fleet.Member(a.Instance); in != nil && in.Reclaimed != nil {
		return in.Reclaimed.Text
	}
	return "its instance was reclaimed"
}

// afterInterruption requeues a job whose attempt was interrupted, without counting the attempt.
func (e *Engine) afterInterruption(j *Job, el *Element, a *Attempt, why Verdict) {
	if j.Cancel != nil || a.Stop != nil {
		e.afterLoss(j, *el, a, why)
		return
	}
	el.Interrupted = a.Ended
	e.tryAgain(j, *el, why)
}
