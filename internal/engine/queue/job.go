package queue

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/verdict"
)

// Job is a submitted job or array that is not final. Its command, environment and inputs stay in the store.
type Job struct {
	Number     int64             `json:"number"`
	Name       string            `json:"name"`
	User       string            `json:"user,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"` // immutable
	Shape      drover.Shape      `json:"shape"`
	Array      drover.Array      `json:"array"`
	Gang       int               `json:"gang,omitempty"`        // this many consecutive elements start together; 0: each by itself
	MaxRunning int               `json:"max_running,omitempty"` // elements that may run at a time; 0: no limit
	Priority   int               `json:"priority"`
	Attempts   int               `json:"attempts"` // starts that may be lost
	Retry      drover.Retry      `json:"retry"`
	Timeout    time.Duration     `json:"timeout,omitempty"`
	Expected   time.Duration     `json:"expected,omitempty"`  // how long one attempt is expected to run; 0: unknown
	MaxWait    time.Duration     `json:"max_wait,omitempty"`  // how much longer than a boot it may wait for room that is paid for anyway
	After      []int64           `json:"after,omitempty"`     // jobs that must succeed first; removed as they do
	AfterAny   []int64           `json:"after_any,omitempty"` // jobs that must be final first; likewise

	Queued            Ranges           `json:"queued"`          // elements that wait for an attempt
	Grown             []Grown          `json:"grown,omitempty"` // queued elements with more memory than the job's, by amount
	Postponed         Ranges           `json:"-"`               // queued elements that may not start yet; derived
	Tried             []Element        `json:"tried,omitempty"` // elements with attempts that are not final, by index
	Succeeded         int              `json:"succeeded,omitempty"`
	Failed            int              `json:"failed,omitempty"`
	Cancelled         int              `json:"cancelled,omitempty"`
	Cancel            *verdict.Verdict `json:"cancel,omitempty"`  // why it is being cancelled
	Overdue           *verdict.Verdict `json:"overdue,omitempty"` // why its waiting elements were cancelled while others ran on
	Since             drover.Time      `json:"since"`             // waiting since
	Again             int64            `json:"again,omitempty"`   // its place among finished jobs that were requeued; 0: not requeued
	Blocked           time.Duration    `json:"blocked,omitempty"` // how long it has waited in total for blocked offerings
	ConsecutiveLosses int              `json:"losers,omitempty"`  // how many instances in a row have lost it while alive
}

// Grown is the waiting elements of a job with the same increased memory, since they ran out of less.
type Grown struct {
	Memory  drover.Bytes  `json:"memory"`
	Waiting Ranges        `json:"waiting"`
	Blocked time.Duration `json:"blocked,omitempty"` // like the job's, for these
}

// Element is the record of a job or array element between attempts.
type Element struct {
	Index   int `json:"index"`
	Number  int `json:"number"`            // of its last attempt
	Lost    int `json:"lost,omitempty"`    // attempts lost with their instances
	Retried int `json:"retried,omitempty"` // retries by exit code

	Until drover.Time `json:"until,omitempty"` // it is not retried before

	Interrupted drover.Time  `json:"interrupted,omitempty"` // when its last attempt was interrupted, if so
	Memory      drover.Bytes `json:"memory,omitempty"`      // its increased memory; 0: what its job says
}

// NewJob makes a new job whose elements all wait. The caller sets its dependencies.
func NewJob(number int64, user string, spec drover.JobSpec) Job {
	return Job{
		Number: number, Name: spec.Name, User: user, Labels: spec.Labels,
		Shape: drover.Shape{Need: spec.Resources, Placement: spec.Placement, Spot: spec.Spot},
		Array: spec.Array, Gang: spec.Gang, MaxRunning: spec.MaxRunning, Queued: RangesOf(spec.Array),
		Priority: spec.Priority, Attempts: spec.Attempts, Retry: spec.Retry, Timeout: spec.Timeout, Expected: spec.Expected, MaxWait: spec.MaxWait,
	}
}

// Clone returns a copy that shares no mutable memory with the job.
func (j *Job) Clone() Job {
	c := *j
	c.After, c.AfterAny = slices.Clone(j.After), slices.Clone(j.AfterAny)
	c.Queued = slices.Clone(j.Queued)
	c.Postponed = slices.Clone(j.Postponed)
	c.Tried = slices.Clone(j.Tried)
	c.Grown = slices.Clone(j.Grown)
	for i := range c.Grown {
		c.Grown[i].Waiting = slices.Clone(c.Grown[i].Waiting)
	}
	return c
}

// MayStart reports whether the job's queued elements wait only for a place.
func (j *Job) MayStart() bool { return !j.Follows() && j.Priority > 0 && j.Cancel == nil }

// WhyCancelled returns why the job or its waiting elements were cancelled; nil if they were not.
func (j *Job) WhyCancelled() *verdict.Verdict { return cmp.Or(j.Cancel, j.Overdue) }

// Follows reports whether other jobs must end before the job's elements may start.
func (j *Job) Follows() bool { return len(j.After) > 0 || len(j.AfterAny) > 0 }

func byIndex(el Element, index int) int { return cmp.Compare(el.Index, index) }

// Element returns what is remembered of an element, creating it for its first attempt.
func (j *Job) Element(index int) *Element {
	at, ok := slices.BinarySearchFunc(j.Tried, index, byIndex)
	if !ok {
		j.Tried = slices.Insert(j.Tried, at, Element{Index: index})
	}
	return &j.Tried[at]
}

// Forget drops what is remembered of a final element.
func (j *Job) Forget(index int) {
	at, ok := slices.BinarySearchFunc(j.Tried, index, byIndex)
	if ok {
		j.Tried = slices.Delete(j.Tried, at, at+1)
	}
}

// Held reports whether the job has queued elements that may not start at all: it follows other jobs, or its priority is
// 0.
func (j *Job) Held() bool { return len(j.Queued) > 0 && (j.Follows() || j.Priority == 0) }

// Waits returns how many elements of the job or element named by id wait.
func (j *Job) Waits(id drover.JobID) int {
	switch {
	case id.Index < 0 && j.Array.Set:
		return j.Queued.Count()
	case j.Queued.Has(id.Index):
		return 1
	}
	return 0
}

// Open reports whether an element is not final: it is queued or has attempts. Final elements are forgotten, though a
// runner keeps their attempts until it is told to forget them.
func (j *Job) Open(index int) bool { return j.Queued.Has(index) || j.LastAttempt(index) > 0 }

// LastAttempt returns the number of an element's last attempt, 0 if none is remembered.
func (j *Job) LastAttempt(index int) int {
	if at, tried := slices.BinarySearchFunc(j.Tried, index, byIndex); tried {
		return j.Tried[at].Number
	}
	return 0
}

// Live returns how many elements have a live attempt.
func (j *Job) Live() int {
	return j.Array.Size() - j.Queued.Count() - j.Succeeded - j.Failed - j.Cancelled
}
