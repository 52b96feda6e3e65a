package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"drover"
	"drover/internal/engine"
)

// spoolSize is how much of a stream that is followed lies on this disk at once. No more is fetched until the fastest reader is near its end; who
// reads so much more slowly that this overtakes them is told how much was left out.
const spoolSize = 16 << 20

// spools are the output streams that are being followed, each fetched once from its instance however many people follow it.
type spools struct {
	mu   sync.Mutex
	open map[spoolKey]*spool // guarded by mu
}

type spoolKey struct {
	attempt drover.AttemptID
	stream  drover.Stream
}

// spool is the last spoolSize bytes of a stream, in a file that has no name any more.
type spool struct {
	file *os.File
	stop context.CancelFunc
	uses int // guarded by spools.mu

	taken chan struct{} // says that somebody has read
	ended chan struct{} // closed when nothing more is fetched

	mu    sync.Mutex
	read  map[*logReader]int64 // up to where each has read; guarded by mu
	size  int64                // of all that has come; guarded by mu
	whole bool                 // the stream has ended, and all of it has come; guarded by mu
	err   error                // nothing more will come; guarded by mu
	grown chan struct{}        // closed when any of these changes, and then replaced; guarded by mu
}

func newSpool(file *os.File, stop context.CancelFunc) *spool {
	return &spool{file: file, stop: stop, taken: make(chan struct{}, 1), ended: make(chan struct{}), read: map[*logReader]int64{}, grown: make(chan struct{})}
}

// use returns the spool of a stream, begun if it is not there. It must be given back by leave.
func (c *Controller) use(key spoolKey) (*spool, error) {
	c.spools.mu.Lock()
	defer c.spools.mu.Unlock()
	s := c.spools.open[key]
	if s == nil {
		file, err := os.CreateTemp(c.cfg.Spool, "follow-")
		if err != nil {
			return nil, fmt.Errorf("making room for output: %w", err)
		}
		if err := os.Remove(file.Name()); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		ctx, stop := context.WithCancel(context.Background())
		s = newSpool(file, stop)
		c.spools.open[key] = s
		s.uses++ // that of fill
		go c.fill(ctx, key, s)
	}
	s.uses++
	return s, nil
}

// leave gives a spool back. When nobody but fill uses it, fill ends; the last one closes the file.
func (c *Controller) leave(key spoolKey, s *spool) {
	c.spools.mu.Lock()
	defer c.spools.mu.Unlock()
	switch s.uses--; s.uses {
	case 1:
		s.stop()
		if c.spools.open[key] == s {
			delete(c.spools.open, key)
		}
	case 0:
		s.file.Close()
	}
}

// A stream that is followed is asked for as often as this: soon again while it grows, less often while it does not.
const (
	fetchFirst = 25 * time.Millisecond
	fetchMost  = 500 * time.Millisecond
	fetchSize  = 1 << 20 // at once, so that one stream holds a channel only for a moment
)

// fill fetches a stream until its attempt has ended and all of it has come, it is not to be had any more, or nobody follows it.
func (c *Controller) fill(ctx context.Context, key spoolKey, s *spool) {
	defer c.leave(key, s)
	defer close(s.ended)
	defer s.stop()
	defer c.closeSpool(key, s)
	changed, done := c.changes.of(key.attempt.Job.Number)
	defer func() { done() }()
	var instance int64
	for wait := fetchFirst; ; wait = min(2*wait, fetchMost) {
		if s.ahead() {
			select {
			case <-s.taken:
			case <-c.ended:
				s.end(false, errEnded)
				return
			case <-ctx.Done():
				return
			}
			wait = fetchFirst
			continue
		}
		exit, exited := c.exit(key.attempt)
		at, gone := c.where(ctx, key.attempt)
		if gone == nil {
			instance = at
		}
		n, err := c.fetch(ctx, instance, key, s)
		switch {
		case s.failed():
			return
		case n > 0:
			wait = fetchFirst
		case err == nil && exited && s.length() >= streamLength(exit, key.stream):
			s.end(true, nil)
			return
		case err != nil && gone != nil:
			s.end(false, gone)
			return
		}
		if n == fetchSize {
			continue
		}
		select {
		case <-changed:
			done()
			changed, done = c.changes.of(key.attempt.Job.Number)
			wait = fetchFirst
		case <-time.After(wait):
		case <-c.ended:
			s.end(false, errEnded)
			return
		case <-ctx.Done():
			return
		}
	}
}

// closeSpool has those who come later read what was stored.
func (c *Controller) closeSpool(key spoolKey, s *spool) {
	c.spools.mu.Lock()
	defer c.spools.mu.Unlock()
	if c.spools.open[key] == s {
		delete(c.spools.open, key)
	}
}

// followPatience is how long an instance keeps the output of an ended attempt for those who follow it, who may read more slowly than it came.
const followPatience = 10 * time.Minute

// awaitFollowers returns when nobody needs an ended attempt's output from its instance any more.
func (c *Controller) awaitFollowers(ctx context.Context, id drover.AttemptID) {
	ctx, cancel := context.WithTimeout(ctx, followPatience)
	defer cancel()
	for _, stream := range []drover.Stream{drover.Stdout, drover.Stderr} {
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

// exit is what is known of an attempt's end before it is forgotten.
func (c *Controller) exit(id drover.AttemptID) (drover.Exit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tails[id]
	return t.exit, ok
}

func streamLength(x drover.Exit, stream drover.Stream) int64 {
	if stream == drover.Stderr {
		return x.StderrLen
	}
	return x.StdoutLen
}

// where is the instance of a live attempt; io.EOF for one that is no longer live.
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

// fetch brings what has come since the last time, at most fetchSize bytes, from an instance that has the attempt or its remains.
func (c *Controller) fetch(ctx context.Context, instance int64, key spoolKey, s *spool) (int64, error) {
	l := c.link(instance)
	if l == nil {
		return 0, errNotConnected
	}
	r, err := l.conn.FetchLog(ctx, key.attempt, string(key.stream), s.length(), fetchSize)
	if err != nil {
		return 0, err
	}
	return io.Copy(s, r)
}

// linkOf is the connection to the instance that has a live attempt.
func (c *Controller) linkOf(ctx context.Context, id drover.AttemptID) (*link, error) {
	instance, err := c.where(ctx, id)
	if err != nil {
		return nil, err
	}
	if l := c.link(instance); l != nil {
		return l, nil
	}
	return nil, errNotConnected
}

// failed reports whether what came could not be written down.
func (s *spool) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

func (s *spool) length() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Write adds what has come, over what came first.
func (s *spool) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(p) {
		at := s.size % spoolSize
		m, err := s.file.WriteAt(p[n:min(len(p), n+int(spoolSize-at))], at)
		n += m
		s.size += int64(m)
		if err != nil {
			s.err = drover.Errorf(drover.KindInternal, "keeping output that is followed: %v", err)
			s.tellLocked()
			return n, err
		}
	}
	s.tellLocked()
	return n, nil
}

func (s *spool) end(whole bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole, s.err = whole, err
	s.tellLocked()
}

func (s *spool) tellLocked() {
	close(s.grown)
	s.grown = make(chan struct{})
}

// ahead reports whether so much has come that even the fastest reader would miss some of it if more came.
func (s *spool) ahead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	fastest := int64(0)
	for _, offset := range s.read {
		fastest = max(fastest, offset)
	}
	return len(s.read) > 0 && s.size-fastest > spoolSize-fetchSize
}

// reads notes up to where somebody has read, or that they read no more.
func (s *spool) reads(r *logReader, offset int64, more bool) {
	s.mu.Lock()
	s.read[r] = offset
	if !more {
		delete(s.read, r)
	}
	s.mu.Unlock()
	select {
	case s.taken <- struct{}{}:
	default:
	}
}

// readAt reads from an offset on. Without an error and bytes it says what is closed once there is more. Skipped is how many bytes from the
// offset on are no longer there. Whole says that the offset is the end of the stream.
func (s *spool) readAt(p []byte, offset int64) (n int, skipped int64, whole bool, grown <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.size - spoolSize; offset < first {
		return 0, first - offset, false, nil, nil
	}
	if offset >= s.size {
		return 0, 0, s.whole, s.grown, s.err
	}
	at := offset % spoolSize
	most := min(int64(len(p)), s.size-offset, spoolSize-at)
	n, err = s.file.ReadAt(p[:most], at)
	return n, 0, false, nil, err
}
