package queue

import (
	"cmp"
	"slices"
	"time"

	"drover"
)

// An element that ran out of memory may be retried with more. Its shape then differs from the rest of its job, so it
// waits in the class of that shape: a job is in as many classes as its waiting elements have amounts of memory. Queued
// contains all of them, and Grown lists the elements for each amount except the job's own.

// GrownIn returns the job's elements that wait in a class because of their increased memory; nil if it is the job's own
// class.
func (j *Job) GrownIn(key Key) *Grown {
	for i := range j.Grown {
		if j.Grown[i].Memory == key.Shape.Need.Memory {
			return &j.Grown[i]
		}
	}
	return nil
}

// WaitingIn returns how many of the job's elements wait in the class.
func (j *Job) WaitingIn(key Key) int {
	return j.WaitingRanges(key).Count()
}

// WaitingRanges returns which of the job's elements wait in the class. The caller does not change them.
func (j *Job) WaitingRanges(key Key) Ranges {
	if len(j.Postponed) == 0 && len(j.Grown) == 0 {
		return j.Queued
	}
	if grown := j.GrownIn(key); grown != nil {
		return grown.Waiting.Without(j.Postponed)
	}
	own := j.Queued.Without(j.Postponed)
	for _, grown := range j.Grown {
		own = own.Without(grown.Waiting)
	}
	return own
}

// Enqueue adds an element to the job's queue, according to its memory.
func (j *Job) Enqueue(index int) {
	j.Queued.Add(index)
	memory := j.MemoryOf(index)
	if memory == 0 {
		return
	}
	at, known := slices.BinarySearchFunc(j.Grown, memory, func(g Grown, m drover.Bytes) int { return cmp.Compare(g.Memory, m) })
	if !known {
		j.Grown = slices.Insert(j.Grown, at, Grown{Memory: memory})
	}
	j.Grown[at].Waiting.Add(index)
}

// Unqueue removes an element from the job's queue and reports whether it was there.
func (j *Job) Unqueue(index int) bool {
	for i := range j.Grown {
		j.Grown[i].Waiting.Remove(index)
	}
	j.Postponed.Remove(index)
	return j.Queued.Remove(index)
}

// DropGrown drops the amounts of memory with which no element waits, unless one that runs with it may wait again and was
// blocked before.
func (j *Job) DropGrown() {
	j.Grown = slices.DeleteFunc(j.Grown, func(g Grown) bool {
		runs := func(el Element) bool { return el.Memory == g.Memory }
		return len(g.Waiting) == 0 && (g.Blocked == 0 || !slices.ContainsFunc(j.Tried, runs))
	})
}

// Needs returns what an element needs of an instance.
func (j *Job) Needs(index int) drover.Resources {
	need := j.Shape.Need
	if memory := j.MemoryOf(index); memory > 0 {
		need.Memory = memory
	}
	return need
}

// MemoryOf returns an element's increased memory, 0 for what its job says.
func (j *Job) MemoryOf(index int) drover.Bytes {
	if at, tried := slices.BinarySearchFunc(j.Tried, index, byIndex); tried {
		return j.Tried[at].Memory
	}
	return 0
}

// BlockedIn returns where the blocked time of the job's elements in the class is stored.
func (j *Job) BlockedIn(key Key) *time.Duration {
	if grown := j.GrownIn(key); grown != nil {
		return &grown.Blocked
	}
	return &j.Blocked
}
