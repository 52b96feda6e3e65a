// Package queue holds the jobs that are not final.
//
// The model: an array is one Job whose waiting elements are ranges of indexes. Waiting elements that may start belong
// to a Class, together with all others that are interchangeable for placement. Elements that may not start yet are
// postponed, and belong to no class. A job that runs after others names them, and the Queue knows who follows whom. A
// failed element to be retried waits until its retry is due.
//
// The invariants: each element is waiting, live or final, and never two of these; a postponed element is waiting; a
// class holds exactly the waiting elements of its key that may start and are not postponed.
package queue

import (
	"cmp"
	"iter"
	"slices"

	"drover"
)

// Queue holds the jobs that are not final. It is not safe for concurrent use: the engine's loop owns it.
type Queue struct {
	jobs      roster
	followers map[int64][]int64 // by job: the jobs that run after it
	labels    []string          // names of the labels that distinguish classes, sorted
	tries     []try             // future ones, earliest first
}

// try is when an element may be retried.
type try struct {
	at    drover.Time
	job   int64
	index int
}

// New makes an empty queue. labels names the labels that distinguish classes.
func New(labels []string) *Queue { return &Queue{followers: map[int64][]int64{}, labels: labels} }

// Labels names the labels that distinguish classes.
func (q *Queue) Labels() []string { return q.labels }

// SetLabels changes them. No job may be in a class meanwhile.
func (q *Queue) SetLabels(names []string) { q.labels = names }

// Job returns the job with a number; nil if there is none, or it is final.
func (q *Queue) Job(number int64) *Job { return q.jobs.find(number) }

// All iterates over the jobs by number. None may be added or removed meanwhile.
func (q *Queue) All() iter.Seq[*Job] { return q.jobs.all() }

// Len returns the number of jobs.
func (q *Queue) Len() int { return q.jobs.count }

// Add adds a job.
func (q *Queue) Add(j *Job) {
	q.jobs.add(j)
	for _, n := range slices.Concat(j.After, j.AfterAny) {
		q.followers[n] = append(q.followers[n], j.Number)
	}
}

// Remove removes a final job.
func (q *Queue) Remove(number int64) { q.jobs.remove(number) }

// Followers returns the jobs that run after one, by number, and forgets them.
func (q *Queue) Followers(of int64) []int64 {
	all := slices.Compact(slices.Sorted(slices.Values(q.followers[of])))
	delete(q.followers, of)
	return slices.DeleteFunc(all, func(n int64) bool { // it ended, and perhaps was requeued without the dependency
		j := q.Job(n)
		return j == nil || !slices.Contains(j.After, of) && !slices.Contains(j.AfterAny, of)
	})
}

// KeyOf returns the class of the job's elements, except those with more memory.
func (q *Queue) KeyOf(j *Job) Key { return KeyOf(j, q.labels) }

// TryAt schedules the retry of a waiting element.
func (q *Queue) TryAt(j *Job, el Element) {
	n := try{el.Until, j.Number, el.Index}
	at, _ := slices.BinarySearchFunc(q.tries, n, func(a, b try) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job), cmp.Compare(a.index, b.index))
	})
	q.tries = slices.Insert(q.tries, at, n)
}

// NextTry returns when the next element may be retried; 0: never.
func (q *Queue) NextTry() drover.Time {
	n, _ := q.next()
	return n.at
}

// Due dequeues an element that may be retried now; j is nil if there is none.
func (q *Queue) Due(now drover.Time) (j *Job, index int) {
	n, j := q.next()
	if j == nil || n.at > now {
		return nil, 0
	}
	q.tries = q.tries[1:]
	return j, n.index
}

// next returns the next retry that is still valid, and drops others.
func (q *Queue) next() (n try, j *Job) {
	for len(q.tries) > 0 {
		n = q.tries[0]
		if j = q.Job(n.job); j != nil && j.Queued.Has(n.index) && j.Due(n.index, n.index) == n.at {
			return n, j
		}
		q.tries = q.tries[1:]
	}
	return try{}, nil
}
