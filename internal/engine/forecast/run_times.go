package forecast

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"drover"
	"drover/internal/runtimes"
)

// A job's run time is modelled as a log-normal distribution, learned from jobs that have ended: jobs of the same user
// and name, pulled towards all of the user's jobs the fewer are known, and these towards everybody's. The submitter's
// estimate weighs as much as estimates, this user's first, have proved accurate. Jobs submitted together resemble those
// of them that have ended, running ones too.

// Job is what a forecast of a job's run time depends on besides what was learned.
type Job struct {
	User, Name string
	Since      drover.Time   // when it was submitted
	Expected   time.Duration // the submitter's estimate; 0: none
	Timeout    time.Duration // it runs no longer; 0: none
}

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
// of two. The first batches then cost 1.0 % less than without estimates if these are exact, and 1.0 % more if they are
// off by three (simulate.BenchmarkFirstEstimates). With a factor of 1.4 it would be 2.4 % less and 5.3 % more.
var (
	jobPrior   = runtimes.OfMean(time.Hour, 2*runtimes.Octave)
	guessPrior = runtimes.Dist{Sigma: runtimes.Octave}
)

// How many observations weigh as much as the prior. A few estimates show how good a user's others are: if they needed as
// many as run times do, a dense stream of jobs with exact estimates would cost 0.04 % more.
const (
	trustRuns      = 3
	trustEstimates = 1
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

// keys returns the keys by which a job's run time is learned, most general first.
func (j *Job) keys() (all [3]RunKey) {
	return [...]RunKey{{}, {User: j.User}, {User: j.User, Name: j.Name}}
}

// Ran learns how long a command ran that ended by itself.
func (f *Forecast) Ran(j Job, took time.Duration, now drover.Time) {
	f.runs = SeeRun(f.runs, j, took, now)
	clear(f.runTimes)
	f.runRevision++
}

// RunRevision counts changes of the run times, from 1.
func (f *Forecast) RunRevision() int { return f.runRevision }

// SeeRun adds a run time to the statistics, which are sorted by key, and changes them in place.
func SeeRun(all []RunStat, j Job, took time.Duration, at drover.Time) []RunStat {
	if took <= 0 {
		return all
	}
	keys := j.keys()
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
func (f *Forecast) refineBy(key RunKey, whole runtimes.Dist) runtimes.Dist {
	at, known := searchRuns(f.runs, key)
	if !known {
		return whole
	}
	weighs := int64(trustRuns)
	if key.Said {
		weighs = trustEstimates
	}
	return f.runs[at].Seen.Given(whole, weighs)
}

// runTimesMax is how many distributions are kept.
const runTimesMax = 10_000

// RunTime is how long attempts at a job are likely to run.
type RunTime struct {
	Alone    runtimes.Dist // an attempt by itself
	Together runtimes.Dist // each of several submitted together: their mean is as uncertain, but they differ less from each other
	Mean     time.Duration // of Together
}

// RunTime returns the likely run time of an attempt at the job.
func (f *Forecast) RunTime(j Job) RunTime {
	t, known := f.runTimes[j]
	if !known {
		if len(f.runTimes) >= runTimesMax {
			clear(f.runTimes)
		}
		t.Alone = f.computeLikely(&j)
		t.Together = runtimes.OfMean(t.Alone.Mean(), f.apart(&j, t.Alone.Sigma))
		t.Mean = t.Together.Mean()
		f.runTimes[j] = t
	}
	return t
}

func (f *Forecast) computeLikely(j *Job) runtimes.Dist {
	d := jobPrior
	for _, key := range j.keys() {
		d = f.refineBy(key, d)
	}
	if j.Expected > 0 {
		off := f.refineBy(RunKey{Said: true, User: j.User}, f.refineBy(RunKey{Said: true}, guessPrior))
		d = runtimes.Both(runtimes.Dist{Mu: runtimes.Log(j.Expected) + off.Mu, Sigma: off.Sigma}, d)
	}
	if ended := f.endedTogether(j); ended.Count > 0 {
		d = ended.OfGroup(d, runtimes.Apart{}.See(ended).Given(f.apart(j, d.Sigma)))
	}
	if j.Timeout > 0 && d.Mean() > j.Timeout {
		d = runtimes.OfMean(j.Timeout, d.Sigma)
	}
	return d
}

// Learned reports whether run times follow from those of earlier jobs, its user's and others'.
func (f *Forecast) Learned() bool {
	_, known := searchRuns(f.runs, RunKey{})
	return known
}

// endedTogether returns the run times of the ended jobs submitted together with this one.
func (f *Forecast) endedTogether(j *Job) runtimes.Learned {
	keys := j.keys()
	if at, known := searchRuns(f.runs, keys[len(keys)-1]); known {
		s := &f.runs[at]
		if own := s.batch(j.Since); own >= 0 {
			return s.Batches[own].Seen
		}
	}
	return runtimes.Learned{}
}

// apart returns how much the run times of jobs submitted together differ, if those of all jobs differ this much.
func (f *Forecast) apart(j *Job, sigma int64) int64 {
	for _, key := range j.keys() {
		if at, known := searchRuns(f.runs, key); known {
			sigma = f.runs[at].Apart.Given(sigma)
		}
	}
	return sigma
}
