// Package timers keeps the next time at which each of many things is due, and says when to try a call again. It is not safe
// for concurrent use.
//
// Setting, clearing and dequeuing a time each cost O(log n).
package timers

import (
	"container/heap"

	"drover"
)

// Timers holds times by ID. An ID is not 0. The zero value is ready to use.
type Timers struct {
	heap queue
	byID map[int64]*timer
}

type timer struct {
	at    drover.Time
	id    int64
	place int // in the heap
}

// Set sets the time of an ID; 0 clears it.
func (t *Timers) Set(id int64, at drover.Time) {
	switch x := t.byID[id]; {
	case x == nil && at == 0:
	case x == nil:
		if t.byID == nil {
			t.byID = map[int64]*timer{}
		}
		x = &timer{at: at, id: id}
		t.byID[id] = x
		heap.Push(&t.heap, x)
	case at == 0:
		heap.Remove(&t.heap, x.place)
		delete(t.byID, id)
	case at != x.at:
		x.at = at
		heap.Fix(&t.heap, x.place)
	}
}

// At returns the time of an ID; 0: none.
func (t *Timers) At(id int64) drover.Time {
	if x := t.byID[id]; x != nil {
		return x.at
	}
	return 0
}

// Due dequeues an ID whose time has come: the earliest first, and of equal times the lowest ID. It returns 0 if there
// is none.
func (t *Timers) Due(now drover.Time) int64 {
	if len(t.heap) == 0 || t.heap[0].at > now {
		return 0
	}
	id := heap.Pop(&t.heap).(*timer).id
	delete(t.byID, id)
	return id
}

// First returns the earliest time; 0: none.
func (t *Timers) First() drover.Time {
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].at
}

type queue []*timer

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].id < q[j].id
}
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *queue) Push(x any) {
	x.(*timer).place = len(*q)
	*q = append(*q, x.(*timer))
}
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return x
}
