package engine

import (
	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/forecast"
	"drover/internal/engine/queue"
)

// Unfinished jobs, as the store and the shells use them.
type (
	Job      = queue.Job
	Element  = queue.Element
	Grown    = queue.Grown
	Range    = queue.Range
	Ranges   = queue.Ranges
	GroupKey = queue.Key
)

// RangesOf returns the indexes of an array, or the single index of a job without one.
func RangesOf(a drover.Array) Ranges { return queue.RangesOf(a) }

// NewJob makes a new job whose elements all wait. The caller sets its dependencies.
func NewJob(number int64, user string, spec drover.JobSpec) Job {
	return queue.NewJob(number, user, spec)
}

// Stats are the observed durations.
type Stats = forecast.Stats

// Instances and attempts, as the store and the shells use them.
type (
	Instance = fleet.Instance
	Observed = fleet.Observed
	Attempt  = fleet.Attempt
	Departed = fleet.Departed
	Sighting = fleet.Sighting
	Tagging  = fleet.Tagging
)
