package control

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"drover"
	"drover/internal/store"
)

// Logs reads an output stream of a job: see [drover.Queue].
func (c *Controller) Logs(ctx context.Context, r drover.LogRequest) (io.ReadCloser, error) {
	job, err := c.stored(ctx, r.Job)
	switch {
	case err != nil:
		return nil, err
	case job.Array != nil:
		return nil, drover.Errorf(drover.KindInvalid, "job %v is an array: each element has its own output", r.Job).WithHint("choose an element, such as %v.%d", r.Job, job.Array.First)
	case streams[r.Stream] == "":
		return nil, drover.Errorf(drover.KindInvalid, "%.40q is not an output stream", string(r.Stream)).WithHint("the streams are stdout and stderr")
	case r.Follow && !job.State.Final() && c.suspended() != nil: // its spool would fail, again and again
		return nil, fmt.Errorf("following the output of job %v: %w", r.Job, store.ErrFull)
	}
	spec, err := c.spec(ctx, r.Job.Number)
	if err != nil {
		return nil, err
	}
	if r.Attempt > 0 {
		log, err := c.attemptLog(job, r, spec)
		if log != nil || err != nil {
			return log, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	return &logReader{c: c, ctx: ctx, cancel: cancel, request: r, spec: spec, from: r.Offset}, nil
}

// attemptLog returns the stored log of an attempt; nil for a live one.
func (c *Controller) attemptLog(job drover.Job, r drover.LogRequest, spec jobSpec) (io.ReadCloser, error) {
	at := slices.IndexFunc(job.Attempts, func(a drover.Attempt) bool { return a.Number == r.Attempt })
	switch {
	case r.Follow:
		return nil, drover.Errorf(drover.KindInvalid, "follow and attempt cannot be used together")
	case at < 0:
		return nil, drover.Errorf(drover.KindNotFound, "job %v has no attempt %d", r.Job, r.Attempt).WithHint("drover jobs %v lists its attempts", r.Job)
	case job.Attempts[at].State.Live():
		return nil, nil
	}
	log, err := c.cfg.Results.OpenAttemptLog(c.folder(spec), r.Job.Index, r.Attempt, streams[r.Stream])
	switch state := job.Attempts[at].State; {
	case err == nil:
		return seek(log, r.Offset)
	case drover.KindOf(err) != drover.KindNotFound:
		return nil, err
	case (state == drover.AttemptLost || state == drover.AttemptInterrupted) && !c.cfg.Results.HasLog(c.folder(spec), r.Job.Index, r.Attempt):
		return nil, drover.Errorf(drover.KindNotFound, "no output of attempt %d of job %v is stored; the attempt was %s", r.Attempt, r.Job, state)
	}
	return io.NopCloser(strings.NewReader("")), nil // it wrote nothing, or that was deleted
}

// logReader reads a job's output stream, attempt after attempt: a live one from its spool, and the rest from storage.
type logReader struct {
	c       *Controller
	ctx     context.Context // until Close, which thereby ends a Read
	cancel  context.CancelFunc
	request drover.LogRequest
	spec    jobSpec

	mu      sync.Mutex // held by Read; guards the following fields
	attempt drover.AttemptID
	from    int64 // offset in the first attempt's stream where reading begins
	offset  int64 // of the attempt's stream read so far
	whole   bool  // all of the attempt's stream was read
	note    []byte
	spool   *spool // of attempt, while it is live
	stored  io.ReadCloser
	final   bool // stored is the last thing to read
}

// Close ends reading.
func (r *logReader) Close() error {
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave()
	if r.stored == nil {
		return nil
	}
	stored := r.stored
	r.stored = nil
	return stored.Close()
}

func (r *logReader) leave() {
	if r.spool != nil {
		r.spool.reads(r, 0, false)
		r.c.leave(r.key(), r.spool)
		r.spool = nil
	}
}

func (r *logReader) key() spoolKey { return spoolKey{r.attempt, r.request.Stream} }

// Read waits for output as long as there may be more.
func (r *logReader) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n == 0 && err == nil {
		switch {
		case r.ctx.Err() != nil:
			err = r.ctx.Err()
		case len(r.note) > 0:
			n = copy(p, r.note)
			r.note = r.note[n:]
		case r.stored != nil:
			n, err = r.readStored(p)
		case r.spool != nil:
			n, err = r.readSpool(p)
		default:
			err = r.next()
		}
	}
	return n, err
}

func (r *logReader) readStored(p []byte) (int, error) {
	n, err := r.stored.Read(p)
	if err == io.EOF && !r.final {
		r.stored.Close()
		r.stored, err = nil, nil
	}
	return n, err
}

// readSpool reads what has arrived of a live attempt; a follower waits for more.
func (r *logReader) readSpool(p []byte) (int, error) {
	r.spool.reads(r, r.offset, true)
	n, skipped, whole, grown, err := r.spool.readAt(p, r.offset)
	switch {
	case skipped > 0:
		r.offset += skipped
		r.note = fmt.Appendf(nil, "\n[drover: %d bytes left out]\n", skipped)
	case n > 0:
		r.offset += int64(n)
	case whole:
		r.whole = true
		r.leave()
	case err == io.EOF: // the attempt has ended; what is missing was stored if it was available
		r.leave()
	case err != nil:
		return 0, err
	default:
		select {
		case <-grown:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	return n, nil
}

// next finds what to read next: the live attempt's spool or, once the job is final or if the reader does not follow,
// what was stored.
func (r *logReader) next() error {
	changed, done := r.c.changes.of(r.request.Job.Number)
	defer done()
	job, err := r.c.stored(r.ctx, r.request.Job)
	if err != nil {
		return err
	}
	if r.request.Attempt != 0 {
		if log, err := r.c.attemptLog(job, r.request, r.spec); log != nil || err != nil { // it has ended meanwhile
			r.stored, r.final = log, true
			return err
		}
	}
	if n := len(job.Attempts); n > 0 {
		last := job.Attempts[n-1]
		if id := (drover.AttemptID{Job: r.request.Job, Number: last.Number}); id != r.attempt {
			r.attempt, r.offset, r.from, r.whole = id, r.from, 0, false
		}
		if last.State.Live() && !r.whole {
			return r.live()
		}
	}
	if job.State.Final() || !r.request.Follow {
		return r.openStored()
	}
	select {
	case <-changed:
		return nil
	case <-r.c.ended:
		return errEnded
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// live starts reading the live attempt's stream: as it grows, or what exists now.
func (r *logReader) live() (err error) {
	select {
	case <-r.c.ended:
		return errEnded
	default:
	}
	if !r.request.Follow {
		r.stored, r.final = &pieces{c: r.c, ctx: r.ctx, key: r.key(), offset: r.offset}, true
		return nil
	}
	r.spool, err = r.c.use(r.key())
	return err
}

// openStored reads the rest of the last attempt's stream from what was stored. If nothing was, a reader that does
// not follow gets an earlier attempt's.
func (r *logReader) openStored() error {
	if r.whole || r.attempt.Number == 0 {
		return io.EOF
	}
	writer, err := r.c.cfg.Results.LogsOf(r.c.folder(r.spec), r.request.Job.Index)
	if err != nil {
		return err
	}
	if writer != r.attempt.Number && r.request.Follow {
		return io.EOF
	}
	f, size, err := r.c.cfg.Results.OpenLog(r.c.folder(r.spec), r.request.Job.Index, streams[r.request.Stream])
	if drover.KindOf(err) == drover.KindNotFound {
		return io.EOF
	}
	if err != nil {
		return err
	}
	from := min(r.offset, size)
	if kept := r.c.cfg.Results.LogLimit(); size > kept && r.request.Follow {
		from = min(from, kept/2) // its middle was cut out: a reader beyond the first half continues from there
	}
	r.stored, r.final = f, true
	_, err = f.Seek(from, io.SeekStart)
	return err
}

// pieces reads the current contents of a live attempt's stream, fetched piece by piece, so that a slow reader occupies
// no channel.
type pieces struct {
	c      *Controller
	ctx    context.Context
	key    spoolKey
	piece  bytes.Buffer
	offset int64 // of the next piece
	last   bool  // piece is the last
}

const pieceSize = 256 << 10

// Read fetches the next piece when the previous one has been read.
func (r *pieces) Read(p []byte) (int, error) {
	if r.piece.Len() == 0 && !r.last {
		if err := r.fetch(); err != nil {
			return 0, err
		}
	}
	return r.piece.Read(p)
}

func (r *pieces) fetch() error {
	instance, err := r.c.where(r.ctx, r.key.attempt)
	if err != nil {
		return err
	}
	l := r.c.link(instance)
	if l == nil {
		return errNotConnected
	}
	from, err := l.conn.FetchLog(r.ctx, r.key.attempt, string(r.key.stream), r.offset, pieceSize)
	if err != nil {
		return err
	}
	n, err := r.piece.ReadFrom(from)
	r.offset += n
	r.last = n < pieceSize
	return err
}

// Close has nothing to close.
func (r *pieces) Close() error { return nil }
