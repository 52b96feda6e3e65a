// Package timers keeps the next time at which each of many things is due. It is not safe for concurrent use.
//
// Replaced times stay in the heap until they come and are then skipped, so setting a time costs O(log n) and clearing
// one costs nothing.
package timers

import (
	"container/heap"

	"drover"
)

// Timers holds times by ID. An ID is not 0. The zero value is ready to use.
type Timers struct {
	heap queue
	next map[int64]drover.Time
}

type timer struct {
	at drover.Time
	id int64
}

// Set sets the time of an ID; 0 clears it.
func (t *Timers) Set(id int64, at drover.Time) {
	if t.next == nil {
		t.next = map[int64]drover.Time{}
	}
	if t.next[id] == at {
		return
	}
	if at == 0 {
		delete(t.next, id)
		return
	}
	t.next[id] = at
	heap.Push(&t.heap, timer{at, id})
}

// At returns the time of an ID; 0: none.
func (t *Timers) At(id int64) drover.Time { return t.next[id] }

// Due dequeues an ID whose time has come: the earliest first, and of equal times the lowest ID. It returns 0 if there
// is none.
func (t *Timers) Due(now drover.Time) int64 {
	t.prune()
	if len(t.heap) == 0 || t.heap[0].at > now {
		return 0
	}
	id := heap.Pop(&t.heap).(timer).id
	delete(t.next, id)
	return id
}

// First returns the earliest time; 0: none.
func (t *Timers) First() drover.Time {
	t.prune()
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].at
}

// prune drops replaced times from the top.
func (t *Timers) prune() {
	for len(t.heap) > 0 && t.next[t.heap[0].id] != t.heap[0].at {
		heap.Pop(&t.heap)
	}
}

type queue []timer

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].id < q[j].id
}
func (q *queue) Push(x any) { *q = append(*q, x.(timer)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
