package engine

import (
	"cmp"
	"slices"

	"drover"
)

// judge decides how an attempt ended whose command has ended and whose output is stored.
func (e *Engine) judge(a *Attempt) {
	x := a.Exit
	e.noteLoss(a)
	switch {
	case x.Cause == drover.CauseLost:
		e.lose(a, "%s", cmp.Or(x.Text, "its supervisor died"))
	case x.Code == 0 && x.Cause == "":
		e.end(a, drover.AttemptSucceeded, Verdict{})
	case a.Stop != nil:
		e.end(a, drover.AttemptCancelled, *a.Stop)
	case x.Cause == drover.CauseStopped:
		e.lose(a, "stopped by an earlier controller, which the records do not show")
	case x.Cause == drover.CauseInterrupted:
		e.end(a, drover.AttemptInterrupted, e.verdict(drover.ReasonInterrupted, "%s", e.whyInterrupted(a)))
	case x.Cause == drover.CauseMemory:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonMemory, "ran out of memory with %s", e.job(a.ID.Job.Number).Needs(a.ID.Job.Index).Memory.Rounded()))
	case x.Cause == drover.CauseImage:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonImage, "%s", x.Text))
	case x.Cause == drover.CauseNoImage:
		e.noImage(a)
	case x.Cause == drover.CauseTimeout:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonTimeout, "reached its timeout of %v", e.job(a.ID.Job.Number).Timeout))
	case x.Cause == drover.CauseNoStart:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonNoStart, "%s", x.Text))
	case x.Signal != "":
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonExit, "ended by signal: %s", x.Signal))
	default:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonExit, "exit code %d", x.Code))
	}
}

// noteLoss records that a live instance lost an attempt, so that the job is tried elsewhere. Once as many instances in a
// row as the job has attempts have lost it, the job or its registry is the likelier cause, and any instance will do: no
// more are rented for that.
func (e *Engine) noteLoss(a *Attempt) {
	in, j := e.fleet.Member(a.Instance), e.job(a.ID.Job.Number)
	switch a.Exit.Cause {
	case drover.CauseLost, drover.CauseNoImage:
	default:
		if j.ConsecutiveLosses > 0 {
			j.ConsecutiveLosses = 0
			e.writeJob(j)
		}
		return
	}
	if j.ConsecutiveLosses >= j.Attempts || slices.Contains(in.Lost, j.Number) {
		return
	}
	in.Lost = append(in.Lost[max(0, len(in.Lost)-maxLost+1):], j.Number)
	j.ConsecutiveLosses++
	e.fleet.BumpRevision()
	e.writeJob(j)
	if j.ConsecutiveLosses < j.Attempts {
		return
	}
	for _, o := range e.fleet.All() {
		o.Lost = slices.DeleteFunc(o.Lost, func(n int64) bool { return n == j.Number })
	}
	e.fleet.BumpRevision()
	e.needsPlacing = true
}

// noImage ends an attempt whose image could not be fetched: as lost by its instance, or as failed if other instances
// could not fetch it either.
func (e *Engine) noImage(a *Attempt) {
	in, j := e.fleet.Member(a.Instance), e.job(a.ID.Job.Number)
	if j.ConsecutiveLosses >= j.Attempts {
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonImage, "its image could not be fetched by %d instances: %s", j.ConsecutiveLosses, a.Exit.Text))
		return
	}
	e.lose(a, "%s could not fetch its image: %s", in.Name, a.Exit.Text)
}

// maxLost is how many lost jobs an instance remembers.
const maxLost = 100

// began reports whether the command of this exit was started.
func began(x drover.Exit) bool {
	switch x.Cause {
	case drover.CauseNoStart, drover.CauseImage, drover.CauseNoImage:
		return false
	}
	return true
}
