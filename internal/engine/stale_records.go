package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/verdict"
)

// Records may be stale: restored from a backup, or on a volume that was rolled back. What was started since is missing
// from them, and would be started twice. Until they are proven current, nothing new starts: no attempt, no instance.
// They are proven once each cloud has returned two good lists, and each recorded instance has reported what it runs, or
// is gone.
//
// An instance's report casts doubt on the records only with the proof of an attempt that they never started. Any job
// can impersonate its instance, but cannot forge a proof.
//
// Successes from the log beside stale records count immediately: their results are stored, so their jobs are done.
//
// Until then reality overrides the records. An attempt with a proof that is later than the recorded one is adopted,
// with its result if it has ended; anything else that runs unrecorded is stopped like any unknown process (behaviour
// D14), and nothing starts before it has ended. A recorded attempt that does not run is retried without counting as
// lost. Tags show an operator's commands. Numbers that may have been assigned since are not reused: all counters leap.

// Leap is added to the numbers of jobs, attempts and instances when the records turn out to be stale: more than are
// assigned between a backup and its restoration, if the number is unknown.
const Leap = 10_000

// StaleRecords returns why nothing starts yet; nil if the records are current.
func (e *Engine) StaleRecords() *drover.Reason { return e.s.StaleRecords }

// recordsCurrent reports whether the records are known to be current.
func (e *Engine) recordsCurrent() bool { return e.s.StaleRecords == nil }

// markStale marks the records as stale because of something that they say was never created.
func (e *Engine) markStale(format string, args ...any) {
	if !e.recordsCurrent() {
		return
	}
	why := e.verdict(drover.ReasonUnproved, format, args...).Reason()
	e.s.StaleRecords = &why
	e.s.LastInstance += Leap
	e.s.LastAttempt += Leap
	e.write(Write{Stale: &Staleness{why, e.s.LastJob + Leap, e.s.LastInstance, e.s.LastAttempt}})
	e.noteStaleRecords()
}

func (e *Engine) noteStaleRecords() {
	e.note(Note{Level: Warn, Text: "no job starts until every cloud and instance has reported: " + e.s.StaleRecords.Text, Reason: e.s.StaleRecords})
}

// checkName marks the records as stale if an instance has a name of this store that they have not assigned yet.
func (e *Engine) checkName(name string) {
	number, ours := strings.CutPrefix(name, e.s.Fleet+"-"+e.s.Nonce+"-")
	if id, err := strconv.ParseInt(number, 10, 64); ours && err == nil && id > e.s.LastInstance {
		e.markStale("the records are an older copy: they do not contain instance %s", name)
	}
}

// checkAttemptNumber marks the records as stale if a runner has an attempt, with a valid proof, that they have not
// started yet.
func (e *Engine) checkAttemptNumber(in *fleet.Member, id drover.AttemptID) {
	j := e.job(id.Job.Number)
	later := j != nil && j.Open(id.Job.Index) && id.Number > max(j.LastAttempt(id.Job.Index), e.s.LastAttempt)
	if later || id.Job.Number > e.s.LastJob {
		e.markStale("the records are an older copy: they do not contain attempt %v on %s", id, in.Name)
	}
}

// addGoodList records a good list of a cloud. A second list soon after the first may be the same stale copy, and one
// within the lag may miss what was created just before the controller started.
func (c *Cloud) addGoodList(began drover.Time, lag time.Duration) {
	switch {
	case c.First == 0:
		c.First = began
	case began >= c.secondListTime(lag):
		c.Twice = true
	}
}

// secondListTime returns from when on another good list cannot be a copy of the first.
func (c *Cloud) secondListTime(lag time.Duration) drover.Time {
	return c.First.Add(max(fleet.MissingLeast, lag))
}

// endStaleness checks whether the records are proven current, and if so lets work start.
func (e *Engine) endStaleness() {
	if e.recordsCurrent() || e.unreported() != "" {
		return
	}
	e.s.StaleRecords, e.s.Successes = nil, nil
	e.write(Write{Current: true})
	e.note(Note{Level: Info, Text: "every cloud and instance has reported: the records are current again"})
	for _, in := range slices.Clone(e.fleet.All()) {
		if in.State == drover.InstanceCreating && in.ProviderID == "" && in.Call == 0 && !in.Held() {
			e.stop(in, e.verdict(drover.ReasonUnproved, "it was planned from outdated records and does not exist"))
		}
	}
	for _, in := range e.fleet.All() {
		if in.State == drover.InstanceIdle && in.Connected {
			in.IdleSince = e.s.Now
			e.writeInstance(in)
		}
		e.markPossiblyUsed(in)
		e.touch(in)
	}
	e.pending.Place, e.pending.Plan = true, true
}

// markPossiblyUsed marks an instance as used that a user may have used since the records were copied, since its tag may
// not have been set in time. Only pools have instances without an owner.
func (e *Engine) markPossiblyUsed(in *fleet.Member) {
	spec := e.poolSpec(in)
	noJobs := spec != nil && !spec.Jobs // NoJobs also says that a health check has not passed yet
	if in.Sharing == drover.ShareUser && in.Owner == "" && in.Pooled() && in.Created != 0 && !noJobs && !in.Used {
		in.Used = true
		e.writeRevised(in)
	}
}

// unreported says what must still be reported before the records are proven current, empty if nothing.
func (e *Engine) unreported() string {
	if len(e.clouds) == 0 {
		return "the configuration"
	}
	for _, c := range e.clouds {
		if !c.Twice {
			return fmt.Sprintf("two successful listings of cloud %s", c.Name)
		}
	}
	for _, in := range e.fleet.All() {
		switch {
		case in.ProviderID == "": // no list has it, so nobody can have logged in
		case in.Off: // so nothing runs there
		case in.NoLogin && in.Listed:
		case !in.Heard:
			return fmt.Sprintf("instance %s to report its attempts or disappear", in.Name)
		case e.unknownAttempt(in) != nil:
			return fmt.Sprintf("attempt %v on %s to end: it is not in the records", *e.unknownAttempt(in), in.Name)
		}
	}
	return ""
}

// unknownAttempt returns an orphan on the instance that belongs to a job of these records, even a final one, which may
// be retried. An attempt that these records never started does not count.
func (e *Engine) unknownAttempt(in *fleet.Member) *drover.AttemptID {
	for _, id := range in.Orphans {
		if id.Job.Number <= e.s.LastJob && !slices.Contains(in.Forged, id) {
			return &id
		}
	}
	return nil
}

// whyStale explains why nothing starts, and what is waited for.
func (e *Engine) whyStale() Verdict {
	why := verdict.Of(*e.s.StaleRecords)
	why.Text += "; no job starts until every cloud and instance has reported; waiting for " + e.unreported()
	return why
}

// adoptAttempt adopts an attempt whose proof shows that these records' store started it later than they know; nil if
// that does not apply.
func (e *Engine) adoptAttempt(in *fleet.Member, r Report) *Attempt {
	id, j := r.ID, e.job(r.ID.Job.Number)
	if e.recordsCurrent() || j == nil || !j.MayStart() || id.Number <= j.LastAttempt(id.Job.Index) || !e.takeOverElement(id, j) {
		return nil
	}
	a := &Attempt{ID: id, Instance: in.ID, State: drover.AttemptRunning, Started: e.s.Now}
	e.admit(in, j, a)
	e.postponed(j, id.Job.Index)
	e.use(in)
	e.note(Note{Level: Warn, Text: fmt.Sprintf("taking over attempt %v on %s: it is newer than the records", id, in.Name), Instance: in.Name, Attempt: &id})
	return a
}

// takeOverElement dequeues an element for an attempt that is later than the recorded one, and reports whether it was to
// run.
func (e *Engine) takeOverElement(id drover.AttemptID, j *Job) bool {
	if before := e.fleet.Attempt(id.Job); before != nil {
		if before.Stop != nil {
			return false
		}
		e.lose(before, "attempt %v started after this one, so this one must have ended", id)
	}
	if !j.Unqueue(id.Job.Index) {
		return false
	}
	e.regroup(j)
	return true
}

// applySuccesses ends the jobs and elements that succeeded after the records were copied, even if they may not start
// now. Those of jobs not yet submitted remain.
func (e *Engine) applySuccesses() {
	e.s.Successes = slices.DeleteFunc(slices.Clone(e.s.Successes), e.applySuccess)
}

// applySuccess handles one success, and reports whether it is done.
func (e *Engine) applySuccess(s Success) bool {
	id, j := s.Attempt, e.job(s.Attempt.Job.Number)
	if j == nil {
		return false
	}
	if id.Number < j.LastAttempt(id.Job.Index) {
		return true
	}
	why := e.verdict(drover.ReasonExit, "it succeeded after these records were copied, and its results are stored")
	switch a := e.live(id); {
	case a != nil: // even if it was told to stop
		a.Exit, a.Ended = &s.Exit, s.Ended
		e.end(a, drover.AttemptSucceeded, why)
	case e.takeOverElement(id, j):
		el := j.Element(id.Job.Index)
		el.Number = id.Number
		e.finish(j, ElementRow{Element: *el, State: drover.JobSucceeded, Code: &s.Exit.Code, Reason: why.Reason()})
		e.postponed(j, id.Job.Index)
	}
	return true
}

// believeTag takes an operator's command from an instance's tag if stale records say otherwise: the first tag seen, and
// any hold, which may be seen late. Tags that this engine set are not news.
func (e *Engine) believeTag(in *fleet.Member, tag drover.IdleBehavior) {
	ownWord := in.Retag || in.Tagging.Set || in.Listed && tag != drover.IdleHold
	if e.recordsCurrent() || ownWord || tag == in.Idle || in.State == drover.InstanceStopping || !e.ours(in.Name) {
		return
	}
	e.takeTag(in, tag)
	if tag != drover.IdleRun {
		e.dropAllReservations(in)
	}
	if !in.Broken {
		in.Reason = in.Remark()
	}
	e.writeRevised(in)
	e.touch(in)
}
