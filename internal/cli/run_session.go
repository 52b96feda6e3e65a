package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"drover"
	"drover/driver"
	"drover/internal/config"
	"drover/internal/daemon"
	"drover/internal/engine"
)

// session is one active run. It queries its controller through drover.Service, like every other command, and otherwise
// only starts and ends it.
type session struct {
	app         *app
	fleet       *daemon.Fleet
	svc         drover.Service // of the fleet
	folder      *daemon.RunFolder
	plan        daemon.RunPlan
	config      *config.Config
	ui          *progress
	began       time.Time
	interrupted bool
	stopping    bool // it was interrupted, and a resume continues it
	stopped     bool // it is stopping, and nothing runs any more
	closing     bool
	done        bool        // every job was final before any interruption
	incomplete  atomic.Bool // some output was not shown

	cancelOnInterrupt bool // a signal cancels the run instead of leaving it to a resume
	browsed           bool // it is shown in a browser
}

// run drives the fleet until every job is final and every instance gone.
func (s *session) run(ctx context.Context) (drover.Summary, error) {
	s.began = time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := s.fleet.Controller.Run(ctx)
		cancel(err)
		ended <- err
	}()
	api, err := s.serveAPI(ctx)
	if err != nil {
		cancel(nil)
		<-ended
		return drover.Summary{}, err
	}
	go s.fleet.ServeAttempts(ctx, api)
	told := make(chan struct{})
	go func() {
		defer close(told)
		s.tell(ctx)
	}()
	err = s.finish(ctx)
	if err == nil {
		s.fleet.Controller.Sweep(ctx, driver.Ended)
		s.fleet.Controller.Tell(ctx)
	}
	cancel(nil)
	runErr := <-ended
	<-told
	if err = cmp.Or(runErr, err); err != nil {
		return drover.Summary{}, s.unfinished(err)
	}
	return s.svc.Summary(context.WithoutCancel(ctx))
}

// tell shows the run's events, including its last ones.
func (s *session) tell(ctx context.Context) {
	filter := drover.EventFilter{Level: string(engine.Warn)}
	if s.ui.verbose {
		filter.Level = string(engine.Debug)
	}
	for _, filter.Recent = range []bool{false, true} {
		for ev, err := range s.svc.Events(ctx, filter) {
			if err != nil {
				break // the controller has ended
			}
			s.ui.event(ev)
			if ev.ID != "" {
				filter.After = ev.ID
			}
		}
		ctx = context.WithoutCancel(ctx)
	}
}

// unfinished prints how to resume or clean up a run that ended before its work did.
func (s *session) unfinished(err error) error {
	if _, ok := errors.AsType[exit](err); ok {
		return err
	}
	return drover.AsError(err, drover.KindInternal).WithHint("to continue: drover run --resume %s; to see what led to this: drover replay %s", s.folder.ID, s.folder.ID)
}

// glance is how often a run is polled, so that it looks alive and ends soon after its last instance.
const glance = 50 * time.Millisecond

// untilNext is the pause after a poll that took this long: counting a large batch must not take time from its jobs.
func untilNext(took time.Duration) time.Duration { return min(max(glance, 20*took), interval) }

// finish submits the batch, unless an earlier process did, and runs the fleet until its end.
func (s *session) finish(ctx context.Context) error {
	signals := make(chan os.Signal, 3)
	notifySignals(signals)
	defer signal.Stop(signals)
	if err := s.submitOrLeave(ctx, signals); err != nil {
		return err
	}
	shown := s.follow(ctx, signals)
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case sig := <-signals:
			dropEchoes(signals)
			if err := s.interrupt(ctx, sig); err != nil {
				return err
			}
		case <-tick.C:
			looked := time.Now()
			atRest, err := s.look(ctx, isClosed(shown))
			if err != nil || atRest {
				return err
			}
			tick.Reset(untilNext(time.Since(looked)))
		}
	}
}

// submitOrLeave submits the batch, whose inputs may be large. A signal meanwhile ends the run before it starts, unless
// the batch is among the records by then.
func (s *session) submitOrLeave(ctx context.Context, signals <-chan os.Signal) error {
	submitting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.submit(submitting) }()
	select {
	case err := <-ended:
		return err
	case sig := <-signals:
		dropEchoes(signals)
		cancel()
		<-ended
		asking, cancel := context.WithTimeout(ctx, detachTimeout)
		defer cancel()
		if submitted, err := s.submitted(asking); submitted || err != nil {
			return s.interrupt(ctx, sig)
		}
		return s.leaveBeforeBegin(sig)
	}
}

// look shows the run's status, closes the fleet once every job is final and all output is shown, and reports whether
// nothing is left.
func (s *session) look(ctx context.Context, shown bool) (atRest bool, err error) {
	st, err := s.svc.Status(ctx)
	if err != nil {
		return false, err
	}
	s.ui.show(st)
	left := st.Jobs[drover.JobQueued] + st.Jobs[drover.JobRunning]
	if left == 0 && !s.closing && shown {
		s.closing, s.done = true, !s.interrupted
		s.fleet.Controller.CloseFleet(ctx, s.interrupted)
		if err := s.tellKept(ctx); err != nil {
			return false, err
		}
	}
	rest, waiting, err := s.fleet.Controller.AtRest(ctx)
	if err != nil {
		return false, err
	}
	nothing := s.folder.Fresh && len(st.Instances) == 0 // a new run cannot have instances that were never seen
	if s.stopping && left > 0 {
		s.stopped = st.Draining && (waiting || nothing)
		return s.stopped, nil
	}
	return s.closing && left == 0 && (rest || nothing), nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// submitted reports whether the batch was submitted, by this process or an earlier one.
func (s *session) submitted(ctx context.Context) (bool, error) {
	st, err := s.svc.Status(ctx)
	return allOf(st.Jobs) > 0, err
}

// submit submits the batch once.
func (s *session) submit(ctx context.Context) error {
	if submitted, err := s.submitted(ctx); submitted || err != nil {
		return err
	}
	silent := *s.app
	silent.terminal = false // the run's own bar is there
	if err := silent.upload(ctx, s.svc, &s.plan.Batch); err != nil {
		return err
	}
	_, err := s.svc.Submit(ctx, drover.Submission{Batch: s.plan.Batch})
	return err
}

// verdict returns the exit code of a finished run.
func (s *session) verdict(sum drover.Summary) error {
	switch {
	case s.interrupted && !s.done:
		return exit(exitInterrupted)
	case sum.Failed+sum.Cancelled > 0 || s.incomplete.Load():
		return exit(exitWorkFailed)
	}
	return nil
}
