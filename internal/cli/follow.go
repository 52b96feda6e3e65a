package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"drover"
	"drover/internal/blob"
	"drover/internal/daemon"
)

// streamedLog is how much of a stream is kept of a command whose output is shown. It is generous, since what could not be followed is
// shown from there: a command may write much before its output is first asked for.
const streamedLog = 256 << 20

// keptOf bounds what is kept of a run's results.
func keptOf(p daemon.RunPlan) blob.Limits {
	l := blob.DefaultLimits()
	if p.Streamed {
		l.Log = streamedLog
	}
	return l
}

// follow shows the output of a run's only job as it comes, attempt after attempt, on this process's own streams. What it returns is closed
// once the job is final and all is shown, at once if nothing is to be shown.
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
		if err := s.followStream(ctx, drover.Stdout, out); errors.Is(err, syscall.EPIPE) {
			hangUp <- syscall.SIGPIPE
		}
	})
	wg.Go(func() { s.followStream(ctx, drover.Stderr, s.app.err) })
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// followStream shows one stream of the run's only job. Its error is that of writing to it; others it tells.
func (s *session) followStream(ctx context.Context, stream drover.Stream, to io.Writer) error {
	only := drover.JobID{Number: 1, Index: -1}
	r, err := s.fleet.Controller.Logs(ctx, drover.LogRequest{Job: only, Stream: stream, Follow: true})
	if err == nil {
		defer r.Close()
		_, err = io.Copy(to, r)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return err
	}
	s.incomplete.Store(true)
	s.ui.say("%s was not shown whole: %v", stream, err)
	return err
}
