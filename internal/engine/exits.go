package engine

import (
	"cmp"
	"slices"

	"drover"
)

// judge says how an attempt ended whose command ended and whose output is stored.
func (e *Engine) judge(a *Attempt) {
	x := a.Exit
	switch {
	case x.Cause == drover.CauseLost:
		e.lose(a, "%s", cmp.Or(x.Text, "its supervisor died"))
	case x.Code == 0 && x.Cause == "":
		e.end(a, drover.AttemptSucceeded, drover.Reason{})
	case a.Stop != nil:
		e.end(a, drover.AttemptCancelled, *a.Stop)
	case x.Cause == drover.CauseInterrupted:
		e.end(a, drover.AttemptInterrupted, e.reason(drover.ReasonInterrupted, "%s", e.whyInterrupted(a)))
	case x.Cause == drover.CauseMemory:
		e.end(a, drover.AttemptFailed, e.reason(drover.ReasonMemory, "ran out of memory with %s", e.job(a.ID.Job.Number).needs(a.ID.Job.Index).Memory.Rounded()))
	case x.Cause == drover.CauseImage:
		e.end(a, drover.AttemptFailed, e.reason(drover.ReasonImage, "%s", x.Text))
	case x.Cause == drover.CauseNoImage:
		e.noImage(a)
	case x.Cause == drover.CauseTimeout:
		e.end(a, drover.AttemptFailed, e.reason(drover.ReasonTimeout, "still ran at its timeout of %v", e.job(a.ID.Job.Number).Timeout))
	case x.Cause == drover.CauseNoStart:
		e.end(a, drover.AttemptFailed, e.reason(drover.ReasonNoStart, "%s", x.Text))
	case x.Signal != "":
		e.end(a, drover.AttemptFailed, e.reason(drover.ReasonExit, "ended by signal: %s", x.Signal))
	default:
		e.end(a, drover.AttemptFailed, e.reason(drover.ReasonExit, "exit code %d", x.Code))
	}
}

// noImage ends an attempt whose image its instance could not fetch. That counts as lost to the instance, which is not given that job again.
func (e *Engine) noImage(a *Attempt) {
	in := e.instance(a.Instance)
	if !slices.Contains(in.NoImage, a.ID.Job.Number) && len(in.NoImage) < maxNoImage {
		in.NoImage = append(in.NoImage, a.ID.Job.Number)
	}
	e.lose(a, "%s could not fetch its image: %s", in.Name, a.Exit.Text)
}

// maxNoImage is how many jobs an instance that cannot fetch their images is told apart from; more of them are not worth it.
const maxNoImage = 100

// began reports whether a command was begun that then ended in this way.
func began(x drover.Exit) bool {
	switch x.Cause {
	case drover.CauseNoStart, drover.CauseImage, drover.CauseNoImage:
		return false
	}
	return true
}
