package engine

import (
	"drover"
	"drover/internal/engine/fleet"
	"drover/internal/engine/queue"
)

// Jobs that are not final, as the store and the shells know them.
type (
	Job      = queue.Job
	Element  = queue.Element
	Grown    = queue.Grown
	Range    = queue.Range
	Ranges   = queue.Ranges
	GroupKey = queue.Key
)

// RangesOf are the indexes of an array, or the one of a job that is none.
func RangesOf(a drover.Array) Ranges { return queue.RangesOf(a) }

// NewJob is a job as the engine first meets it: all of it waits. What it is to run after is the caller's to fill in.
func NewJob(number int64, user string, spec drover.JobSpec) Job {
	return queue.NewJob(number, user, spec)
}

// Instances and attempts, as the store and the shells know them.
type (
	Instance = fleet.Instance
	Observed = fleet.Observed
	Attempt  = fleet.Attempt
	Departed = fleet.Departed
	Sighting = fleet.Sighting
	Tagging  = fleet.Tagging
)
