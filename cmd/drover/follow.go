package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"drover"
	"drover/internal/blob"
	"drover/internal/engine"
)

// streamedLog is how much of a stream is kept of a command whose output is shown. It is generous, since what could not be followed is
// shown from there: a command may write much before its output is first asked for.
const streamedLog = 256 << 20

// limits bound what is kept of the run's results.
func (p runPlan) limits() blob.Limits {
	l := blob.DefaultLimits()
	if p.Streamed {
		l.Log = streamedLog
	}
	return l
}

// follow shows the output of a run's only job as it comes, attempt after attempt, on this process's own streams. What it returns is closed
// once the job is final and all is shown, at once if nothing is to be shown. What could not be followed live is shown from the stored logs.
//
// When nobody reads standard output any more, hangUp gets SIGPIPE, as the command itself would on this host.
func (s *session) follow(ctx context.Context, hangUp chan<- os.Signal) (shown <-chan struct{}) {
	done := make(chan struct{})
	if !s.plan.Streamed {
		close(done)
		return done
	}
	out := s.app.out
	if s.app.forPrograms() {
		out = s.app.err // standard output is for one object alone
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.followStream(ctx, "stdout", blob.Stdout, out); errors.Is(err, syscall.EPIPE) {
			hangUp <- syscall.SIGPIPE
		}
	})
	wg.Go(func() { s.followStream(ctx, "stderr", blob.Stderr, s.app.err) })
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// lookInterval is how often it is looked whether an attempt has come.
const lookInterval = 20 * time.Millisecond

// followStream shows one stream. Its error is that of writing to it; others it tells.
func (s *session) followStream(ctx context.Context, wire, ending string, to io.Writer) error {
	var attempt drover.AttemptID
	var shown int64 // of the attempt
	whole := false  // all of it
	for {
		now, final, err := s.attempt(ctx)
		if err != nil {
			return nil // the controller has ended, and says why itself
		}
		if now.Number > 0 && now != attempt {
			attempt, shown, whole = now, 0, false
		}
		if final {
			break
		}
		if attempt.Number > 0 && !whole {
			n, err := s.fleet.controller.Follow(ctx, attempt, wire, shown, to)
			if errors.Is(err, syscall.EPIPE) {
				return err
			}
			shown, whole = shown+n, err == nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookInterval):
		}
	}
	if whole || attempt.Number == 0 { // what there is of a job that never ran is an earlier run's
		return nil
	}
	err := s.showRest(ending, shown, to)
	if err != nil {
		s.incomplete.Store(true)
		s.ui.say("%s was not shown whole: %v", wire, err)
	}
	return err
}

// attempt is the attempt of the run's only job whose output is to be shown, the live one or else the last, and whether the job is final.
func (s *session) attempt(ctx context.Context) (id drover.AttemptID, final bool, err error) {
	counts, err := s.fleet.store.Counts(ctx)
	if err != nil {
		return id, false, err
	}
	if counts[drover.JobQueued]+counts[drover.JobRunning] == 0 {
		id, err = s.lastAttempt(ctx)
		return id, true, err
	}
	err = s.fleet.controller.Query(ctx, func(e *engine.Engine) {
		for _, a := range e.Attempts() {
			id = a.ID
		}
	})
	return id, false, err
}

// lastAttempt is the last attempt of the run's only job, zero if it had none.
func (s *session) lastAttempt(ctx context.Context) (id drover.AttemptID, err error) {
	jobs, err := s.fleet.store.Jobs(ctx, drover.TimeOf(time.Now()), drover.JobFilter{Limit: 1})
	for _, j := range jobs {
		for _, a := range j.Attempts {
			id = drover.AttemptID{Job: j.ID, Number: a.Number}
		}
	}
	return id, err
}

// showRest shows what of the stored log has not been shown. One that is longer than logs may be has had its middle cut out: there is then
// no telling where to go on.
func (s *session) showRest(ending string, shown int64, to io.Writer) error {
	f, err := os.Open(filepath.Join(s.plan.Out, "logs", s.plan.Batch.Jobs[0].Name+"."+ending))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it had no attempt, or none that could be heard of again
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > s.plan.limits().Log {
		return errors.New("it was too long to be kept; its two ends are in " + relative(f.Name()))
	}
	if _, err := f.Seek(shown, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return err
}
