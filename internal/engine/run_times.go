package engine

import (
	"drover"
	"drover/internal/engine/forecast"
	"drover/internal/engine/queue"
	"drover/internal/runtimes"
)

// forecastJob returns what the forecast of a job's run time depends on.
func forecastJob(j *Job) forecast.Job {
	return forecast.Job{User: j.User, Name: j.Name, Since: j.Since, Expected: j.Expected, Timeout: j.Timeout}
}

// runTimeOf returns the likely run time of an attempt at the job.
func (e *Engine) runTimeOf(j *Job) forecast.RunTime { return e.forecast.RunTime(forecastJob(j)) }

// learnRunTime learns the run time of a command that ended by itself.
func (e *Engine) learnRunTime(a *Attempt) {
	if a.Exit.Cause == "" && a.Stop == nil {
		e.forecast.Ran(forecastJob(e.job(a.ID.Job.Number)), a.Ended.Sub(a.Started), e.s.Now)
	}
}

// groupRunTime is the likely run time of a group's next job, and what it follows from.
type groupRunTime struct {
	forecast.RunTime
	alone    runtimes.Points // RunTime.Alone, of a job that begins
	job      forecast.Job
	revision int
}

// runTime returns the likely run time of the group's next job.
func (e *Engine) runTime(g *group) *groupRunTime {
	job := forecast.Job{User: g.Key.User, Expected: g.Key.Expected, Timeout: g.Key.Timeout}
	if len(g.Jobs) > 0 {
		job = forecastJob(g.Jobs[0])
	}
	if t, now := &g.runTime, e.forecast.RunRevision(); t.revision != now || t.job != job {
		likely := e.forecast.RunTime(job)
		*t = groupRunTime{likely, likely.Alone.Left(0), job, now}
	}
	return &g.runTime
}

// longestRun returns the distribution of the longest run time of the group's next n jobs.
func (e *Engine) longestRun(g *group, n int) runtimes.Points {
	if len(g.Jobs) == 0 {
		return runtimes.LongestOf(e.runTime(g).Alone, n)
	}
	return runtimes.LongestOf(e.runTime(g).Together, n)
}

// stepSpread is the uncertainty of a time of which only the scale step is known. Others are rounded to spreadGrain, so
// that similar jobs are planned together.
const (
	stepSpread  = runtimes.Octave * 3 / 10
	spreadGrain = runtimes.Octave / 4
)

// addRunTime adds the likely run time to a demand. A gang's elements are assumed to run equally long.
func (e *Engine) addRunTime(g *group, d drover.Demand) drover.Demand {
	if len(g.Jobs) == 0 {
		d.Time = g.Key.Expected
		return d
	}
	t := e.runTime(g)
	d.Time = queue.Step(t.Mean)
	if g.Key.Gang == 0 {
		d.Spread = max(stepSpread, (t.Together.Sigma+spreadGrain/2)/spreadGrain*spreadGrain)
	}
	return d
}
