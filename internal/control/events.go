package control

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"drover"
	"drover/internal/engine"
)

// remembered is how many events are kept for late or slow readers.
const remembered = 10_000

// history is the last events. Readers read at their own speed: the oldest events are overwritten, and nothing waits for
// a reader.
type history struct {
	epoch int64

	mu    sync.Mutex
	ring  []drover.Event // event number n is at n % remembered; guarded by mu
	next  int64          // the number of the next event; guarded by mu
	added chan struct{}  // closed by a new event, and then replaced; guarded by mu
}

func newHistory(epoch int64) history { return history{epoch: epoch, added: make(chan struct{})} }

// add records a note as an event.
func (h *history) add(at drover.Time, n engine.Note) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ev := drover.Event{
		ID: h.id(h.next), Time: at, Level: string(n.Level), Text: n.Text, Job: n.Job, Attempt: n.Attempt,
		Instance: n.Instance, Cloud: n.Cloud,
	}
	if n.Reason != nil && n.Reason.Code != "" {
		ev.Reason = n.Reason
	}
	if len(h.ring) < remembered {
		h.ring = append(h.ring, ev)
	} else {
		h.ring[h.next%remembered] = ev
	}
	h.next++
	close(h.added)
	h.added = make(chan struct{})
}

func (h *history) id(n int64) string { return fmt.Sprintf("%d-%d", h.epoch, n) }

// read returns a page of events from a number on, the number after the last, how many events between from and the first
// were dropped, and a channel that is closed when there are more.
func (h *history) read(from int64) (page []drover.Event, next, missed int64, added <-chan struct{}) {
	const most = 256
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.next - int64(len(h.ring))
	if from < first {
		missed, from = first-from, first
	}
	for ; from < h.next && len(page) < most; from++ {
		page = append(page, h.ring[from%remembered])
	}
	return page, from, missed, h.added
}

// after returns the number of the event after the one with this ID. If the ID is not one of this controller's, as after
// a restart, that is the first event.
func (h *history) after(id string) (n int64, own bool) {
	var epoch int64
	if _, err := fmt.Sscanf(id, "%d-%d", &epoch, &n); err != nil || epoch != h.epoch || n < -1 {
		return 0, id == ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(n+1, h.next), true
}

// last returns the number from which on there are n wanted events, or the oldest one kept.
func (h *history) last(n int, wanted func(drover.Event) bool) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.next
	for first := h.next - int64(len(h.ring)); at > first && n > 0; {
		at--
		if wanted(h.ring[at%remembered]) {
			n--
		}
	}
	return at
}

// Events yields events: see [drover.Watch].
func (c *Controller) Events(ctx context.Context, f drover.EventFilter) iter.Seq2[drover.Event, error] {
	return func(yield func(drover.Event, error) bool) {
		from, own := c.history.after(f.After)
		if !own && f.Last == 0 {
			gap := c.gap(-1, "events from before the controller started are no longer available")
			if gap.ID = c.history.id(-1); !yield(gap, nil) {
				return
			}
		}
		if f.Last > 0 {
			from = max(from, c.history.last(f.Last, func(ev drover.Event) bool { return wanted(f, ev) }))
		}
		for {
			page, next, missed, added := c.history.read(from)
			if missed > 0 && (from > 0 || f.After != "" && own) && f.Last == 0 && !yield(c.gap(missed, fmt.Sprintf("events that are no longer available: %d", missed)), nil) {
				return
			}
			for _, ev := range page {
				if wanted(f, ev) && !yield(ev, nil) {
					return
				}
			}
			if from = next; len(page) > 0 {
				continue
			}
			if f.Recent {
				return
			}
			select {
			case <-added:
			case <-ctx.Done():
				return
			case <-c.ended:
				yield(drover.Event{}, errEnded)
				return
			}
		}
	}
}

// gap returns an event that stands for dropped events.
func (c *Controller) gap(missed int64, text string) drover.Event {
	return drover.Event{Time: c.clock.now(), Level: string(engine.Warn), Missed: int(missed), Text: text}
}

// wanted reports whether the filter accepts the event.
func wanted(f drover.EventFilter, ev drover.Event) bool {
	if levels[engine.Level(ev.Level)] < levels[engine.Level(f.Level)] {
		return false
	}
	if f.Instance != "" && ev.Instance != f.Instance {
		return false
	}
	if f.Job.Number == 0 {
		return true
	}
	about := ev.Job
	if about == nil && ev.Attempt != nil {
		about = &ev.Attempt.Job
	}
	return about != nil && about.Number == f.Job.Number && (f.Job.Index < 0 || about.Index == f.Job.Index || about.Index < 0)
}
