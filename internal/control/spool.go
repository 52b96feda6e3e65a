package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"drover"
)

// spoolSize is how much of a followed stream is on this disk at a time. No more is fetched until the fastest reader is
// near its end; a reader that falls behind by more learns how much it missed.
const spoolSize = 16 << 20

// spools is the output streams that are being followed, each fetched once from its instance, however many people follow
// it.
type spools struct {
	mu   sync.Mutex
	open map[spoolKey]*spool // guarded by mu
}

type spoolKey struct {
	attempt drover.AttemptID
	stream  drover.Stream
}

// spool is the last spoolSize bytes of a stream, in an unlinked file.
type spool struct {
	file *os.File
	stop context.CancelFunc
	uses int // guarded by spools.mu

	taken chan struct{} // signals that somebody has read
	ended chan struct{} // closed when nothing more is fetched

	mu    sync.Mutex
	read  map[*logReader]int64 // how far each has read; guarded by mu
	size  int64                // of everything received; guarded by mu
	whole bool                 // the stream has ended and was received completely; guarded by mu
	err   error                // nothing more will come; guarded by mu
	grown chan struct{}        // closed by a change, and then replaced; guarded by mu
}

func newSpool(file *os.File, stop context.CancelFunc) *spool {
	return &spool{file: file, stop: stop, taken: make(chan struct{}, 1), ended: make(chan struct{}), read: map[*logReader]int64{}, grown: make(chan struct{})}
}

// use returns the spool of a stream, created if necessary. The caller must release it with leave.
func (c *Controller) use(key spoolKey) (*spool, error) {
	c.spools.mu.Lock()
	defer c.spools.mu.Unlock()
	s := c.spools.open[key]
	if s == nil {
		file, err := os.CreateTemp(c.cfg.Spool, "follow-")
		if err != nil {
			return nil, fmt.Errorf("creating a temporary file for output: %w", err)
		}
		if err := os.Remove(file.Name()); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		ctx, stop := context.WithCancel(context.Background())
		s = newSpool(file, stop)
		c.spools.open[key] = s
		s.uses++ // for follow
		go c.follow(ctx, key, s)
	}
	s.uses++
	return s, nil
}

// leave releases a spool. When only its follower still uses it, that ends; the last user closes the file.
func (c *Controller) leave(key spoolKey, s *spool) {
	c.spools.mu.Lock()
	defer c.spools.mu.Unlock()
	switch s.uses--; s.uses {
	case 1:
		s.stop()
		c.spools.close(key, s)
	case 0:
		s.file.Close()
	}
}

// close makes later readers read what was stored. mu must be held.
func (k *spools) close(key spoolKey, s *spool) {
	if k.open[key] == s {
		delete(k.open, key)
	}
}

// failed reports whether the stream could not be written.
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

// Write appends, overwriting the oldest bytes.
func (s *spool) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(p) {
		at := s.size % spoolSize
		m, err := s.file.WriteAt(p[n:min(len(p), n+int(spoolSize-at))], at)
		n += m
		s.size += int64(m)
		if err != nil {
			s.err = drover.Errorf(drover.KindInternal, "storing output that is being followed: %v", err)
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

// ahead reports whether the fastest reader would miss something if more arrived.
func (s *spool) ahead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	fastest := int64(0)
	for _, offset := range s.read {
		fastest = max(fastest, offset)
	}
	return len(s.read) > 0 && s.size-fastest > spoolSize-fetchSize
}

// reads records how far somebody has read, or that they have stopped.
func (s *spool) reads(r *logReader, offset int64, more bool) {
	s.mu.Lock()
	s.read[r] = offset
	if !more {
		delete(s.read, r)
	}
	s.mu.Unlock()
	signal(s.taken)
}

// readAt reads from an offset on. Without bytes or error it returns a channel that is closed once there is more.
// skipped is how many bytes from the offset on are lost. whole means that the offset is the end of the stream.
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
