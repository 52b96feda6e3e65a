package queue

import (
	"time"

	"drover"
)

// Key identifies a class of jobs that are interchangeable to the engine: with the same shape, priority, user, timeout,
// relevant labels and about the same expected time.
type Key struct {
	Shape    drover.Shape  `json:"shape"`
	Priority int           `json:"priority"`
	User     string        `json:"user,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Expected time.Duration `json:"expected,omitempty"` // a step of the scale of expected times
	MaxWait  time.Duration `json:"max_wait,omitempty"`
	Gang     int           `json:"gang,omitempty"`
	Labels   string        `json:"labels,omitempty"` // those that budgets and shares refer to: sorted lines NAME=VALUE
}

// KeyOf returns the class of the job's waiting elements, except those with more memory. labels names the relevant
// labels.
func KeyOf(j *Job, labels []string) Key {
	key := Key{Shape: j.Shape, Priority: j.Priority, User: j.User, Timeout: j.Timeout, Expected: Step(j.Expected), MaxWait: j.MaxWait, Gang: j.Gang}
	for _, name := range labels {
		if value, has := j.Labels[name]; has {
			if key.Labels != "" {
				key.Labels += "\n"
			}
			key.Labels += name + "=" + value
		}
	}
	return key
}

// With returns the class of elements with this much memory; 0: the job's own.
func (k Key) With(memory drover.Bytes) Key {
	if memory > 0 {
		k.Shape.Need.Memory = memory
	}
	return k
}

// A job's expected time is its submitter's guess. The solver uses it to put together jobs that are likely to end
// together; no deadline, commitment or order of service depends on it, so a wrong one costs money at most. Jobs are
// distinguished only by the nearest step of a scale: an hour, the default for unknown jobs, doubled or halved
// repeatedly. So even a million jobs with different expected times form at most twenty times as many classes.

const (
	leastStep = time.Hour >> 6  // 56 s: shorter jobs are dominated by the boot
	mostStep  = time.Hour << 13 // most of a year
)

// Step returns the step nearest to an expected time; 0 if unknown.
func Step(expected time.Duration) time.Duration {
	if expected <= 0 {
		return 0
	}
	at := leastStep
	for at < mostStep && expected > at+at/2 {
		at *= 2
	}
	return at
}
