package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/timers"
	"drover/internal/engine/verdict"
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
	case stopOf(a) != nil:
		e.end(a, drover.AttemptCancelled, *a.Stop)
	case x.Cause == drover.CauseStopped:
		e.lose(a, "stopped by an earlier controller, but the records do not show this")
	case x.Cause == drover.CauseInterrupted:
		e.end(a, drover.AttemptInterrupted, e.verdict(drover.ReasonInterrupted, "%s", e.whyInterrupted(a)))
	case x.Cause == drover.CauseMemory:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonMemory, "ran out of memory (it had %s)", e.job(a.ID.Job.Number).Needs(a.ID.Job.Index).Memory.Rounded()))
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

// noteLoss records that a live instance lost an attempt, so that the job is tried elsewhere. Once as many instances in
// a row as the job has attempts have lost it, the job or its registry is the likelier cause, and any instance will do:
// no more are rented for that.
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
	e.fleet.Revise(in)
	e.writeJob(j)
	if j.ConsecutiveLosses < j.Attempts {
		return
	}
	for _, o := range e.fleet.All() {
		if slices.Contains(o.Lost, j.Number) {
			o.Lost = slices.DeleteFunc(o.Lost, func(n int64) bool { return n == j.Number })
			e.fleet.Revise(o)
		}
	}
	e.pending.Place = true
}

// noImage ends an attempt whose image could not be fetched: as lost by its instance, or as failed if other instances
// could not fetch it either.
func (e *Engine) noImage(a *Attempt) {
	in, j := e.fleet.Member(a.Instance), e.job(a.ID.Job.Number)
	if j.ConsecutiveLosses >= j.Attempts {
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonImage, "%s could not fetch the job's image: %s", countOf(j.ConsecutiveLosses, "instance"), a.Exit.Text))
		return
	}
	e.lose(a, "%s could not fetch the job's image: %s", in.Name, a.Exit.Text)
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

// exited handles the end of an attempt's command. Its room is free immediately; it is final once its output is stored.
func (e *Engine) exited(b Exited) {
	a, exit := e.live(b.Attempt), b.Exit
	switch {
	case a == nil || b.Instance != 0 && b.Instance != a.Instance:
		e.orphanEnded(b)
		return
	case b.Proof != ProofValid && !a.Unproven:
		e.forgedEnd(a)
		return
	case a.State == drover.AttemptCollecting:
		return
	}
	if givenUp(a) || e.endedBeforeStop(a, exit) {
		a.Stop = nil
	}
	in := e.fleet.Member(a.Instance)
	e.vacate(in, a)
	if began(exit) {
		e.use(in)
	}
	a.State, a.Exit, a.Ended = drover.AttemptCollecting, &exit, e.ended(a, exit)
	e.occupy(in, a)
	e.learnRunTime(a)
	a.Effect, a.Fails, a.Retry = 0, 0, 0
	e.writeAttempt(a, Verdict{})
	e.collect(a)
	e.freed()
}

// endedBeforeStop reports whether the command of an attempt ended by itself before the order to stop and requeue it
// arrived, so that its result is final. In a gang, it may well have failed because others were stopped already.
func (e *Engine) endedBeforeStop(a *Attempt, exit drover.Exit) bool {
	return a.Stop != nil && exit.Cause == "" && requeues(*a.Stop) && (exit.Code == 0 || e.job(a.ID.Job.Number).Gang == 0)
}

// freed lets others use what an attempt has released: its room, and the money committed for it.
func (e *Engine) freed() {
	e.pending.Place = true
	if e.limited() {
		e.pending.Plan = true
	}
}

// ended returns when an attempt's command ended, which may be reported late, after a broken connection or a restart.
// The instance's clock is trusted only for the duration.
func (e *Engine) ended(a *Attempt, exit drover.Exit) drover.Time {
	if at := a.Started.Add(exit.Ended.Sub(exit.Started)); exit.Started != 0 && at > a.Started && at < e.s.Now.Add(-lateness) {
		return at
	}
	return e.s.Now
}

// forgedEnd ignores an exit reported without proof that the attempt was placed on this instance. The next hello shows
// what really runs there.
func (e *Engine) forgedEnd(a *Attempt) {
	in := e.fleet.Member(a.Instance)
	e.distrust(in, a.ID)
	if in.Connected {
		e.effect(Effect{Disconnect: &Disconnect{Instance: in.ID}})
	}
}

// orphanEnded records that an orphaned attempt has ended as ordered.
func (e *Engine) orphanEnded(b Exited) {
	if in := e.fleet.Member(b.Instance); in != nil && b.Proof == ProofMissing {
		e.distrust(in, b.Attempt)
	}
	for _, in := range e.fleet.All() {
		at := slices.Index(in.Orphans, b.Attempt)
		if at >= 0 && (b.Instance == 0 || b.Instance == in.ID) {
			in.Orphans = slices.Delete(slices.Clone(in.Orphans), at, at+1)
			in.Forged = slices.DeleteFunc(slices.Clone(in.Forged), func(id drover.AttemptID) bool { return id == b.Attempt })
			e.forget(in, b.Attempt, b.Proof)
			e.pending.Place = true
			e.touch(in)
		}
	}
}

func (e *Engine) collect(a *Attempt) {
	a.Effect = e.effect(Effect{Collect: &Collect{Attempt: a.ID, Instance: a.Instance}})
}

func (e *Engine) collected(b Collected) {
	a := e.live(b.Attempt)
	if a == nil || !answers(b.Effect, a.Effect) {
		return
	}
	a.Effect = 0
	if a.Missed++; b.Err == nil || b.Err.Kind != drover.KindNotFound {
		a.Missed = 0
	}
	lost := b.Err != nil && b.Err.Kind == drover.KindInvalid || a.Missed >= missingTries
	switch {
	case b.Err == nil, lost && (a.Exit.Code != 0 || a.Exit.Cause != ""): // how it ended matters more
		e.judge(a)
	case lost:
		e.end(a, drover.AttemptFailed, e.verdict(drover.ReasonOutputs, "%s", b.Err.Explained()))
	default:
		a.Fails++
		a.Unkept = e.repeatedFailure(a.Unkept, Cause(b.Err.Kind), b.Err)
		a.Retry = e.s.Now.Add(timers.Backoff(a.Fails, time.Second, time.Minute))
		e.note(Note{Level: Warn, Text: fmt.Sprintf("storing the output of attempt %v failed: %s", a.ID, b.Err.Explained()), Attempt: &a.ID, Reason: failure(b.Err)})
		if why := e.abandoned(a); why != nil && a.Fails >= abandonedTries {
			e.end(a, drover.AttemptCancelled, *why)
			return
		}
		e.touch(e.fleet.Member(a.Instance))
	}
}

// How often storing the output of an attempt is tried if it has been cancelled, or if its instance does not have the
// output: neither a full disk nor a job that has removed its own records may keep an instance forever.
const (
	abandonedTries = 3
	missingTries   = 8 // in a row: two minutes
)

// abandoned returns why an attempt's result is no longer wanted; nil if it is.
func (e *Engine) abandoned(a *Attempt) *Verdict {
	if stop := stopOf(a); stop != nil {
		return stop
	}
	return e.job(a.ID.Job.Number).Cancel
}

// stopOf returns the order to stop an attempt that has ended; nil if there is none, or if it ended by itself and only
// its gang has ended.
func stopOf(a *Attempt) *Verdict {
	if a.Stop != nil && a.Stop.Cause == verdict.Dependency && a.Exit.Cause == "" {
		return nil
	}
	return a.Stop
}
