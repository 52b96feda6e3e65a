package record

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"drover/internal/engine"
	"drover/internal/logkey"
)

const (
	flushEvery = time.Second      // a kill loses at most this much
	beginAgain = 10 * time.Minute // after an error that ended the last segment
)

// Recorder records a controller in a Folder, one segment after the other. An error ends a segment, is logged once, and
// does not stop the controller: after a while, Full requests the next segment.
//
// Begin, Append and Full are for one goroutine, that of the loop; the others are safe for concurrent use.
type Recorder struct {
	folder Folder
	log    *slog.Logger

	mu      sync.Mutex
	header  Header    // guarded by mu
	segment *segment  // guarded by mu; nil: nothing is recorded
	again   time.Time // guarded by mu; when to try again, while nothing is recorded
}

// NewRecorder makes a Recorder, which records nothing before Begin and writes only during Run. Only Program and
// Settings of the header matter.
func NewRecorder(folder Folder, header Header, log *slog.Logger) *Recorder {
	return &Recorder{folder: folder, header: header, log: log}
}

// Configured sets the configuration under which segments that begin from now on are recorded.
func (r *Recorder) Configured(hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header.Settings = hash
}

// Begin ends the segment there is, if any, and begins one with the State from which the controller continues.
func (r *Recorder) Begin(s engine.State) {
	r.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	segment, err := r.folder.begin(r.header, s)
	if err != nil {
		r.again = time.Now().Add(beginAgain)
		r.log.Warn("a recording cannot be started, so nothing is recorded for now; everything else continues", logkey.Error, err, logkey.AgainSeconds, beginAgain.Seconds())
		return
	}
	r.segment = segment
}

// Append records an event and its decision.
func (r *Recorder) Append(ev engine.Event, d engine.Decision) {
	if s := r.current(); s != nil {
		s.Append(ev, d)
	}
}

func (r *Recorder) current() *segment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.segment
}

// Full reports whether it is time for Begin: the segment has become large enough, or the last one failed long enough
// ago.
func (r *Recorder) Full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.segment == nil {
		return !r.again.IsZero() && !time.Now().Before(r.again)
	}
	return r.segment.full()
}

// Run writes what was appended, at an interval, until ctx is done; then it ends the segment.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.flush()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	r.Close()
}

// flush writes what was appended. A segment that cannot continue ends.
func (r *Recorder) flush() {
	s := r.current()
	if s == nil || s.Flush() == nil {
		return
	}
	r.mu.Lock()
	ours := r.segment == s
	if ours {
		r.segment, r.again = nil, time.Now().Add(beginAgain)
	}
	r.mu.Unlock()
	if ours {
		r.log.Warn("the recording has stopped for now; everything else continues", logkey.Error, s.Close(), logkey.AgainSeconds, beginAgain.Seconds())
	}
}

// Close ends the segment there is. Nothing is recorded until the next Begin.
func (r *Recorder) Close() {
	r.mu.Lock()
	s := r.segment
	r.segment = nil
	r.mu.Unlock()
	if s == nil {
		return
	}
	if err := s.Close(); err != nil {
		r.log.Warn("the recording is incomplete", logkey.Error, err)
	}
}
