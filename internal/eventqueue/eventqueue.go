// Package eventqueue orders events in simulated time. It does not use the host's clock, so a simulation is the same
// every time.
package eventqueue

import "drover"

// Queue holds future events, the next first; events at the same time stay in the order in which they were added. The
// zero Queue is empty.
type Queue struct {
	heap []happening // with the next event on top
	seq  int
}

// happening is a future event.
type happening struct {
	at  drover.Time
	seq int
	do  func()
}

func (h happening) before(o happening) bool { return h.at < o.at || h.at == o.at && h.seq < o.seq }

// Add schedules an event.
func (a *Queue) Add(at drover.Time, do func()) {
	a.seq++
	a.heap = append(a.heap, happening{at, a.seq, do})
	q := a.heap
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q[i].before(q[parent]) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

// Next returns the time of the next event; false if there is none.
func (a *Queue) Next() (at drover.Time, more bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

// Take removes and returns the next event. The queue must not be empty.
func (a *Queue) Take() (at drover.Time, do func()) {
	top, last := a.heap[0], len(a.heap)-1
	a.heap[0], a.heap[last] = a.heap[last], happening{}
	a.heap = a.heap[:last]
	a.sink()
	return top.at, top.do
}

// sink moves the top of the heap to its place.
func (a *Queue) sink() {
	q := a.heap
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child].before(q[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

// Until executes all events up to a time, including those that they add.
func (a *Queue) Until(now drover.Time) {
	for at, more := a.Next(); more && at <= now; at, more = a.Next() {
		_, do := a.Take()
		do()
	}
}
