package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/loop"
)

// inbox delivers requests to the engine in the order in which they were recorded, however many arrive at a time.
type inbox struct {
	nudged chan struct{}
	last   int64 // the last wish that was read; only one goroutine at a time reads
}

// nudge signals that the store has something new.
func (b *inbox) nudge() { signal(b.nudged) }

// signal sends to a channel with room for one signal. A pending one suffices.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// unreadable is how long to wait after the store could not be read.
const unreadable = time.Second

// readInbox reads what is new until ctx ends.
func (c *Controller) readInbox(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.inbox.nudged:
		}
		bodies, err := c.collectInbox(ctx)
		for _, body := range bodies {
			c.post(ctx, body)
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Error("new requests cannot be read", logkey.Error, err)
			time.AfterFunc(unreadable, c.inbox.nudge)
		}
	}
}

// collectInbox reads what is new and returns jobs before wishes, though it reads wishes first, so that a wish for a job
// never precedes the job.
func (c *Controller) collectInbox(ctx context.Context) (bodies []engine.Body, err error) {
	wishes, wishErr := c.cfg.Store.Wishes(ctx, c.inbox.last)
	jobs, jobErr := c.cfg.Store.Pending(ctx)
	if err := errors.Join(wishErr, jobErr); err != nil {
		return nil, err
	}
	if len(jobs) > 0 {
		bodies = append(bodies, engine.Submitted{Jobs: jobs})
	}
	for _, w := range wishes {
		bodies = append(bodies, w.Body)
		c.inbox.last = w.Row
	}
	return bodies, nil
}

// replies delivers committed answers to those who wait for them.
type replies struct {
	mu      sync.Mutex
	asking  int                     // how many are recording a wish or waiting for its answer; guarded by mu
	last    int64                   // every wish up to this one is answered; guarded by mu
	refused map[int64]*drover.Error // of wishes answered while somebody waits; guarded by mu
	raised  chan struct{}           // closed when last changes, and then replaced; guarded by mu
}

// ask keeps refusals from now on, until done.
func (r *replies) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking++
}

func (r *replies) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking--; r.asking == 0 {
		r.refused = nil
	}
}

// deliver delivers an answer. Wishes are answered in order.
func (r *replies) deliver(to engine.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to.Wish <= r.last {
		return
	}
	if to.Err != nil && r.asking > 0 {
		if r.refused == nil {
			r.refused = map[int64]*drover.Error{}
		}
		r.refused[to.Wish] = to.Err
	}
	r.last = to.Wish
	close(r.raised)
	r.raised = make(chan struct{})
}

// wait returns the answer to a wish: nil if it is granted.
func (r *replies) wait(ctx context.Context, wish int64, ended <-chan struct{}) error {
	for {
		r.mu.Lock()
		done, refused, raised := r.last >= wish, r.refused[wish], r.raised
		r.mu.Unlock()
		switch {
		case refused != nil:
			return refused
		case done:
			return nil
		}
		select {
		case <-raised:
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wish records a request and returns its answer: nil once it is granted. It is durable even if the caller stops
// waiting.
func (c *Controller) wish(ctx context.Context, body engine.Body) error {
	c.replies.ask()
	defer c.replies.done()
	row, err := c.cfg.Store.Wish(ctx, body)
	if err != nil {
		return err
	}
	c.inbox.nudge()
	return c.replies.wait(ctx, row, c.ended)
}

// committer commits to the store and reports it, then wakes those who wait for the changes.
type committer struct {
	c *Controller
	l *loop.Loop
}

func (m committer) Commit(ctx context.Context, writes []engine.Write) error {
	c, began := m.c, time.Now()
	rows := c.withHooks(writes)
	err := c.commitWhenRoom(ctx, m.l, func() error { return c.cfg.Store.Commit(ctx, rows) })
	c.committing = time.Since(began)
	c.cfg.Observer.Committed(c.clock.now(), rows, c.committing, err)
	if err != nil {
		return err
	}
	c.logWrites(rows)
	c.keepRunnerLogs(ctx, rows)
	c.show(m.l.Engine)
	for _, w := range writes {
		switch {
		case w.Reply != nil:
			c.replies.deliver(*w.Reply)
		case w.Job != nil:
			c.changes.tell(w.Job.Number)
		case w.Ended != nil:
			c.changes.tell(w.Ended.Number)
		case w.Element != nil:
			c.changes.tell(w.Element.Job)
		case w.Attempt != nil:
			c.changes.tell(w.Attempt.Attempt.ID.Job.Number)
		case w.Gone != nil && w.Gone.Departed != nil:
			in := w.Gone.Departed.Instance
			if cl, err := c.cloud(in.Cloud); err == nil { // otherwise its view is gone, too
				cl.forget(in.ProviderID)
			}
		}
	}
	return nil
}
