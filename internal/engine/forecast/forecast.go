// Package forecast learns how long things take, and predicts it: how long instances boot and destroyed ones are listed,
// how long jobs run, and how soon work returns to an instance that has become idle.
//
// The model: each kind of duration has statistics by key, bounded in number, in which recent observations weigh more.
// Boot times are means by instance type; times of create calls and delistings are means by cloud. Run times are
// log-normal distributions by user and name of job. Gaps are the last few times between the end of work of a shape and
// the next such work.
//
// Forecasts are used for expected costs alone: no deadline, commitment or order of service depends on one, so a wrong
// forecast costs money at most.
//
// The invariants: the statistics have no duplicate keys and are sorted by key. What is predicted follows from the Stats
// and the clouds' billing, and changes only with a revision.
package forecast

import (
	"slices"

	"drover"
)

// Forecast is the observed durations and what follows from them. It is not safe for concurrent use: the engine's loop
// owns it.
type Forecast struct {
	boots, calls []Stat
	clouds       []Cloud
	bootTimes    *BootTimes // nil: to be computed
	bootRevision int

	runs        []RunStat
	runTimes    map[Job]RunTime // until more is learned
	runRevision int

	delistings []Stat

	gaps   []*Gap
	gapsOf map[gapKey]*Gap
}

// New returns a forecast from the Stats, which it takes over.
func New(s Stats) *Forecast {
	f := &Forecast{boots: s.Boots, calls: s.Calls, runs: slices.Clone(s.Runs), runTimes: map[Job]RunTime{}, runRevision: 1, delistings: s.Delistings, gapsOf: map[gapKey]*Gap{}}
	for _, g := range s.Gaps {
		f.gaps = append(f.gaps, &g)
		f.gapsOf[gapKey{g.Shape, g.User}] = &g
	}
	return f
}

// State returns the statistics. They share no mutable memory with the forecast.
func (f *Forecast) State() Stats {
	s := Stats{Boots: slices.Clone(f.boots), Calls: slices.Clone(f.calls), Runs: slices.Clone(f.runs), Delistings: slices.Clone(f.delistings)}
	for _, g := range f.gaps {
		s.Gaps = append(s.Gaps, *g)
	}
	return s
}

// Cloud is what boot times depend on besides what was observed.
type Cloud struct {
	Name    string
	Billing drover.Billing
}

// SetClouds sets the clouds in which instances may be rented, by name.
func (f *Forecast) SetClouds(clouds []Cloud) {
	f.clouds = clouds
	f.refreshBoots()
}
