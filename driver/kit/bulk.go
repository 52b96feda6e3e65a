package kit

import (
	"context"
	"sync"
)

// Bulk merges single requests into calls for many ids: requests that arrive during a call go into the next one. So a
// thousand requests take a few calls, and a single one is sent at once.
type Bulk struct {
	Most  int                                           // the most ids in one call
	Call  func(ctx context.Context, ids []string) error // one call for all of them
	Alone func(err error) bool                          // whether the call failed because of one id, so that a separate call is made for each

	mu      sync.Mutex
	busy    bool    // a call is under way; guarded by mu
	waiting []*lone // guarded by mu
}

// lone is one id, and the result of its call once done is closed.
type lone struct {
	ctx  context.Context
	id   string
	done chan struct{}
	err  error
}

// Do makes the call for an id, together with others.
func (b *Bulk) Do(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := &lone{ctx: ctx, id: id, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, mine)
	first := !b.busy
	b.busy = true
	b.mu.Unlock()
	if first {
		go b.work()
	}
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work makes calls until no request waits.
func (b *Bulk) work() {
	for {
		b.mu.Lock()
		n := min(len(b.waiting), b.Most)
		batch := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		b.busy = n > 0
		b.mu.Unlock()
		if n == 0 {
			return
		}
		b.call(batch)
	}
}

// call obeys the context of the first request, which probably ends first; the others' contexts no longer matter.
func (b *Bulk) call(batch []*lone) {
	ids := Each(batch, func(one *lone) string { return one.id })
	err := b.Call(batch[0].ctx, ids)
	alone := len(batch) > 1 && err != nil && (b.Alone(err) || batch[0].ctx.Err() != nil)
	for _, one := range batch {
		if one.err = err; alone {
			one.err = b.Call(one.ctx, []string{one.id})
		}
		close(one.done)
	}
}
