package cli

import (
	"context"
	"errors"
	"os"
	"syscall"

	"drover"
	"drover/internal/blob"
	"drover/internal/daemon"
)

// streamedLog is how much of a stream is kept for a command whose output is shown. It is large, since output that could
// not be followed is shown from there: a command may write a lot before its output is first read.
const streamedLog = 256 << 20

// keptOf limits how much of a run's results is kept.
func keptOf(p daemon.RunPlan) blob.Limits {
	l := blob.DefaultLimits()
	if p.Streamed {
		l.Log = streamedLog
	}
	return l
}

// follow shows the output of a run's only job on this process's own streams as it arrives, attempt after attempt. The
// returned channel is closed once the job is final and everything is shown, or at once if nothing is to be shown.
//
// When the reader of standard output has gone, hangUp gets SIGPIPE, as the command itself would on this host.
func (s *session) follow(ctx context.Context, hangUp chan<- os.Signal) (shown <-chan struct{}) {
	done := make(chan struct{})
	if !s.plan.Streamed {
		close(done)
		return done
	}
	out := s.app.out
	if s.app.forPrograms() {
		out = s.app.err // standard output is reserved for one object
	}
	go func() {
		defer close(done)
		only := drover.JobID{Number: 1, Index: -1}
		err := s.app.follow(ctx, s.svc, only, streams{out, s.app.err}, logsFlags{tail: -1})
		switch {
		case ctx.Err() != nil || err == nil:
		case errors.Is(err, syscall.EPIPE):
			hangUp <- syscall.SIGPIPE
		default:
			s.incomplete.Store(true)
			s.ui.say("some output was not shown: %v", err)
		}
	}()
	return done
}
