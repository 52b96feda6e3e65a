package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"drover"
	"drover/internal/blob"
	"drover/internal/engine"
)

// follow shows the output of a run's only job as it comes, attempt after attempt, on this process's own streams. It ends when the job is
// final and all is shown; what could not be followed live is shown from the stored logs.
func (s *session) follow(ctx context.Context) *sync.WaitGroup {
	out := s.app.out
	if asJSON, _ := s.app.json(); asJSON {
		out = s.app.err // standard output is for one object alone
	}
	var wg sync.WaitGroup
	for _, st := range []struct {
		wire, blob string
		to         io.Writer
	}{{"stdout", blob.Stdout, out}, {"stderr", blob.Stderr, s.app.err}} {
		wg.Go(func() { s.followStream(ctx, st.wire, st.blob, st.to) })
	}
	return &wg
}

func (s *session) followStream(ctx context.Context, wire, ending string, to io.Writer) {
	var shown int64 // of the attempt
	var attempt drover.AttemptID
	for {
		now, final, err := s.attempt(ctx)
		if err != nil {
			return
		}
		if final {
			break
		}
		if now != attempt {
			attempt, shown = now, 0
		}
		if attempt.Number > 0 {
			n, _ := s.fleet.controller.Follow(ctx, attempt, wire, shown, to)
			shown += n
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.showRest(ending, shown, to)
}

// attempt is the live attempt of the run's only job, if there is one, and whether the job is final.
func (s *session) attempt(ctx context.Context) (id drover.AttemptID, final bool, err error) {
	counts, err := s.fleet.store.Counts(ctx)
	if err != nil {
		return id, false, err
	}
	if counts[drover.JobQueued]+counts[drover.JobRunning] == 0 {
		return id, true, nil
	}
	err = s.fleet.controller.Query(ctx, func(e *engine.Engine) {
		for _, a := range e.Attempts() {
			if a.State == drover.AttemptRunning {
				id = a.ID
			}
		}
	})
	return id, false, err
}

// showRest shows what of the stored log has not been shown.
func (s *session) showRest(ending string, shown int64, to io.Writer) {
	f, err := os.Open(filepath.Join(s.plan.Out, "logs", s.plan.Batch.Jobs[0].Name+"."+ending))
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Seek(shown, io.SeekStart); err == nil {
		io.Copy(to, f)
	}
}
