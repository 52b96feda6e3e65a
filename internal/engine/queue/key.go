package queue

import (
	"time"

	"drover"
)

// Key names a class: the jobs that are interchangeable to the engine: one shape, priority, user, timeout and about the same expected time, and labels that
// matter.
type Key struct {
	Shape    drover.Shape  `json:"shape"`
	Priority int           `json:"priority"`
	User     string        `json:"user,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Expected time.Duration `json:"expected,omitempty"` // a step of the scale of expected times
	MaxWait  time.Duration `json:"max_wait,omitempty"`
	Gang     int           `json:"gang,omitempty"`
	Labels   string        `json:"labels,omitempty"` // those that budgets and shares speak of: a NAME=VALUE a line, by name
}

// KeyOf names the class that the job's waiting elements are in, but for those that have more memory. labels are the names of those that matter.
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

// With is the class of those that have so much memory; with 0, as much as the job says.
func (k Key) With(memory drover.Bytes) Key {
	if memory > 0 {
		k.Shape.Need.Memory = memory
	}
	return k
}

// How long a job is likely to run is its submitter's guess. It is told to the solver, which puts together what is likely to end together; no deadline,
// no promise of money and no order of service follows from it, so that a wrong one costs money at most. Jobs are told apart only by the step of a
// scale that is nearest: an hour, which is what a job of which nothing is known counts as, doubled or halved again and again. So however many
// different times a million jobs are expected to take, their classes are but twenty times as many.

const (
	leastStep = time.Hour >> 6  // 56 s: of what is shorter, most is the boot
	mostStep  = time.Hour << 13 // most of a year
)

// Step is the step of the scale that is nearest to an expected time; 0 where that is not known.
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
