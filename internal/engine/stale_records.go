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

// Records may be an older copy of themselves: a backup that was put back, a volume that was rolled back. What was begun since is not in them, and
// would be begun again beside itself. As long as they are not proved to be the newest, nothing is begun that they do not have: no attempt, no
// instance. They are proved once each cloud has given two good lists, and each instance of this fleet in them has said what runs there, or is gone.
//
// What an instance says makes them doubted only if it shows the proof that came with the start of an attempt which they never began. Any job there
// can speak as its instance, but can show no proof of what was not given to it.
//
// What a log beside them has of attempts that succeeded since is believed at once: the results of those are stored, so their jobs are done.
//
// Until then what there is counts for more than what is written. An attempt with a proof that is later than the one that is written is taken over,
// with what came of it if it has ended; whatever else runs that is not written is ended like any process that nobody knows (BEHAVIOUR D14), and nothing
// is begun before it has ended. What is written to run, and does not, is tried again without a lost start. A tag says what an operator told
// an instance. No number that may have been given since is given again: all of them leap.

// Leap is by how much the numbers of jobs, attempts and instances are raised when the records turn out to be older than what was done by them:
// more than are given between a copy and its being put back, where nothing tells how many were.
const Leap = 10_000

// Unproved says why nothing is begun before it has been seen what there is; nil if the records are proved.
func (e *Engine) Unproved() *drover.Reason { return e.s.Unproved }

// proved reports whether the records are known to be the newest there are.
func (e *Engine) recordsCurrent() bool { return e.s.Unproved == nil }

// doubt begins to doubt the records, since something is there that they say was never made.
func (e *Engine) doubt(format string, args ...any) {
	if !e.recordsCurrent() {
		return
	}
	why := e.verdict(drover.ReasonUnproved, format, args...).Reason()
	e.s.Unproved = &why
	e.s.LastInstance += Leap
	e.s.LastAttempt += Leap
	e.write(Write{Doubt: &Doubt{why, e.s.LastJob + Leap, e.s.LastInstance, e.s.LastAttempt}})
	e.noteStaleRecords()
}

func (e *Engine) noteStaleRecords() {
	e.note(Note{Level: Warn, Text: "nothing starts until every cloud and instance has reported: " + e.s.Unproved.Text, Reason: e.s.Unproved})
}

// doubtName doubts the records if an instance bears a name of this store's that by them was not given yet.
func (e *Engine) doubtName(name string) {
	number, ours := strings.CutPrefix(name, e.instanceName(0)[:len(e.instanceName(0))-1])
	if id, err := strconv.ParseInt(number, 10, 64); ours && err == nil && id > e.s.LastInstance {
		e.doubt("the records are an older copy: instance %s exists, but according to them its number was never assigned", name)
	}
}

// doubtAttempt doubts the records if a runner has an attempt of theirs, by its proof, that by them was not begun yet.
func (e *Engine) doubtAttempt(in *fleet.Member, id drover.AttemptID) {
	j := e.job(id.Job.Number)
	later := j != nil && j.Open(id.Job.Index) && id.Number > max(j.LastAttempt(id.Job.Index), e.s.LastAttempt)
	if later || id.Job.Number > e.s.LastJob {
		e.doubt("the records are an older copy: %s has attempt %v, which according to them was never started", in.Name, id)
	}
}

// look notes that a good list of a cloud, begun at a time, is there. One that is asked for soon after another may be the same stale copy, and
// one within the lag may lack what was made just before Drover began to look.
func (c *Cloud) look(began drover.Time, lag time.Duration) {
	switch {
	case c.First == 0:
		c.First = began
	case began >= c.secondLook(lag):
		c.Twice = true
	}
}

// secondLook is from when on another good list may be held to be no copy of the first.
func (c *Cloud) secondLook(lag time.Duration) drover.Time {
	return c.First.Add(max(fleet.MissingLeast, lag))
}

// prove looks whether the records are proved, and goes on to begin things if they are.
func (e *Engine) prove() {
	if e.recordsCurrent() || e.awaits() != "" {
		return
	}
	e.s.Unproved, e.s.Successes = nil, nil
	e.write(Write{Proved: true})
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
		e.mayBeUsed(in)
		e.touch(in)
	}
	e.needsPlacing, e.needsPlan = true, true
}

// mayBeUsed has an instance that could have become a user's since the records were copied run nobody's jobs: its tag may not have been set in time to say
// whose it is. Only pools have instances that are nobody's at first.
func (e *Engine) mayBeUsed(in *fleet.Member) {
	if in.Sharing == drover.ShareUser && in.Owner == "" && in.Pooled() && in.Created != 0 && !in.NoJobs && !in.Used {
		in.Used = true
		e.fleet.Moved()
		e.writeInstance(in)
	}
}

// awaits says what is still to be heard before the records are proved, empty if nothing is.
func (e *Engine) awaits() string {
	if len(e.clouds) == 0 {
		return "the configuration"
	}
	for _, c := range e.clouds {
		if !c.Twice {
			return fmt.Sprintf("two good lists of cloud %s", c.Name)
		}
	}
	for _, in := range e.fleet.All() {
		switch {
		case in.ProviderID == "": // no list has it, so nobody can have logged in
		case in.Off: // so nothing runs there
		case in.NoLogin && in.Listed:
		case !in.Heard:
			return fmt.Sprintf("instance %s to report what runs there, or to be gone", in.Name)
		case e.strangeness(in) != nil:
			return fmt.Sprintf("attempt %v to end, which runs on %s and is not in the records", *e.strangeness(in), in.Name)
		}
	}
	return ""
}

// strangeness is an attempt that is not known, if one runs on the instance, of a job that the records have: also one that is final in them may be
// put back in the queue. One that these records never started is none.
func (e *Engine) strangeness(in *fleet.Member) *drover.AttemptID {
	for _, id := range in.Orphans {
		if id.Job.Number <= e.s.LastJob && !slices.Contains(in.Forged, id) {
			return &id
		}
	}
	return nil
}

// whyUnproved says why nothing is begun, and what is waited for.
func (e *Engine) whyUnproved() Verdict {
	why := verdict.Of(*e.s.Unproved)
	why.Text += "; nothing starts until clouds and instances have reported: waits for " + e.awaits()
	return why
}

// adoptAttempt takes over an attempt that by its proof is these records', and later than what they have of its job; nil if it does not fit that.
func (e *Engine) adoptAttempt(in *fleet.Member, r Report) *Attempt {
	id, j := r.ID, e.job(r.ID.Job.Number)
	if e.recordsCurrent() || j == nil || !j.MayStart() || id.Number <= j.LastAttempt(id.Job.Index) {
		return nil
	}
	if !e.overtakes(id, j) {
		return nil
	}
	a := &Attempt{ID: id, Instance: in.ID, State: drover.AttemptRunning, Started: e.s.Now}
	e.admit(in, j, a)
	e.postponed(j, id.Job.Index)
	e.use(in)
	e.note(Note{Level: Warn, Text: fmt.Sprintf("taking over attempt %v on %s, which is later than the records", id, in.Name), Instance: in.Name, Attempt: &id})
	return a
}

// overtakes takes an element out of the queue for an attempt that is later than what the records have of it, and reports whether it was to run.
func (e *Engine) overtakes(id drover.AttemptID, j *Job) bool {
	if before := e.fleet.Attempt(id.Job); before != nil {
		if before.Stop != nil {
			return false
		}
		e.lose(before, "attempt %v started later, so this one had ended", id)
	}
	if !j.Unqueue(id.Job.Index) {
		return false
	}
	e.regroup(j)
	return true
}

// takeSuccesses ends the jobs and elements whose success is later than the records, also those that may not start now. Those that are not taken in yet may
// follow.
func (e *Engine) takeSuccesses() {
	e.s.Successes = slices.DeleteFunc(slices.Clone(e.s.Successes), e.tookSuccess)
}

// tookSuccess takes in that an attempt succeeded, and reports whether nothing is left to be done about it.
func (e *Engine) tookSuccess(s Success) bool {
	id, j := s.Attempt, e.job(s.Attempt.Job.Number)
	if j == nil {
		return false
	}
	if id.Number < j.LastAttempt(id.Job.Index) {
		return true
	}
	why := e.verdict(drover.ReasonExit, "it succeeded after these records were copied, and its results are stored")
	switch a := e.live(id); {
	case a != nil && a.Stop == nil:
		a.Exit, a.Ended = &s.Exit, s.Ended
		e.end(a, drover.AttemptSucceeded, why)
	case e.overtakes(id, j):
		el := j.Element(id.Job.Index)
		el.Number = id.Number
		e.finish(j, ElementRow{Element: *el, State: drover.JobSucceeded, Code: &s.Exit.Code, Reason: why.Reason()})
		e.postponed(j, id.Job.Index)
	}
	return true
}

// believeTag takes an operator's word from the tag of an instance that the records have otherwise, since they are older: the first that is
// seen of it, and any hold, since that may be seen late. What this engine had noted there is no news.
func (e *Engine) believeTag(in *fleet.Member, tag drover.IdleBehavior) {
	ownWord := in.Retag || in.Tagging.Set || in.Listed && tag != drover.IdleHold
	if e.recordsCurrent() || ownWord || tag == in.Idle || in.State == drover.InstanceStopping || !e.ours(in.Name) {
		return
	}
	in.Idle, in.Told = tag, nil
	if tag != drover.IdleRun {
		why := e.verdict(drover.ReasonOperator, "%s, according to its tag", map[drover.IdleBehavior]string{drover.IdleHold: "held", drover.IdleDrain: "drained"}[tag])
		in.Told = &why
		e.dropAllReservations(in)
	}
	if !in.Broken {
		in.Reason = in.Remark()
	}
	e.fleet.Moved()
	e.writeInstance(in)
	e.touch(in)
}
