package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/human"
)

// A run can be left in three ways. It is detached when this process must end: jobs and instances keep running, as after
// a kill -9. It is stopped when a person pauses it: jobs are stopped, instances destroyed, and a resume continues with
// the rest. It is cancelled when nobody wants the rest.

// notifySignals delivers the signals that leave a run. SIGHUP stays ignored if it was, as under nohup.
func notifySignals(to chan<- os.Signal) {
	signal.Notify(to, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(to, syscall.SIGHUP)
	}
}

// echo is how soon after a signal another one comes from the same cause: timeout, for example, signals its child and
// then the child's group. A person is slower.
const echo = 50 * time.Millisecond

// dropEchoes drops the signals that follow one at once.
func dropEchoes(signals <-chan os.Signal) {
	for over := time.After(echo); ; {
		select {
		case <-signals:
		case <-over:
			return
		}
	}
}

// interrupt carries out a signal.
func (s *session) interrupt(ctx context.Context, sig os.Signal) error {
	switch {
	case s.interrupted && (sig == syscall.SIGPIPE || s.stopping && sig != os.Interrupt):
		s.ui.say("%s: already stopping; Ctrl-C exits immediately", signalName(sig))
		return nil
	case s.interrupted:
		return s.leave()
	case sig == syscall.SIGPIPE || s.cancelOnInterrupt || sig == os.Interrupt && s.closing:
		return s.cancel(ctx, sig)
	case sig == os.Interrupt:
		s.stop(ctx, sig)
		return nil
	}
	return s.detach(ctx, sig)
}

// cancel ends the run: every job that is not final is cancelled.
func (s *session) cancel(ctx context.Context, sig os.Signal) error {
	s.interrupted = true
	doing := "cancelling the remaining jobs and destroying the instances"
	if s.closing {
		doing = "destroying the instances" // every job is final
	}
	s.ui.say("%s: %s; send a second signal to exit immediately", signalName(sig), doing)
	why := "cancelled: drover run received " + signalName(sig)
	if sig == syscall.SIGPIPE {
		why = "cancelled: the reader of drover run's output has exited"
	}
	// The cancel is durable before the fleet closes: a run that is killed in between still ends when it is resumed.
	err := s.fleet.Controller.CancelAll(ctx, why)
	s.fleet.Controller.CloseFleet(ctx, true)
	return err
}

// stop pauses the run until it is resumed.
func (s *session) stop(ctx context.Context, sig os.Signal) {
	s.interrupted, s.stopping = true, true
	s.ui.say("%s: stopping: running jobs get SIGTERM, then SIGKILL after %v; instances are destroyed; send a second signal to exit immediately",
		signalName(sig), s.config.Instances.TermTimeout)
	s.fleet.Controller.Drain(ctx, "stopped: drover run received "+signalName(sig))
}

// leave ends this process while the run is still stopping or being cancelled.
func (s *session) leave() error {
	s.ui.close()
	fmt.Fprintf(s.app.err, "exited immediately; instances may still exist. To clean up:\n    drover gc --fleet %s --destroy\n", s.folder.ID)
	return exit(exitInterrupted)
}

// detach ends this process and leaves the run as it is.
func (s *session) detach(ctx context.Context, sig os.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	st, err := s.svc.Status(ctx)
	s.ui.close()
	going := fmt.Sprintf("running jobs (%d) keep running, and queued jobs (%d) wait until you resume", st.Jobs[drover.JobRunning], st.Jobs[drover.JobQueued])
	if err != nil {
		going = "running jobs keep running" // the controller did not answer, and must not keep this process from ending
	}
	fmt.Fprintf(s.app.err, "%s: detached: %s. To resume:\n    drover run --resume %s\n", signalName(sig), going, s.folder.ID)
	if len(st.Instances) > 0 || err != nil {
		fmt.Fprintln(s.app.err, s.orphanWords(time.Now()))
	}
	return exit(exitInterrupted)
}

// detachTimeout is how long an ending process may take to report its run's state.
const detachTimeout = time.Second

// orphanWords describes how long the instances of a detached run wait for a resume.
func (s *session) orphanWords(now time.Time) string {
	timeout := s.config.Instances.OrphanTimeout
	if timeout == 0 {
		return "until then, its instances stay and cost money (orphan_timeout: 0)"
	}
	return fmt.Sprintf("an idle instance powers itself off at %s, a busy one %s after its last job; uncollected results are lost with it (orphan_timeout)",
		human.Clock(drover.TimeOf(now.Add(timeout))), human.Age(timeout))
}

// tellStopped prints how to resume a stopped run, and how far it got.
func (s *session) tellStopped(sum drover.Summary) error {
	final := sum.Succeeded + sum.Failed + sum.Cancelled
	fmt.Fprintf(s.app.err, "stopped: %d of %s final, no instances left, %v spent so far. To resume:\n    drover run --resume %s\n",
		final, human.Plural(sum.Jobs, "job"), sum.Cost, s.folder.ID)
	return exit(exitInterrupted)
}

// leaveBeforeBegin ends a run whose batch was still being submitted: if this process must end, the run is kept for a
// resume; otherwise nothing remains.
func (s *session) leaveBeforeBegin(sig os.Signal) error {
	if sig == os.Interrupt || s.cancelOnInterrupt {
		s.ui.say("%s: nothing was started", signalName(sig))
		return cmp.Or(s.folder.Remove(), error(exit(exitInterrupted)))
	}
	s.ui.close()
	fmt.Fprintf(s.app.err, "%s: detached before anything was started. To resume:\n    drover run --resume %s\n", signalName(sig), s.folder.ID)
	return exit(exitInterrupted)
}

// signalName returns the usual name of a signal.
func signalName(sig os.Signal) string {
	if number, ok := sig.(syscall.Signal); ok && sig != syscall.SIGPIPE {
		return unix.SignalName(number)
	}
	return sig.String()
}
