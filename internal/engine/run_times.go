package engine

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"drover"
	"drover/internal/engine/queue"
	"drover/internal/runtimes"
)

// A job's run time is modelled as a log-normal distribution, learned from jobs that have ended: jobs of the same user
// and name, pulled towards all of the user's jobs the fewer are known, and these towards everybody's. The submitter's
// estimate weighs as much as estimates, this user's first, have proved accurate. Jobs submitted together resemble those
// of them that have ended, running ones too. The result is used only for expected costs: no deadline, commitment or
// order of service depends on it.

// RunKey identifies jobs whose run times are learned together. Zero fields match everybody's.
type RunKey struct {
	Said bool   `json:"said,omitempty"` // not run times, but their deviation from the estimates
	User string `json:"user,omitempty"`
	Name string `json:"name,omitempty"`
}

// RunStat is what was learned about the run times of a key.
type RunStat struct {
	Key  RunKey           `json:"key"`
	Seen runtimes.Learned `json:"seen"`

	// Jobs submitted together take similarly long, however long others take.
	Apart   runtimes.Apart   `json:"apart,omitzero"`   // spread of run times within a batch
	Batches [batchMost]Batch `json:"batches,omitzero"` // batches that may still grow, oldest first

	Last drover.Time `json:"last"` // latest observation
}

// Batch is the ended jobs of a key that were submitted together.
type Batch struct {
	Since drover.Time      `json:"since,omitempty"`
	Seen  runtimes.Learned `json:"seen,omitzero"`
}

// batchMost is how many batches are tracked at once. Batches of one job are dropped first, since they teach nothing.
const batchMost = 6

// batch returns the index of the batch submitted at this time; -1 if it is not tracked.
func (s *RunStat) batch(since drover.Time) int {
	return slices.IndexFunc(s.Batches[:], func(b Batch) bool { return b.Since == since })
}

// see adds a run time to its batch and returns the batch that is dropped to make room, if any.
func (s *RunStat) see(since drover.Time, log int64) (over Batch) {
	at := s.batch(since)
	if at < 0 {
		at = max(0, slices.IndexFunc(s.Batches[:], func(b Batch) bool { return b.Seen.Count <= 1 }))
		over = s.Batches[at]
		copy(s.Batches[at:], s.Batches[at+1:])
		at = batchMost - 1
		s.Batches[at] = Batch{Since: since}
	}
	s.Batches[at].Seen = s.Batches[at].Seen.See(log)
	return over
}

// Priors. Without observations a job lasts an hour on average, with a wide spread, and an estimate is off by a factor
// of 1.4, so that the first estimates are relied on.
var (
	jobPrior   = runtimes.OfMean(time.Hour, 2*runtimes.Octave)
	guessPrior = runtimes.Dist{Sigma: runtimes.Octave / 2}
)

func (k RunKey) compare(o RunKey) int {
	switch {
	case k.Said != o.Said && o.Said:
		return -1
	case k.Said != o.Said:
		return 1
	}
	return cmp.Or(cmp.Compare(k.User, o.User), cmp.Compare(k.Name, o.Name))
}

// searchRuns finds the position of a key. It does not copy the elements, which are large.
func searchRuns(all []RunStat, key RunKey) (at int, known bool) {
	return sort.Find(len(all), func(i int) int { return key.compare(all[i].Key) })
}

// keysOf returns the keys by which a job's run time is learned, most general first.
func keysOf(j *Job) (all [3]RunKey) {
	return [...]RunKey{{}, {User: j.User}, {User: j.User, Name: j.Name}}
}

// learnRunTime learns the run time of a command that ended by itself.
func (e *Engine) learnRunTime(a *Attempt) {
	if a.Exit.Cause == "" && a.Stop == nil {
		e.s.Stats.Runs = SeeRun(e.s.Stats.Runs, e.job(a.ID.Job.Number), a.Ended.Sub(a.Started), e.s.Now)
		clear(e.runTimes)
		e.runTimesRevision++
	}
}

// SeeRun adds a run time to the statistics, which are sorted by key, and changes them in place.
func SeeRun(all []RunStat, j *Job, took time.Duration, at drover.Time) []RunStat {
	if took <= 0 {
		return all
	}
	keys := keysOf(j)
	for _, key := range keys {
		all = learn(all, key, runtimes.Log(took), at)
	}
	over := runStat(all, keys[len(keys)-1]).see(j.Since, runtimes.Log(took))
	for _, key := range keys {
		s := runStat(all, key)
		s.Apart = s.Apart.See(over.Seen)
	}
	if j.Expected > 0 {
		away := runtimes.Log(took) - runtimes.Log(j.Expected)
		all = learn(learn(all, RunKey{Said: true}, away, at), RunKey{Said: true, User: j.User}, away, at)
	}
	return all
}

// runStat returns the statistics of a known key.
func runStat(all []RunStat, key RunKey) *RunStat {
	at, _ := searchRuns(all, key)
	return &all[at]
}

// learn adds a logarithm to a key. If the list is full, the key seen least recently is dropped for a new one.
func learn(all []RunStat, key RunKey, log int64, now drover.Time) []RunStat {
	at, known := searchRuns(all, key)
	if !known {
		if len(all) >= statsMost {
			oldest := slices.MinFunc(all, func(a, b RunStat) int { return cmp.Or(cmp.Compare(a.Last, b.Last), a.Key.compare(b.Key)) })
			all = slices.DeleteFunc(all, func(s RunStat) bool { return s.Key == oldest.Key })
			at, _ = searchRuns(all, key)
		}
		all = slices.Insert(all, at, RunStat{Key: key})
	}
	all[at].Seen, all[at].Last = all[at].Seen.See(log), now
	return all
}

// refineBy refines the distribution of a larger set by what is known about a key.
func (e *Engine) refineBy(key RunKey, whole runtimes.Dist) runtimes.Dist {
	at, known := searchRuns(e.s.Stats.Runs, key)
	if !known {
		return whole
	}
	return e.s.Stats.Runs[at].Seen.Given(whole)
}

// runTimesMax is how many distributions runTimes holds.
const runTimesMax = 10_000

// runTimeKey is what a job's run time distribution depends on besides what was learned.
type runTimeKey struct {
	user, name string
	since      drover.Time
	expected   time.Duration
}

// runTime is how long attempts at jobs with one key are likely to run.
type runTime struct {
	one      runtimes.Dist // an attempt by itself
	together runtimes.Dist // each of several submitted together
	mean     time.Duration // of together
}

// likely returns the run time distribution of an attempt at the job.
func (e *Engine) likely(j *Job) runtimes.Dist { return e.runTimesOf(j).one }

// likelyTogether returns the run time distribution of each of several jobs submitted together: their mean is as
// uncertain as for one, but they differ less from each other.
func (e *Engine) likelyTogether(j *Job) runtimes.Dist { return e.runTimesOf(j).together }

func runTimeKeyOf(j *Job) runTimeKey { return runTimeKey{j.User, j.Name, j.Since, j.Expected} }

func (e *Engine) runTimesOf(j *Job) runTime {
	key := runTimeKeyOf(j)
	t, known := e.runTimes[key]
	if !known {
		if len(e.runTimes) >= runTimesMax {
			clear(e.runTimes)
		}
		t.one = e.computeLikely(j)
		t.together = runtimes.OfMean(t.one.Mean(), e.apart(j, t.one.Sigma))
		t.mean = t.together.Mean()
		e.runTimes[key] = t
	}
	return t
}

func (e *Engine) computeLikely(j *Job) runtimes.Dist {
	d := jobPrior
	for _, key := range keysOf(j) {
		d = e.refineBy(key, d)
	}
	if j.Expected > 0 {
		off := e.refineBy(RunKey{Said: true, User: j.User}, e.refineBy(RunKey{Said: true}, guessPrior))
		d = runtimes.Both(runtimes.Dist{Mu: runtimes.Log(j.Expected) + off.Mu, Sigma: off.Sigma}, d)
	}
	if ended := e.endedTogether(j); ended.Count > 0 {
		d = ended.OfGroup(d, runtimes.Apart{}.See(ended).Given(e.apart(j, d.Sigma)))
	}
	return d
}

// endedTogether returns the run times of the ended jobs submitted together with this one.
func (e *Engine) endedTogether(j *Job) runtimes.Learned {
	keys := keysOf(j)
	if at, known := searchRuns(e.s.Stats.Runs, keys[len(keys)-1]); known {
		s := &e.s.Stats.Runs[at]
		if own := s.batch(j.Since); own >= 0 {
			return s.Batches[own].Seen
		}
	}
	return runtimes.Learned{}
}

// apart returns how much the run times of jobs submitted together differ, if those of all jobs differ this much.
func (e *Engine) apart(j *Job, sigma int64) int64 {
	for _, key := range keysOf(j) {
		if at, known := searchRuns(e.s.Stats.Runs, key); known {
			sigma = e.s.Stats.Runs[at].Apart.Given(sigma)
		}
	}
	return sigma
}

// stepSpread is the uncertainty of a time of which only the scale step is known. Others are rounded to spreadGrain, so
// that similar jobs are planned together.
const (
	stepSpread  = runtimes.Octave * 3 / 10
	spreadGrain = runtimes.Octave / 4
)

// runTimeOf says which jobs a run time is of, and as of which revision.
type runTimeOf struct {
	jobs     runTimeKey
	revision int
}

// addRunTime adds the likely run time to a demand. A gang's elements are assumed to run equally long.
func (e *Engine) addRunTime(g *group, d drover.Demand) drover.Demand {
	if len(g.Jobs) == 0 {
		d.Time = g.Key.Expected
		return d
	}
	j := g.Jobs[0]
	if known := (runTimeOf{runTimeKeyOf(j), e.runTimesRevision}); g.runTimeOf != known {
		g.runTimeOf, g.runTime = known, e.runTimesOf(j)
	}
	t := g.runTime
	d.Time = queue.Step(t.mean)
	if g.Key.Gang == 0 {
		d.Spread = max(stepSpread, (t.together.Sigma+spreadGrain/2)/spreadGrain*spreadGrain)
	}
	return d
}
