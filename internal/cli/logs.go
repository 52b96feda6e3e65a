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
	follow  bool
	stdout  bool
	stderr  bool
	tail    int // number of lines; negative: all
	attempt int // 0: the last one
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := unformatted("it prints a job's output unchanged", &cobra.Command{
		Use:   "logs [flags] [JOB]",
		Short: "Show the output of jobs",
		Long: `Show what a job wrote, unchanged: its standard output on standard output, its standard error on
standard error. With -f, follow until the job is final. For an array or a batch, each line begins
with the name of the element that wrote it.`,
		Example: "  drover logs 17\n  drover logs -f --tail 10 17\n  drover logs --batch hello -f\n  drover logs --attempt 1 17.3",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.batch != "" {
				return wantArgs(0, 0, "no JOB with --batch")(cmd, args)
			}
			return wantArgs(1, 1, "a JOB, or --batch NAME")(cmd, args)
		},
		RunE: a.ask(func(ctx context.Context, svc drover.Service, args []string) error {
			return a.logs(ctx, svc, f, args)
		}),
	})
	f.add(a, cmd, "show the output of every job")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "follow until every job is final")
	cmd.Flags().BoolVar(&f.stdout, "stdout", false, "only standard output")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "only standard error")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "show only the last `N` lines of each stream, and with -f everything after them")
	cmd.Flags().IntVar(&f.attempt, "attempt", 0, "show the attempt with this `number`; default: the last")
	a.addPatience(cmd)
	cmd.ValidArgsFunction = a.completeJobs()
	return cmd
}

// streams is where a job's output goes. A nil stream is not shown.
type streams struct{ out, err io.Writer }

func (a *app) logs(ctx context.Context, svc drover.Service, f logsFlags, args []string) error {
	if f.follow && f.attempt != 0 {
		return drover.Errorf(drover.KindInvalid, "-f and --attempt cannot be used together").WithHint("use one of them")
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
			show = func(ctx context.Context) error { return a.copyLogs(ctx, svc, f, job, to) }
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

// followers returns a follower for each stream that is shown.
func (a *app) followers(svc drover.Queue, id drover.JobID, to streams, f logsFlags) (all []*follower) {
	for _, s := range []struct {
		stream drover.Stream
		to     io.Writer
	}{{drover.Stdout, to.out}, {drover.Stderr, to.err}} {
		if s.to != nil {
			request := drover.LogRequest{Job: id, Stream: s.stream, Attempt: f.attempt}
			all = append(all, &follower{app: a, svc: svc, request: request, to: s.to, tail: f.tail})
		}
	}
	return all
}

// copyLogs prints the existing output of both streams, one after the other.
func (a *app) copyLogs(ctx context.Context, svc drover.Queue, f logsFlags, job drover.Job, to streams) error {
	for _, reader := range a.followers(svc, job.ID, to, f) {
		reader.attempts = max(1, len(job.Attempts))
		if err := reader.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// follow prints both streams as output arrives, until the job is final.
func (a *app) follow(ctx context.Context, svc drover.Queue, id drover.JobID, to streams, flags logsFlags) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, f := range a.followers(svc, id, to, flags) {
		f.request.Follow = true
		wg.Go(func() {
			if err := f.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// follower reads one stream, and continues at the same place after the connection breaks or the controller restarts.
type follower struct {
	app     *app
	svc     drover.Queue
	request drover.LogRequest // its Offset is how many bytes were shown
	to      io.Writer
	tail    int // how many existing lines are shown first; negative: all

	attempts int // the job's attempts when the shown bytes started to count, at least one
}

// Write shows a part of the stream.
func (f *follower) Write(p []byte) (n int, err error) {
	n, err = f.to.Write(p)
	f.request.Offset += int64(n)
	return n, err
}

// reopening is how long after its end a stream is reopened.
const reopening = 300 * time.Millisecond

// run shows the stream until it ends and, if it is followed, the job is final.
func (f *follower) run(ctx context.Context) error {
	if f.tail >= 0 {
		if err := f.first(ctx); err != nil || !f.request.Follow {
			return err
		}
	}
	for {
		log, err := f.open(ctx)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, log)
		log.Close()
		switch {
		case err != nil && !away(err), err == nil && !f.request.Follow:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		job, jobErr := f.svc.Job(ctx, f.request.Job)
		if jobErr != nil || err == nil && job.State.Final() {
			return jobErr
		}
		if err := backoff.For(ctx, reopening); err != nil {
			return err
		}
	}
}

// first shows the last lines of the existing output, from whose end a followed stream continues.
func (f *follower) first(ctx context.Context) error {
	last := &tail{most: f.tail}
	now := *f
	now.request.Follow, now.to, now.tail = false, last, -1
	err := now.run(ctx)
	f.request.Offset, f.attempts = now.request.Offset, now.attempts
	return errors.Join(err, last.print(f.to))
}

// open opens the stream at the current offset. If the job has had another attempt since, it starts at that attempt's
// beginning.
func (f *follower) open(ctx context.Context) (io.ReadCloser, error) {
	if f.attempts == 0 || f.request.Offset > 0 {
		job, err := f.svc.Job(ctx, f.request.Job)
		if err != nil {
			return nil, err
		}
		attempts := max(1, len(job.Attempts))
		if f.request.Offset > 0 && attempts != f.attempts && f.request.Attempt == 0 {
			fmt.Fprintf(f.app.err, "drover: job %v has been started again; this is its %s from the beginning\n", f.request.Job, f.request.Stream)
			f.request.Offset = 0
		}
		f.attempts = attempts
	}
	return f.svc.Logs(ctx, f.request)
}
