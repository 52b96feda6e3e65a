// Package queue holds the jobs that are not final.
//
// The model: an array is one Job whose waiting elements are ranges of indexes. What waits and may start is in a Class, with everything that is
// interchangeable with it for placement; what waits and may not start yet is postponed, and in none. A job that runs after others names them, and the
// Queue knows who follows whom. What failed and is tried again waits for its time.
//
// The invariants: each element of a job is waiting, live or final, and never two of these; what is postponed waits; a class has exactly the elements
// of its key that wait, may start and are not postponed.
package queue

import (
	"cmp"
	"iter"
	"slices"

	"drover"
)

// Queue is the jobs that are not final. It is not safe for concurrent use: the engine's loop owns it.
type Queue struct {
	jobs      roster
	followers map[int64][]int64 // of a job that is not final: the numbers of those that run after it
	labels    []string          // whose values tell classes apart, by name
	tries     []try             // that are to come, the first of them first
}

// try is when an element may be tried again.
type try struct {
	at    drover.Time
	job   int64
	index int
}

// New is a queue in which nothing waits. labels are the names of those whose values tell classes apart.
func New(labels []string) *Queue { return &Queue{followers: map[int64][]int64{}, labels: labels} }

// Labels are the names of the labels whose values tell classes apart.
func (q *Queue) Labels() []string { return q.labels }

// SetLabels has other labels tell classes apart. Jobs are to be in none meanwhile.
func (q *Queue) SetLabels(names []string) { q.labels = names }

// Job is the job of a number; nil if there is none that is not final.
func (q *Queue) Job(number int64) *Job { return q.jobs.find(number) }

// All goes through the jobs, by number. None is to be added or removed meanwhile.
func (q *Queue) All() iter.Seq[*Job] { return q.jobs.all() }

// Len is how many jobs there are.
func (q *Queue) Len() int { return q.jobs.count }

// Add takes a job in.
func (q *Queue) Add(j *Job) {
	q.jobs.add(j)
	for _, n := range slices.Concat(j.After, j.AfterAny) {
		q.followers[n] = append(q.followers[n], j.Number)
	}
}

// Remove lets a job go that is final.
func (q *Queue) Remove(number int64) { q.jobs.remove(number) }

// Followers is the jobs that run after one, by number; they are forgotten.
func (q *Queue) Followers(of int64) []int64 {
	all := slices.Compact(slices.Sorted(slices.Values(q.followers[of])))
	delete(q.followers, of)
	return all
}

// KeyOf names the class that the job's waiting elements are in, but for those that have more memory.
func (q *Queue) KeyOf(j *Job) Key { return KeyOf(j, q.labels) }

// TryAt has an element that waits be tried again at its time.
func (q *Queue) TryAt(j *Job, el Element) {
	n := try{el.Until, j.Number, el.Index}
	at, _ := slices.BinarySearchFunc(q.tries, n, func(a, b try) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job), cmp.Compare(a.index, b.index))
	})
	q.tries = slices.Insert(q.tries, at, n)
}

// NextTry is when the next element may be tried again that waits for that; 0 if none does.
func (q *Queue) NextTry() drover.Time {
	n, _ := q.next()
	return n.at
}

// Due takes out an element whose next try has come; a nil job if there is none.
func (q *Queue) Due(now drover.Time) (j *Job, index int) {
	n, j := q.next()
	if j == nil || n.at > now {
		return nil, 0
	}
	q.tries = q.tries[1:]
	return j, n.index
}

// next is the next element that is to be tried again, if it still waits for that.
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
