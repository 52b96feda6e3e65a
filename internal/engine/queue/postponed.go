package queue

import (
	"slices"

	"drover"
)

// An element that waits but may not start yet is postponed, and in no class: its gang has live attempts, its retry is
// not due, or max_running of its array run.

// GangOf returns the first and last index of an element's gang; without gangs, the element is alone.
func (j *Job) GangOf(index int) (first, last int) {
	if j.Gang == 0 {
		return index, index
	}
	first = j.Array.First + (index-j.Array.First)/j.Gang*j.Gang
	return first, min(first+j.Gang-1, j.Array.Last)
}

// Gangmates returns the waiting elements of an element's gang.
func (j *Job) Gangmates(index int) (waiting []int) {
	first, last := j.GangOf(index)
	waiting = make([]int, 0, last-first+1)
	for i := first; i <= last; i++ {
		if j.Queued.Has(i) {
			waiting = append(waiting, i)
		}
	}
	return waiting
}

// Postpones reports whether elements of the job may ever be postponed.
func (j *Job) Postpones() bool { return j.Gang > 0 || j.Retry.Delay > 0 || j.MaxRunning > 0 }

// Due returns when the last of the waiting elements may be retried, 0 if none is delayed.
func (j *Job) Due(first, last int) (at drover.Time) {
	from, _ := slices.BinarySearchFunc(j.Tried, first, byIndex)
	for _, el := range j.Tried[from:] {
		if el.Index > last {
			break
		}
		if j.Queued.Has(el.Index) {
			at = max(at, el.Until)
		}
	}
	return at
}

// Delayed returns the elements whose retry is not due.
func (j *Job) Delayed(now drover.Time) (all Ranges) {
	for _, el := range j.Tried {
		if el.Until > now && j.Queued.Has(el.Index) {
			all.Add(el.Index)
		}
	}
	return all
}

// Postpone updates what is postponed after an element has started, ended or been queued. siblings is the number of live
// attempts of its gang.
func (j *Job) Postpone(index, siblings int, now drover.Time) {
	first, last := j.GangOf(index)
	if j.Queued.Any(first, last) || j.Postponed.Any(first, last) {
		wait := siblings > 0 || j.Due(first, last) > now
		for i := first; i <= last; i++ {
			if wait && j.Queued.Has(i) {
				j.Postponed.Add(i)
			} else {
				j.Postponed.Remove(i)
			}
		}
	}
	j.HoldBack(now)
}

// HoldBack postpones elements of an array beyond those that MaxRunning allows. Those that need least memory start first:
// while there is no instance for the others, there may be one for these.
func (j *Job) HoldBack(now drover.Time) {
	if j.MaxRunning == 0 || j.Gang > 0 {
		return
	}
	left, delayed, own := j.MaxRunning-j.Live(), j.Delayed(now), j.Queued
	for _, grown := range j.Grown {
		own = own.Without(grown.Waiting)
	}
	starts := own.Without(delayed).Lowest(left)
	j.Postponed = j.Queued.Without(starts)
	for _, grown := range j.Grown {
		left -= starts.Count()
		starts = grown.Waiting.Without(delayed).Lowest(left)
		j.Postponed = j.Postponed.Without(starts)
	}
}
