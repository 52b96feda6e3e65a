package engine

import "time"

// How long a job is likely to run is its submitter's guess. It is told to the solver, which puts together what is likely to end together; no deadline,
// no promise of money and no order of service follows from it, so that a wrong one costs money at most. Jobs are told apart only by the step of a
// scale that is nearest: an hour, which is what a job of which nothing is known counts as, doubled or halved again and again. So however many
// different times a million jobs are expected to take, their groups are but twenty times as many.

const (
	leastStep = time.Hour >> 6  // 56 s: of what is shorter, most is the boot
	mostStep  = time.Hour << 13 // most of a year
)

// step is the step of the scale that is nearest to an expected time; 0 where that is not known.
func step(expected time.Duration) time.Duration {
	if expected <= 0 {
		return 0
	}
	at := leastStep
	for at < mostStep && expected > at+at/2 {
		at *= 2
	}
	return at
}
