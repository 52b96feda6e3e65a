package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/container"
	"drover/internal/deadman"
	"drover/internal/wire"
)

// order is the work that the daemon gives a supervisor. It is sent over a socket pair, so that its secrets are neither
// in an argument list nor in a file.
type order struct {
	Folder  folder            `json:"folder"` // absolute
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	Timeout time.Duration     `json:"timeout"`
	Grace   time.Duration     `json:"grace"`
	Limits  drover.Resources  `json:"limits"`

	Place     sandbox         `json:"place"`
	Container *container.Spec `json:"container,omitempty"` // without its environment; nil: it runs directly on the instance
}

// memory returns the most memory that the command may use.
func (o order) memory() drover.Bytes {
	if o.Container != nil {
		return max(o.Limits.Memory, container.MinMemory)
	}
	return o.Limits.Memory
}

// report is a supervisor's report on its order: Started at most once, then Exit.
type report struct {
	Started bool         `json:"started,omitempty"`
	Exit    *drover.Exit `json:"exit,omitempty"`
}

// supervisor carries out orders, one after the other.
type supervisor struct {
	boot   string
	daemon *wire.Conn
	pokes  <-chan os.Signal // the attempt's journal has a new order
}

// supervise is the supervisor's process. It takes orders from descriptor 3 until the daemon closes it.
func supervise() error {
	// The supervisor ignores the signals that end a session or a VM, which are for the command. It ends when it has
	// nothing left to do.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	pokes := make(chan os.Signal, 1)
	signal.Notify(pokes, pokeSignal)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	unix.CloseOnExec(3)
	if err := unix.SetNonblock(3, true); err != nil {
		return fmt.Errorf("using the daemon's socket: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	socket := os.NewFile(3, "daemon")
	s := &supervisor{boot: boot, daemon: wire.NewConn(socket, socket), pokes: pokes}
	for {
		var o order
		if err := s.daemon.Read(&o); gone(err) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.carryOut(o); err != nil {
			return err
		}
	}
}

// gone reports whether the daemon has ended or closed its socket.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

// carryOut runs one attempt to its end and reports it. It is no error if the daemon is gone: the next one reads the
// folder.
func (s *supervisor) carryOut(o order) error {
	j, err := o.Folder.begin(s.boot)
	if err != nil {
		return fmt.Errorf("starting the attempt in %s: %w", o.Folder, err)
	}
	defer j.Close()
	e := s.run(o, j)
	if err := o.Folder.addOutput(&e); err != nil {
		j.logf("reading the output: %v", err)
	}
	// The daemon gets the result even if the disk is too full to store it.
	written := j.append(entry{Exit: &e})
	return errors.Join(s.tell(report{Exit: &e}), written)
}

// tell reports to the daemon, if there still is one.
func (s *supervisor) tell(r report) error {
	if err := s.daemon.Write(r); !gone(err) {
		return err
	}
	return nil
}

// run starts the command and waits until none of its processes is left.
func (s *supervisor) run(o order, j journal) drover.Exit {
	began := time.Now()
	p, err := s.startPayload(o, j)
	if err != nil {
		j.logf("%v", err)
		return notStarted(err)
	}
	if err := s.tell(report{Started: true}); err != nil {
		j.logf("reporting to the daemon: %v", err)
	}
	w := watch{payload: p, order: o, journal: j, pokes: s.pokes, held: deadman.Find()}
	w.untilEnded()
	return w.exit(began)
}

// startPayload starts the order's command where it is to run.
func (s *supervisor) startPayload(o order, j journal) (payload, error) {
	switch {
	case o.Container == nil && o.Place.UID != 0:
		return startApart(o, j)
	case o.Container == nil:
		return startCommand(o, j)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	started := make(chan struct{})
	var heeding sync.WaitGroup
	heeding.Go(func() { s.heed(j, started, cancel) })
	p, err := startContained(ctx, o)
	close(started)
	heeding.Wait()
	return p, err
}

// heed cancels a slow start once the journal has an order to stop. The watch reads the journal again.
func (s *supervisor) heed(j journal, started <-chan struct{}, callOff context.CancelCauseFunc) {
	for {
		h, err := j.read()
		if err != nil {
			j.logf("%v", err)
		}
		if len(h.stops) > 0 {
			callOff(h.stops[0].why())
			return
		}
		select {
		case <-s.pokes:
		case <-started:
			return
		}
	}
}

// notStarted returns the exit of a command that could not be started. That is the command's own fault, unless it was
// told to end, or the container runtime or the instance failed: then it may succeed on another instance.
func notStarted(err error) drover.Exit {
	e := noStart(startCode(err), err)
	switch {
	case errors.Is(err, errStopped):
		return neverBegun(err)
	case e.Code == runtimeFailed, instanceFails(err):
		e.Cause = drover.CauseLost
	}
	return e
}

// noStart returns the exit of a command that could not be started.
func noStart(code int, err error) drover.Exit {
	now := drover.TimeOf(time.Now())
	return drover.Exit{Code: code, Cause: drover.CauseNoStart, Text: limit(err.Error()), Started: now, Ended: now}
}

// limit cuts a text for people to a length that easily fits in a message.
func limit(text string) string {
	const most = 1024
	if len(text) > most {
		return validTail([]byte(text[:most-3]), false) + "..."
	}
	return text
}
