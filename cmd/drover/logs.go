package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/sleep"
)

// logsFlags are the flags of `drover logs`.
type logsFlags struct {
	follow   bool
	stdout   bool
	stderr   bool
	patience time.Duration
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs [flags] JOB",
		Short: "Show what a job writes",
		Long: `Show what a job wrote, byte for byte: its standard output on standard output, its standard error on standard error. With -f go on until
the job is final.`,
		Example: "  drover logs 17\n  drover logs -f --stdout 17.3",
		Args:    wantArgs(1, 1, "a JOB"),
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			return a.logs(ctx, svc, f, args[0])
		}),
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until the job is final")
	cmd.Flags().BoolVar(&f.stdout, "stdout", false, "only its standard output")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "only its standard error")
	addPatience(cmd, &f.patience)
	cmd.ValidArgsFunction = a.completeJobs
	return cmd
}

// streams is where a job's output goes. One that is nil is not shown.
type streams struct{ out, err io.Writer }

func (a *app) logs(ctx context.Context, svc drover.Service, f logsFlags, arg string) error {
	ids, err := jobIDs([]string{arg})
	if err != nil {
		return err
	}
	if a.forPrograms() {
		return drover.Errorf(drover.KindInvalid, "what a job wrote is neither JSON nor YAML").WithHint("leave out -o")
	}
	job, err := svc.Job(ctx, ids[0])
	if err != nil {
		return err
	}
	if job.Array != nil && ids[0].Index < 0 {
		return drover.Errorf(drover.KindInvalid, "job %v is an array, each element of which has its own logs", job.ID).
			WithHint("name one of them: drover logs %v.%d", job.ID, job.Array.First)
	}
	to := streams{a.out, a.err}
	if f.stdout && !f.stderr {
		to.err = nil
	}
	if f.stderr && !f.stdout {
		to.out = nil
	}
	if f.follow {
		err := a.follow(ctx, svc, ids[0], to, f.patience)
		if err != nil && ctx.Err() != nil {
			a.goesOn(ids)
		}
		return err
	}
	return errors.Join(copyLog(ctx, svc, ids[0], drover.Stdout, to.out), copyLog(ctx, svc, ids[0], drover.Stderr, to.err))
}

// copyLog shows what there is of a stream.
func copyLog(ctx context.Context, svc drover.Queue, id drover.JobID, stream drover.Stream, to io.Writer) error {
	if to == nil {
		return nil
	}
	log, err := svc.Logs(ctx, drover.LogRequest{Job: id, Stream: stream})
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(to, log)
	return err
}

// follow shows both streams as they come, until the job is final.
func (a *app) follow(ctx context.Context, svc drover.Queue, id drover.JobID, to streams, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	speaks := *a
	for _, f := range []*follower{{stream: drover.Stdout, to: to.out}, {stream: drover.Stderr, to: to.err}} {
		if f.to == nil {
			continue
		}
		f.app, f.svc, f.job, f.patience = speaks, svc, id, patience
		speaks.err = io.Discard // what there is to say is the same for both
		wg.Go(func() {
			if err := f.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// follower follows one stream over the restarts of its controller.
type follower struct {
	app      app
	svc      drover.Queue
	job      drover.JobID
	stream   drover.Stream
	to       io.Writer
	patience time.Duration

	shown    int64 // bytes
	attempts int   // that the job had had when shown began to count, at least one
	broken   error // of writing
}

// Write shows a part of the stream, and remembers what went wrong with that.
func (f *follower) Write(p []byte) (n int, err error) {
	n, f.broken = f.to.Write(p)
	f.shown += int64(n)
	return n, f.broken
}

// reopening is how long after its end a stream is opened again.
const reopening = 300 * time.Millisecond

// run shows the stream until it has come to its end and the job is final: a connection may end before.
func (f *follower) run(ctx context.Context) error {
	for {
		err := f.once(ctx)
		if f.broken != nil || ctx.Err() != nil {
			return errors.Join(f.broken, ctx.Err())
		}
		job, jobErr := f.look(ctx)
		if jobErr != nil {
			return jobErr
		}
		if err == nil && job.State.Final() {
			return nil
		}
		if err := sleep.For(ctx, reopening); err != nil {
			return err
		}
	}
}

// look waits for the controller and asks it for the job.
func (f *follower) look(ctx context.Context) (job drover.Job, err error) {
	err = f.app.patiently(ctx, f.patience, func() error {
		job, err = f.svc.Job(ctx, f.job)
		return err
	})
	return job, err
}

// once opens the stream where it broke off and shows it until it ends. If the job has had another attempt meanwhile there is no telling
// where that is, and it begins anew.
func (f *follower) once(ctx context.Context) error {
	job, err := f.look(ctx)
	if err != nil {
		return err
	}
	attempts := max(1, len(job.Attempts))
	if f.shown > 0 && attempts != f.attempts {
		fmt.Fprintf(f.app.err, "drover: job %v has been started again; this is its %s from the beginning\n", f.job, f.stream)
		f.shown = 0
	}
	f.attempts = attempts
	log, err := f.svc.Logs(ctx, drover.LogRequest{Job: f.job, Stream: f.stream, Follow: true})
	if err != nil {
		return err
	}
	defer log.Close()
	if _, err := io.CopyN(io.Discard, log, f.shown); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	_, err = io.Copy(f, log)
	return err
}
