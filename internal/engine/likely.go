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

// How long a job is likely to run is a log-normal distribution, which is learned from the jobs that have ended: those of its user and name, of which the
// fewer are known the more it is taken to be like all of the user's, and those like everybody's. What its submitter said counts for as much as such words, the user's first,
// have proved true. It is what decides where money is concerned, and nothing else: no deadline, no promise of money and no order of service follows from it.

// RunKey is whose run times are learned together. Zero fields are everybody's.
type RunKey struct {
	Said bool   `json:"said,omitempty"` // not the times, but by how much they differ from what was said
	User string `json:"user,omitempty"`
	Name string `json:"name,omitempty"`
}

// RunStat is what was learned of the run times of a key.
type RunStat struct {
	Key  RunKey           `json:"key"`
	Seen runtimes.Learned `json:"seen"`

	// Jobs that are submitted together take about as long as each other, whatever others took.
	Apart   runtimes.Apart   `json:"apart,omitzero"`   // how far apart their times lie
	Batches [batchMost]Batch `json:"batches,omitzero"` // of which more jobs may end, the oldest first

	Last drover.Time `json:"last"` // when one of them was seen last
}

// Batch is the jobs of a key that were submitted at one moment, and have ended.
type Batch struct {
	Since drover.Time      `json:"since,omitempty"`
	Seen  runtimes.Learned `json:"seen,omitzero"`
}

// batchMost is how many batches are followed at once. Single jobs make way for others first: nothing is to be learned of them.
const batchMost = 6

// see takes in that a job of a batch took so long, and returns the batch that makes way for it, if one does.
func (s *RunStat) see(since drover.Time, log int64) (over Batch) {
	at := slices.IndexFunc(s.Batches[:], func(b Batch) bool { return b.Since == since })
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

// Before anything is known a job is taken to last an hour on average, which half of all jobs do not come near, and what is said to be wrong by a factor of 2.
var (
	anyJob   = runtimes.OfMean(time.Hour, 2*runtimes.Octave)
	anyGuess = runtimes.Dist{Sigma: runtimes.Octave}
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

// searchRuns is where a key is among those that were seen, or would be. The elements are large, so none is copied.
func searchRuns(all []RunStat, key RunKey) (at int, known bool) {
	return sort.Find(len(all), func(i int) int { return key.compare(all[i].Key) })
}

// keysOf are what a job's run time is learned by, from the widest on.
func keysOf(j *Job) (all [3]RunKey) {
	return [...]RunKey{{}, {User: j.User}, {User: j.User, Name: j.Name}}
}

// tookTime learns how long a command took that ended by itself.
func (e *Engine) tookTime(a *Attempt) {
	if a.Exit.Cause == "" && a.Stop == nil {
		e.s.Stats.Runs = SeeRun(e.s.Stats.Runs, e.job(a.ID.Job.Number), a.Ended.Sub(a.Started), e.s.Now)
	}
}

// SeeRun is what is known of run times after a job took so long once more. They are sorted by key, and changed where they are.
func SeeRun(all []RunStat, j *Job, took time.Duration, at drover.Time) []RunStat {
	if took <= 0 {
		return all
	}
	keys := keysOf(j)
	for _, key := range keys {
		all = saw(all, key, runtimes.Log(took), at)
	}
	over := runStat(all, keys[len(keys)-1]).see(j.Since, runtimes.Log(took))
	for _, key := range keys {
		s := runStat(all, key)
		s.Apart = s.Apart.See(over.Seen)
	}
	if j.Expected > 0 {
		away := runtimes.Log(took) - runtimes.Log(j.Expected)
		all = saw(saw(all, RunKey{Said: true}, away, at), RunKey{Said: true, User: j.User}, away, at)
	}
	return all
}

// runStat is what is known of a key that was seen.
func runStat(all []RunStat, key RunKey) *RunStat {
	at, _ := searchRuns(all, key)
	return &all[at]
}

// saw learns a logarithm of a key. What was not seen for longest is forgotten for what is new.
func saw(all []RunStat, key RunKey, log int64, now drover.Time) []RunStat {
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

// given is what is known of a key, of a part of what the distribution is of.
func (e *Engine) given(key RunKey, whole runtimes.Dist) runtimes.Dist {
	at, known := searchRuns(e.s.Stats.Runs, key)
	if !known {
		return whole
	}
	return e.s.Stats.Runs[at].Seen.Given(whole)
}

// likely is how long an attempt at the job is likely to run.
func (e *Engine) likely(j *Job) runtimes.Dist {
	d := anyJob
	for _, key := range keysOf(j) {
		d = e.given(key, d)
	}
	if j.Expected == 0 {
		return d
	}
	off := e.given(RunKey{Said: true, User: j.User}, e.given(RunKey{Said: true}, anyGuess))
	return runtimes.Both(runtimes.Dist{Mu: runtimes.Log(j.Expected) + off.Mu, Sigma: off.Sigma}, d)
}

// alike is how long each of several jobs is likely to run that were submitted together: their mean is as uncertain as that of one, but they lie nearer to each other.
func (e *Engine) alike(j *Job) runtimes.Dist {
	one := e.likely(j)
	sigma := one.Sigma
	for _, key := range keysOf(j) {
		if at, known := searchRuns(e.s.Stats.Runs, key); known {
			sigma = e.s.Stats.Runs[at].Apart.Given(sigma)
		}
	}
	return runtimes.OfMean(one.Mean(), sigma)
}

// stepSpread is how uncertain a time is of which only the step of the scale is told, and spreadGrain what others are rounded to, so that what is about as likely is planned together.
const (
	stepSpread  = runtimes.Octave * 3 / 10
	spreadGrain = runtimes.Octave / 4
)

// expects tells the solver how long a group's jobs are likely to run. A gang's are taken to run for as long as each other.
func (e *Engine) expects(g *group, d drover.Demand) drover.Demand {
	if len(g.Jobs) == 0 {
		d.Time = g.Key.Expected
		return d
	}
	l := e.alike(g.Jobs[0])
	d.Time = queue.Step(l.Mean())
	if g.Key.Gang == 0 {
		d.Spread = max(stepSpread, (l.Sigma+spreadGrain/2)/spreadGrain*spreadGrain)
	}
	return d
}
