package control

import (
	"bytes"
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/logkey"
)

// livePace is the time between two requests for what attempts have written.
const livePace = 2 * time.Second

// liveLogs is the logs of running attempts, stored where the complete ones will be, so that a reader of a run's folder
// sees them grow. When an attempt ends, its complete logs replace them.
type liveLogs struct {
	mu   sync.Mutex         // held while a log is written
	kept map[spoolKey]int64 // how far each stream is stored, or complete; guarded by mu
}

// complete is how far the streams of an attempt are stored whose complete logs are being, or have been, stored.
const complete = math.MaxInt64

// growLogs stores what attempts have written since the last time.
func (c *Controller) growLogs(ctx context.Context) {
	running, byInstance := map[drover.AttemptID]bool{}, map[int64][]drover.AttemptID{}
	err := c.Query(ctx, func(e *engine.Engine) {
		for _, a := range e.Attempts() {
			if a.State == drover.AttemptRunning {
				running[a.ID] = true
				byInstance[a.Instance] = append(byInstance[a.Instance], a.ID)
			}
		}
	})
	if err != nil {
		return // the controller ends
	}
	c.live.forget(running)
	var all sync.WaitGroup
	for instance, attempts := range byInstance {
		if l := c.link(instance); l != nil {
			all.Go(func() { c.growLogsOf(ctx, l, attempts) })
		}
	}
	all.Wait()
}

// growLogsOf is growLogs for one instance, one stream after the other.
func (c *Controller) growLogsOf(ctx context.Context, l *link, attempts []drover.AttemptID) {
	for _, id := range attempts {
		for stream, name := range streams {
			if err := c.keepPiece(ctx, l, id, stream, name); err != nil {
				c.cfg.Log.Debug("a log cannot be stored", logkey.Attempt, id.String(), logkey.Error, err)
			}
		}
	}
}

// keepPiece stores the next piece of a stream. If the stream is longer than what will be kept, the beginning is enough.
func (c *Controller) keepPiece(ctx context.Context, l *link, id drover.AttemptID, stream drover.Stream, blob string) error {
	spec, err := c.spec(ctx, id.Job.Number)
	if err != nil {
		return err
	}
	key := spoolKey{id, stream}
	from := c.live.from(key)
	if from >= c.cfg.Results.LogLimit()/2 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	section, err := l.conn.FetchLog(ctx, id, string(stream), from, pieceSize)
	if err != nil {
		return err
	}
	var piece bytes.Buffer
	if _, err := piece.ReadFrom(section); err != nil || piece.Len() == 0 {
		return err
	}
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	if c.live.kept[key] == complete {
		return nil
	}
	if writer, err := c.cfg.Results.LogsOf(c.folder(spec), id.Job.Index); err != nil || writer > id.Number { // a later attempt has begun
		return err
	}
	if err := c.cfg.Results.BeginLogs(c.folder(spec), id.Job.Index, id.Number); err != nil {
		return err
	}
	if err := c.cfg.Results.GrowLog(c.folder(spec), id.Job.Index, blob, from, piece.Bytes()); err != nil {
		return err
	}
	c.live.kept[key] = from + int64(piece.Len())
	return nil
}

// from returns how far a stream is stored.
func (s *liveLogs) from(key spoolKey) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[key]
}

// end stops storing pieces of an attempt, since its complete logs are stored now.
func (s *liveLogs) end(id drover.AttemptID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range streams {
		s.kept[spoolKey{id, stream}] = complete
	}
}

// forget drops all attempts except the running ones.
func (s *liveLogs) forget(running map[drover.AttemptID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(key spoolKey, _ int64) bool { return !running[key.attempt] })
}
