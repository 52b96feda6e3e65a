package queue

import (
	"cmp"
	"slices"
	"time"

	"drover"
	"drover/internal/engine/verdict"
)

// Job is a submitted job that is not final, an array counting as one. Its command, environment and inputs stay in the store.
type Job struct {
	Number     int64             `json:"number"`
	Name       string            `json:"name"`
	User       string            `json:"user,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"` // never changed
	Shape      drover.Shape      `json:"shape"`
	Array      drover.Array      `json:"array"`
	Gang       int               `json:"gang,omitempty"`        // so many elements in a row begin together; 0: each by itself
	MaxRunning int               `json:"max_running,omitempty"` // elements that run at once; 0: no limit
	Priority   int               `json:"priority"`
	Attempts   int               `json:"attempts"` // starts that may be lost
	Retry      drover.Retry      `json:"retry"`
	Timeout    time.Duration     `json:"timeout,omitempty"`
	Expected   time.Duration     `json:"expected,omitempty"`  // how long one attempt is likely to run; 0: not known
	MaxWait    time.Duration     `json:"max_wait,omitempty"`  // how much longer than for a boot it may wait for room that is paid for anyway
	After      []int64           `json:"after,omitempty"`     // jobs that must succeed first; each goes as it does
	AfterAny   []int64           `json:"after_any,omitempty"` // jobs that must be final first; likewise

	Queued            Ranges           `json:"queued"`          // elements that wait for an attempt
	Grown             []Grown          `json:"grown,omitempty"` // those of them that have more memory than the job says, by how much they have
	Postponed         Ranges           `json:"-"`               // those of them that may not start yet, which follows from the rest
	Tried             []Element        `json:"tried,omitempty"` // elements that have had one and are not final, by index
	Succeeded         int              `json:"succeeded,omitempty"`
	Failed            int              `json:"failed,omitempty"`
	Cancelled         int              `json:"cancelled,omitempty"`
	Cancel            *verdict.Verdict `json:"cancel,omitempty"`  // it is being cancelled
	Since             drover.Time      `json:"since"`             // it waits since
	Again             int64            `json:"again,omitempty"`   // its place among the jobs that were put back in the queue after they were final; 0: it was not
	Blocked           time.Duration    `json:"blocked,omitempty"` // how long it has waited in all for offerings that were blocked
	ConsecutiveLosses int              `json:"losers,omitempty"`  // how many instances in a row have lost it while they lived
}

// Grown are elements of a job that wait and have as much memory, since they ran out of less.
type Grown struct {
	Memory  drover.Bytes  `json:"memory"`
	Waiting Ranges        `json:"waiting"`
	Blocked time.Duration `json:"blocked,omitempty"` // as the job's, of these
}

// Element is what is remembered of a job, or one element of an array, between its attempts.
type Element struct {
	Index   int `json:"index"`
	Number  int `json:"number"`            // of its last attempt
	Lost    int `json:"lost,omitempty"`    // attempts lost to their instances
	Retried int `json:"retried,omitempty"` // retries by exit code

	Until drover.Time `json:"until,omitempty"` // it is not tried again before

	Interrupted drover.Time  `json:"interrupted,omitempty"` // when its last attempt was, if it was
	Memory      drover.Bytes `json:"memory,omitempty"`      // what it has, since it ran out of less; 0: what its job says
}

// NewJob is a job as the engine first meets it: all of it waits. What it is to run after is the caller's to fill in.
func NewJob(number int64, user string, spec drover.JobSpec) Job {
	return Job{
		Number: number, Name: spec.Name, User: user, Labels: spec.Labels,
		Shape: drover.Shape{Need: spec.Resources, Placement: spec.Placement, Spot: spec.Spot},
		Array: spec.Array, Gang: spec.Gang, MaxRunning: spec.MaxRunning, Queued: RangesOf(spec.Array),
		Priority: spec.Priority, Attempts: spec.Attempts, Retry: spec.Retry, Timeout: spec.Timeout, Expected: spec.Expected, MaxWait: spec.MaxWait,
	}
}

// Clone is the job as it is. It shares no memory with it that may change.
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

// MayStart reports whether the job's queued elements wait for nothing but a place.
func (j *Job) MayStart() bool { return !j.Follows() && j.Priority > 0 && j.Cancel == nil }

// Follows reports whether other jobs have to end before the job's elements may start.
func (j *Job) Follows() bool { return len(j.After) > 0 || len(j.AfterAny) > 0 }

func byIndex(el Element, index int) int { return cmp.Compare(el.Index, index) }

// Element finds what is remembered of an element, making it on its first attempt.
func (j *Job) Element(index int) *Element {
	at, ok := slices.BinarySearchFunc(j.Tried, index, byIndex)
	if !ok {
		j.Tried = slices.Insert(j.Tried, at, Element{Index: index})
	}
	return &j.Tried[at]
}

// Forget drops what is remembered of an element that is final.
func (j *Job) Forget(index int) {
	at, ok := slices.BinarySearchFunc(j.Tried, index, byIndex)
	if ok {
		j.Tried = slices.Delete(j.Tried, at, at+1)
	}
}

// Held reports whether something of the job waits that may not start at all: it is to run after others, or its priority is 0.
func (j *Job) Held() bool { return len(j.Queued) > 0 && (j.Follows() || j.Priority == 0) }

// Waits is how many of what is named of the job wait.
func (j *Job) Waits(id drover.JobID) int {
	switch {
	case id.Index < 0 && j.Array.Set:
		return j.Queued.Count()
	case j.Queued.Has(id.Index):
		return 1
	}
	return 0
}

// Open reports whether an element is not final: it waits, or what was tried of it is remembered. Nothing is of those that are final, whose attempts a
// runner has until it hears that it may forget them.
func (j *Job) Open(index int) bool { return j.Queued.Has(index) || j.LastAttempt(index) > 0 }

// LastAttempt is the number of an element's last attempt, 0 if it had none that is remembered.
func (j *Job) LastAttempt(index int) int {
	if at, tried := slices.BinarySearchFunc(j.Tried, index, byIndex); tried {
		return j.Tried[at].Number
	}
	return 0
}

// Live is how many elements have a live attempt.
func (j *Job) Live() int {
	return j.Array.Size() - j.Queued.Count() - j.Succeeded - j.Failed - j.Cancelled
}
