package queue

import (
	"cmp"
	"slices"
)

// Class holds the jobs that are interchangeable for placement and have elements that may start.
type Class struct {
	Jobs   []*Job // by number
	Queued int    // their waiting elements

	key Key
}

// NewClass makes an empty class.
func NewClass(key Key) Class { return Class{key: key} }

// Add adds a job with its elements that wait in the class.
func (c *Class) Add(j *Job) {
	at, _ := slices.BinarySearchFunc(c.Jobs, j.Number, byNumber)
	c.Jobs = slices.Insert(c.Jobs, at, j)
	c.Queued += j.WaitingIn(c.key)
}

// Has reports whether the job is in the class.
func (c *Class) Has(j *Job) bool {
	_, in := slices.BinarySearchFunc(c.Jobs, j.Number, byNumber)
	return in
}

// Remove removes a job.
func (c *Class) Remove(j *Job) {
	if at, in := slices.BinarySearchFunc(c.Jobs, j.Number, byNumber); in {
		c.Jobs = cut(c.Jobs, at)
		c.count()
	}
}

// Next returns how many elements start next, together: one or, of gangs, those of the next gang; 0 if none waits.
func (c *Class) Next() int {
	if c.key.Gang == 0 || c.Queued == 0 {
		return min(c.Queued, 1)
	}
	return len(c.front())
}

// front returns the elements that start next.
func (c *Class) front() []int { return c.Jobs[0].Gangmates(c.Jobs[0].WaitingRanges(c.key)[0].First) }

// Take dequeues the elements that start next, and returns them with their job. The class must not be empty.
func (c *Class) Take() (j *Job, elements []int) {
	j, elements = c.Jobs[0], c.front()
	for _, index := range elements {
		j.Unqueue(index)
	}
	if c.Queued -= len(elements); j.WaitingIn(c.key) == 0 {
		c.Jobs = cut(c.Jobs, 0)
	}
	return j, elements
}

func byNumber(j *Job, number int64) int { return cmp.Compare(j.Number, number) }

// cut removes an element by moving the shorter side: jobs mostly leave from the front.
func cut(jobs []*Job, at int) []*Job {
	if at >= len(jobs)/2 {
		return slices.Delete(jobs, at, at+1)
	}
	copy(jobs[1:], jobs[:at])
	jobs[0] = nil
	return jobs[1:]
}

// count recounts Queued.
func (c *Class) count() {
	c.Queued = 0
	for _, j := range c.Jobs {
		c.Queued += j.WaitingIn(c.key)
	}
}

// First returns the number of the first job, or the maximum if there is none.
func (c *Class) First() int64 {
	if len(c.Jobs) == 0 {
		return 1<<63 - 1
	}
	return c.Jobs[0].Number
}

// WholeWithin returns the largest number of elements up to n that make complete gangs, in order.
func (c *Class) WholeWithin(n int) (sum int) {
	for _, j := range c.Jobs {
		next := j.Array.First
		for _, run := range j.WaitingRanges(c.key) {
			for next = max(next, run.First); next <= run.Last; {
				size := len(j.Gangmates(next))
				if sum+size > n {
					return sum
				}
				sum += size
				_, last := j.GangOf(next)
				next = last + 1
			}
		}
	}
	return sum
}
