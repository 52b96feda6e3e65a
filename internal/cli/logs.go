package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"drover"
	"drover/internal/backoff"
)

// logsFlags are the flags of `drover logs`.
type logsFlags struct {
	ofBatch
	follow   bool
	stdout   bool
	stderr   bool
	tail     int // lines; negative: all
	attempt  int // 0: the last
	patience time.Duration
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs [flags] [JOB]",
		Short: "Show what jobs write",
		Long: `Show what a job wrote, byte for byte: its standard output on standard output, its standard error on standard error. With -f go on until
the job is final. Of an array, or a batch, each line comes after the name of the element that wrote it.`,
		Example: "  drover logs 17\n  drover logs -f --tail 10 17\n  drover logs --batch hello -f\n  drover logs --attempt 1 17.3",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.batch != "" {
				return wantArgs(0, 0, "no JOB beside --batch")(cmd, args)
			}
			return wantArgs(1, 1, "a JOB, or --batch NAME")(cmd, args)
		},
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			return a.logs(ctx, svc, f, args)
		}),
	}
	f.add(a, cmd, "of every job")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until every job is final")
	cmd.Flags().BoolVar(&f.stdout, "stdout", false, "only standard output")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "only standard error")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "only the last `N` lines of each stream, and with -f what comes after them")
	cmd.Flags().IntVar(&f.attempt, "attempt", 0, "of the attempt of this `number`; left out: of the last")
	addPatience(cmd, &f.patience)
	cmd.ValidArgsFunction = a.completeJobs
	return cmd
}

// streams is where a job's output goes. One that is nil is not shown.
type streams struct{ out, err io.Writer }

func (a *app) logs(ctx context.Context, svc drover.Service, f logsFlags, args []string) error {
	switch {
	case f.follow && f.attempt != 0:
		return drover.Errorf(drover.KindInvalid, "an attempt by its number is not followed").WithHint("leave out -f, or --attempt")
	case a.forPrograms():
		return drover.Errorf(drover.KindInvalid, "what a job wrote is neither JSON nor YAML").WithHint("leave out -o")
	}
	to := streams{a.out, a.err}
	if f.stdout && !f.stderr {
		to.err = nil
	}
	if f.stderr && !f.stdout {
		to.out = nil
	}
	ids, err := jobIDs(args)
	if err != nil {
		return err
	}
	many := &manyLogs{app: a, svc: svc, flags: f, filter: f.filter(), to: to}
	show, follow := many.show, many.follow
	if len(ids) > 0 {
		job, err := svc.Job(ctx, ids[0])
		if err != nil {
			return err
		}
		many.filter.Job = ids[0].Number
		if job.Array == nil || ids[0].Index >= 0 {
			show = func(ctx context.Context) error { return a.copyLogs(ctx, svc, f, ids[0], to) }
			follow = func(ctx context.Context) error { return a.follow(ctx, svc, ids[0], to, f) }
		}
	}
	if !f.follow {
		return show(ctx)
	}
	err = follow(ctx)
	if err != nil && ctx.Err() != nil {
		a.goesOn(ids)
	}
	return err
}

// copyLogs shows what there is of both streams.
func (a *app) copyLogs(ctx context.Context, svc drover.Queue, f logsFlags, id drover.JobID, to streams) error {
	show := func(stream drover.Stream, to io.Writer) error {
		r := drover.LogRequest{Job: id, Stream: stream, Attempt: f.attempt}
		if to == nil || f.tail < 0 {
			return copyLog(ctx, svc, r, to)
		}
		last := &tail{most: f.tail}
		return errors.Join(copyLog(ctx, svc, r, last), last.print(to))
	}
	return errors.Join(show(drover.Stdout, to.out), show(drover.Stderr, to.err))
}

// copyLog shows what there is of a stream.
func copyLog(ctx context.Context, svc drover.Queue, r drover.LogRequest, to io.Writer) error {
	if to == nil {
		return nil
	}
	log, err := svc.Logs(ctx, r)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(to, log)
	return err
}

// follow shows both streams as they come, until the job is final.
func (a *app) follow(ctx context.Context, svc drover.Queue, id drover.JobID, to streams, flags logsFlags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	speaks := *a
	for _, f := range []*follower{{stream: drover.Stdout, to: to.out}, {stream: drover.Stderr, to: to.err}} {
		if f.to == nil {
			continue
		}
		f.app, f.svc, f.job, f.patience, f.tail = speaks, svc, id, flags.patience, flags.tail
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
	tail     int // lines that are shown of what is there at first; negative: all

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
	if f.tail >= 0 {
		if err := f.first(ctx); err != nil {
			return err
		}
	}
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
		if err := backoff.For(ctx, reopening); err != nil {
			return err
		}
	}
}

// first shows the last lines of what there is. The stream is followed from there.
func (f *follower) first(ctx context.Context) error {
	job, err := f.look(ctx)
	if err != nil {
		return err
	}
	last := &tail{most: f.tail}
	err = f.app.patiently(ctx, f.patience, func() error {
		*last = tail{most: f.tail}
		return copyLog(ctx, f.svc, drover.LogRequest{Job: f.job, Stream: f.stream}, last)
	})
	f.shown, f.attempts = last.size, max(1, len(job.Attempts))
	return errors.Join(err, last.print(f.to))
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
