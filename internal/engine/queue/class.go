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

// Take dequeues the next element. last reports whether it was its job's last in the class.
func (c *Class) Take() (j *Job, index int, last bool) {
	j = c.Jobs[0]
	index = j.takeFrom(c.key)
	c.Queued--
	if last = j.WaitingIn(c.key) == 0; last {
		c.Jobs = cut(c.Jobs, 0)
	}
	return j, index, last
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

// NextGang returns the next gang: its job and its waiting elements.
func (c *Class) NextGang() (*Job, []int) {
	j := c.Jobs[0]
	return j, j.Gangmates(j.WaitingRanges(c.key)[0].First)
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

// TakeGang dequeues the elements of the next gang.
func (c *Class) TakeGang(members []int) {
	j := c.Jobs[0]
	for _, index := range members {
		j.Queued.Remove(index)
	}
	if c.Queued -= len(members); j.WaitingIn(c.key) == 0 {
		c.Jobs = cut(c.Jobs, 0)
	}
}
