package queue

import (
	"slices"
	"time"

	"drover"
)

// What waits of a job but may not start yet is postponed, and in no class: others of its gang have yet to end, its next try is not due, or as many
// of its array run as may at once.

// GangOf is the gang of an element, by its first and its last index.
func (j *Job) GangOf(index int) (first, last int) {
	first = j.Array.First + (index-j.Array.First)/j.Gang*j.Gang
	return first, min(first+j.Gang-1, j.Array.Last)
}

// Gangmates is the elements of a gang that wait.
func (j *Job) Gangmates(index int) (waiting []int) {
	first, last := j.GangOf(index)
	for i := first; i <= last; i++ {
		if j.Queued.Has(i) {
			waiting = append(waiting, i)
		}
	}
	return waiting
}

// maxRetryDelay is the longest time between two tries.
const maxRetryDelay = time.Hour

// RetryDelay is how long an element waits before its next try: each time twice as long as the time before.
func RetryDelay(r drover.Retry, tries int) time.Duration {
	d := r.Delay
	for range tries - 1 {
		d = min(2*d, max(r.Delay, maxRetryDelay))
	}
	return d
}

// Postpones reports whether anything of the job may ever be postponed.
func (j *Job) Postpones() bool { return j.Gang > 0 || j.Retry.Delay > 0 || j.MaxRunning > 0 }

// Due is when the last of the elements that wait may be tried again, 0 if none of them has to wait for that.
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

// Delayed is the elements whose next try is not due.
func (j *Job) Delayed(now drover.Time) (all Ranges) {
	for _, el := range j.Tried {
		if el.Until > now && j.Queued.Has(el.Index) {
			all.Add(el.Index)
		}
	}
	return all
}

// Postpone looks again at what is postponed, after an element has begun, ended or come to wait. siblings is how many attempts of its gang are live.
func (j *Job) Postpone(index, siblings int, now drover.Time) {
	first, last := index, index
	if j.Gang > 0 {
		first, last = j.GangOf(index)
	}
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

// HoldBack postpones those elements of an array beyond the first that may run beside those that do.
func (j *Job) HoldBack(now drover.Time) {
	if j.MaxRunning == 0 || j.Gang > 0 {
		return
	}
	due := j.Queued.Without(j.Delayed(now))
	j.Postponed = j.Queued.Without(due.Lowest(j.MaxRunning - j.Live()))
}
