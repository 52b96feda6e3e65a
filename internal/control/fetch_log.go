package control

import (
	"context"
	"io"
	"time"

	"drover"
	"drover/internal/engine"
)

// Intervals between requests for a followed stream: short while it grows, longer while it does not.
const (
	fetchFirst = 25 * time.Millisecond
	fetchMost  = 500 * time.Millisecond
	fetchSize  = 1 << 20 // per request, so that one stream occupies a channel only briefly
)

// follower fetches a stream into its spool.
type follower struct {
	c        *Controller
	key      spoolKey
	spool    *spool
	instance int64           // that has the attempt, or its remains
	changed  <-chan struct{} // closed at the job's next change
	done     func()          // releases changed
}

// follow fetches a stream until its attempt has ended and everything is here, it is no longer available, or nobody
// follows it.
func (c *Controller) follow(ctx context.Context, key spoolKey, s *spool) {
	defer c.leave(key, s)
	defer close(s.ended)
	defer s.stop()
	defer func() {
		c.spools.mu.Lock()
		defer c.spools.mu.Unlock()
		c.spools.close(key, s)
	}()
	f := follower{c: c, key: key, spool: s}
	f.changed, f.done = c.changes.of(key.attempt.Job.Number)
	defer func() { f.done() }()
	for wait := fetchFirst; ; wait = min(2*wait, fetchMost) {
		n, over := f.next(ctx)
		if n > 0 {
			wait = fetchFirst
		}
		if over || n < fetchSize && !f.rest(ctx, wait) {
			return
		}
	}
}

// next fetches what is new, at most fetchSize bytes, unless every reader is too far behind. over means that nothing
// more will come.
func (f *follower) next(ctx context.Context) (n int64, over bool) {
	if f.spool.ahead() {
		return 0, false
	}
	at, gone := f.c.where(ctx, f.key.attempt)
	if gone == nil {
		f.instance = at
	}
	n, size, err := f.fetch(ctx)
	switch {
	case f.spool.failed():
		return n, true
	case n == 0 && err == nil && size >= 0 && f.spool.length() >= size:
		f.spool.end(true, nil)
		return n, true
	case err != nil && gone != nil:
		f.spool.end(false, gone)
		return n, true
	}
	return n, false
}

// fetch requests output from an instance that has the attempt, or its remains. size is the stream's if the attempt had
// ended before, otherwise -1.
func (f *follower) fetch(ctx context.Context) (n, size int64, err error) {
	l := f.c.link(f.instance)
	if l == nil {
		return 0, -1, errNotConnected
	}
	size = -1
	if exit, exited := l.exit(f.key.attempt); exited {
		_, size = output(exit, f.key.stream)
	}
	r, err := l.conn.FetchLog(ctx, f.key.attempt, string(f.key.stream), f.spool.length(), fetchSize)
	if err == nil {
		n, err = io.Copy(f.spool, r)
	}
	return n, size, err
}

// rest waits until there may be more to fetch: for a while, until the job changes, or, if every reader is behind, until
// one has read. It returns false if nobody follows any more, or the controller has ended.
func (f *follower) rest(ctx context.Context, wait time.Duration) bool {
	while, read := time.After(wait), (chan struct{})(nil)
	if f.spool.ahead() {
		while, read = nil, f.spool.taken
	}
	select {
	case <-while:
	case <-read:
	case <-f.changed:
		f.done()
		f.changed, f.done = f.c.changes.of(f.key.attempt.Job.Number)
	case <-f.c.ended:
		f.spool.end(false, errEnded)
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// followPatience is how long an instance keeps the output of an ended attempt for slow followers.
const followPatience = 10 * time.Minute

// awaitFollowers returns when nobody needs an ended attempt's output from its instance any more.
func (c *Controller) awaitFollowers(ctx context.Context, id drover.AttemptID) {
	ctx, cancel := context.WithTimeout(ctx, followPatience)
	defer cancel()
	for stream := range streams {
		c.spools.mu.Lock()
		s := c.spools.open[spoolKey{id, stream}]
		c.spools.mu.Unlock()
		if s == nil {
			continue
		}
		select {
		case <-s.ended:
		case <-ctx.Done():
			return
		}
	}
}

// where returns the instance of a live attempt; io.EOF if it is no longer live.
func (c *Controller) where(ctx context.Context, id drover.AttemptID) (instance int64, err error) {
	live := false
	if err := c.Query(ctx, func(e *engine.Engine) { instance, live = e.Where(id) }); err != nil {
		return 0, err
	}
	if !live {
		return 0, io.EOF
	}
	return instance, nil
}
