// Package eventqueue orders events in simulated time. Nothing in it depends on the host's clock, so
// a simulation is the same every time.
package eventqueue

import "drover"

// Queue is what is to happen, the next first; what is to happen at one moment, in the order in which that was decided.
// The zero Queue is empty.
type Queue struct {
	heap []happening // the next on top
	seq  int
}

// happening is something that is to happen.
type happening struct {
	at  drover.Time
	seq int
	do  func()
}

func (h happening) before(o happening) bool { return h.at < o.at || h.at == o.at && h.seq < o.seq }

// Add has something happen at a time.
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

// Next is when the next thing happens; false if nothing ever does.
func (a *Queue) Next() (at drover.Time, more bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

// Take takes out what happens next, of which there must be something.
func (a *Queue) Take() (at drover.Time, do func()) {
	top, last := a.heap[0], len(a.heap)-1
	a.heap[0], a.heap[last] = a.heap[last], happening{}
	a.heap = a.heap[:last]
	a.sink()
	return top.at, top.do
}

// sink brings what is on top of the heap to where it belongs.
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

// Until lets all happen that is to happen up to a time.
func (a *Queue) Until(now drover.Time) {
	for at, more := a.Next(); more && at <= now; at, more = a.Next() {
		_, do := a.Take()
		do()
	}
}
