package engine

import (
	"container/heap"

	"drover"
)

// timers keeps the next time at which each instance wants to be checked. Entries that were overtaken stay in the heap until their
// time and are then passed over, so setting a time costs O(log n) and clearing one nothing.
type timers struct {
	heap timerHeap
	next map[*instance]drover.Time
}

type timer struct {
	at drover.Time
	in *instance
}

// set replaces the instance's time; 0 clears it.
func (t *timers) set(in *instance, at drover.Time) {
	if t.next == nil {
		t.next = map[*instance]drover.Time{}
	}
	if t.next[in] == at {
		return
	}
	if at == 0 {
		delete(t.next, in)
		return
	}
	t.next[in] = at
	heap.Push(&t.heap, timer{at, in})
}

// pending reports whether a time is set for the instance.
func (t *timers) pending(in *instance) bool { return t.next[in] != 0 }

// due takes out an instance whose time has come, the earliest first; nil if there is none.
func (t *timers) due(now drover.Time) *instance {
	t.prune()
	if len(t.heap) == 0 || t.heap[0].at > now {
		return nil
	}
	in := heap.Pop(&t.heap).(timer).in
	delete(t.next, in)
	return in
}

// first is the earliest time that is set, 0 if none is.
func (t *timers) first() drover.Time {
	t.prune()
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].at
}

// prune drops overtaken entries from the top.
func (t *timers) prune() {
	for len(t.heap) > 0 && t.next[t.heap[0].in] != t.heap[0].at {
		heap.Pop(&t.heap)
	}
}

type timerHeap []timer

func (h timerHeap) Len() int      { return len(h) }
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].in.ID < h[j].in.ID
}
func (h *timerHeap) Push(x any) { *h = append(*h, x.(timer)) }
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
