package engine

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/runtimes"
)

// Nothing is rented for a job while cheaper room for it is likely to be free before a new instance would have booted.
// So no job waits longer than for a boot, and one boot less is paid for. Jobs with max_wait wait that much longer. Only
// attempts whose end is predictable enough count. One job waits for an attempt to end, the next for that job to end in
// turn.

// expectedEnd is when a running attempt is likely to end.
type expectedEnd struct {
	at   drover.Time
	a    *Attempt
	in   *fleet.Member
	need drover.Resources // what the attempt will free
}

func (x expectedEnd) compare(y expectedEnd) int {
	return cmp.Or(cmp.Compare(x.at, y.at), x.a.ID.Job.Compare(y.a.ID.Job))
}

const (
	sureSpread   = runtimes.Octave / 2 // attempts with a wider distribution are ignored
	sureBy       = 55                  // percent: the end must be this likely within the wait
	sureReach    = 32                  // ends that make room for a job, examined per job
	patientReach = 4 * sureReach       // the same for a job with max_wait
	sureSearch   = 16                  // ends looked at for each of these
	sureJobs     = 64                  // jobs examined per group
	lookEvery    = 10 * time.Second    // interval between checks on jobs with max_wait
	sureLate     = 10 * time.Second    // attempts overdue by this much are ignored
)

func endOf(a *Attempt) expectedEnd { return expectedEnd{at: a.Started.Add(a.Likely.Median()), a: a} }

// expectEnd records when an attempt is likely to end.
func (e *Engine) expectEnd(in *fleet.Member, a *Attempt) {
	if a.Likely.Sigma <= sureSpread && a.State != drover.AttemptCollecting {
		end := endOf(a)
		end.in, end.need = in, e.need(a)
		at, _ := slices.BinarySearchFunc(e.expectedEnds, end, expectedEnd.compare)
		e.expectedEnds = slices.Insert(e.expectedEnds, at, end)
	}
}

// forgetEnd removes an attempt's expected end.
func (e *Engine) forgetEnd(a *Attempt) {
	if at, found := slices.BinarySearchFunc(e.expectedEnds, endOf(a), expectedEnd.compare); found {
		e.expectedEnds = slices.Delete(e.expectedEnds, at, at+1)
	}
}

// countAwaitedEnds returns for how many of count waiting elements of the group room is expected in time, and sets when
// to check again. rooms holds the ends that other elements already wait for, with when those elements will have ended.
func (e *Engine) countAwaitedEnds(g *group, count int, rooms map[*Attempt]runtimes.Points) (n int) {
	if len(e.expectedEnds) == 0 || len(g.Jobs) == 0 || g.Key.Gang > 0 || g.Unschedulable || e.s.Closing {
		return 0
	}
	anew, known := e.costNewInstance(g)
	if !known {
		return 0
	}
	patience := e.patience(g, count)
	if e.pending.Patience > e.s.Now && g.Key.MaxWait > 0 {
		if len(patience) > 0 {
			e.pending.Await = sooner(e.pending.Await, e.pending.Patience)
		}
		return len(patience)
	}
	runs := e.runTime(g).alone
	for _, left := range patience {
		if e.awaitEnd(g, left, anew, runs, rooms) {
			n++
		}
	}
	return n
}

// answerWait is how long a new controller rents nothing for a job for which an instance has room that it has not heard
// from yet. Most answer within seconds.
const answerWait = 10 * time.Second

// awaitsAnswer reports whether an instance with room for one of the group's jobs is likely to answer soon.
func (e *Engine) awaitsAnswer(g *group) bool {
	until := e.s.Looking.Add(answerWait)
	if e.s.Now >= until {
		return false
	}
	unheard := e.fleet.Index().Unheard
	if !slices.ContainsFunc(unheard[:min(len(unheard), comparedMax)], func(in *fleet.Member) bool { return !in.TriedDial() && in.Holds(&g.demand) }) {
		return false
	}
	e.pending.Await = sooner(e.pending.Await, until)
	return true
}

// patience returns how much longer each element without a reservation may wait, oldest first. These are assumed to be
// the youngest.
func (e *Engine) patience(g *group, count int) (lefts []time.Duration) {
	for _, j := range slices.Backward(g.Jobs) {
		left := j.Since.Add(g.Key.MaxWait + e.forecast.BootTimes().Wait).Sub(e.s.Now)
		n := min(count-len(lefts), sureJobs-len(lefts), j.WaitingIn(g.Key))
		if left <= 0 || n <= 0 {
			break
		}
		lefts = append(lefts, slices.Repeat([]time.Duration{left}, n)...)
	}
	slices.Reverse(lefts)
	return lefts
}

// awaitEnd reports whether room for one of the group's jobs is expected in time, and claims it.
func (e *Engine) awaitEnd(g *group, left time.Duration, anew drover.Money, runs runtimes.Points, rooms map[*Attempt]runtimes.Points) bool {
	from, _ := slices.BinarySearchFunc(e.expectedEnds, e.s.Now.Add(-sureLate), func(x expectedEnd, at drover.Time) int { return cmp.Compare(x.at, at) })
	reach := sureReach
	if g.Key.MaxWait > 0 {
		reach = patientReach
	}
	for _, end := range e.expectedEnds[from:min(len(e.expectedEnds), from+sureSearch*reach)] {
		if end.at > e.s.Now.Add(left) || reach == 0 {
			break
		}
		a, in := end.a, end.in
		if !makesRoom(end, g) {
			continue
		}
		reach--
		ends, follows := rooms[a]
		if !follows {
			ends = a.Likely.Left(e.s.Now.Sub(a.Started))
		}
		by := ends.By(sureBy)
		if by > left {
			continue
		}
		later, others := runs.Later(ends.Mean()), e.remainingWork(in)
		if follows {
			others = runtimes.Longest(&others, &ends)
		}
		if in.Price.For(runtimes.Beyond(&later, &others))+e.opportunityCost(g, in) > anew || !e.allowsOn(in, g) {
			continue
		}
		rooms[a] = later
		e.pending.Await = sooner(e.pending.Await, e.s.Now.Add(by+time.Second))
		return true
	}
	return false
}

// awaitsNow returns for how many elements of a newly submitted job room would be free in time: for these, keeping an
// idle instance saves nothing.
func (e *Engine) awaitsNow(j *Job) int {
	g := e.byKey[e.queue.KeyOf(j)]
	if g == nil || len(e.expectedEnds) == 0 {
		return 0
	}
	return e.countAwaitedEnds(g, j.Queued.Count(), map[*Attempt]runtimes.Points{})
}

// makesRoom reports whether one of the group's jobs fits on an instance once an attempt there has ended.
func makesRoom(end expectedEnd, g *group) bool {
	in := end.in
	return in.Free.Plus(end.need, 1).Fits(g.Key.Shape.Need) && in.Open() && in.Standby == 0 && !in.UseOnce &&
		!slices.Contains(in.Lost, g.Jobs[0].Number) && in.Accepts(&g.demand)
}
