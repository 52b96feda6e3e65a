package simulate

import (
	"container/heap"

	"drover"
)

// happening is something that is to happen.
type happening struct {
	at  drover.Time
	seq int
	do  func()
}

// agenda is what is to happen, the next first; what is to happen at one moment, in the order in which that was decided.
type agenda struct {
	heap happenings
	seq  int
}

func (a *agenda) add(at drover.Time, do func()) {
	a.seq++
	heap.Push(&a.heap, happening{at, a.seq, do})
}

// next is when the next thing happens; 0 for never.
func (a *agenda) next() drover.Time {
	if len(a.heap) == 0 {
		return 0
	}
	return a.heap[0].at
}

// due lets all happen that is to happen up to now.
func (a *agenda) due(now drover.Time) {
	for len(a.heap) > 0 && a.heap[0].at <= now {
		heap.Pop(&a.heap).(happening).do()
	}
}

type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = happening{}
	*h = (*h)[:last]
	return x
}
