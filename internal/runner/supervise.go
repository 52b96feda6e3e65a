package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"drover"
	"drover/internal/wire"
)

// order is what the daemon gives a supervisor to do. It travels over a socket pair, so that secrets in it are neither in an argument
// list nor in a file.
type order struct {
	Folder  folder            `json:"folder"` // absolute
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	Timeout time.Duration     `json:"timeout"`
	Grace   time.Duration     `json:"grace"`
}

// report is what a supervisor says of its order: Started at most once, then Exit.
type report struct {
	Started bool         `json:"started,omitempty"`
	Exit    *drover.Exit `json:"exit,omitempty"`
}

// supervisor carries out orders, one after the other.
type supervisor struct {
	boot   string
	daemon *wire.Conn
}

// supervise is the supervisor's process: it takes orders from descriptor 3 until the daemon is gone.
func supervise() error {
	// The signals that end a session or a VM are the command's to obey; the supervisor ends when it has nothing left to do.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	unix.CloseOnExec(3)
	if err := unix.SetNonblock(3, true); err != nil {
		return fmt.Errorf("taking the daemon's socket: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	socket := os.NewFile(3, "daemon")
	s := &supervisor{boot: boot, daemon: wire.NewConn(socket, socket)}
	for {
		var o order
		if err := s.daemon.Read(&o); err != nil {
			return endOfOrders(err)
		}
		if err := s.carryOut(o); err != nil {
			return err
		}
	}
}

func endOfOrders(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// carryOut runs one attempt to its end and reports it. A daemon that is gone is no error: the next one reads the folder.
func (s *supervisor) carryOut(o order) error {
	lock, err := o.Folder.begin(s.boot)
	if err != nil {
		return fmt.Errorf("beginning %s: %w", o.Folder, err)
	}
	defer lock.Close()
	file, err := os.OpenFile(o.Folder.path("supervisor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	logger := log.New(file, "", log.LstdFlags|log.LUTC|log.Lmicroseconds)

	e := s.run(o, logger)
	if err := o.Folder.addOutput(&e); err != nil {
		logger.Printf("reading the output: %v", err)
	}
	if err := o.Folder.finish(s.boot, e); err != nil {
		logger.Printf("writing the result: %v", err)
	}
	return s.tell(report{Exit: &e})
}

// tell reports to the daemon, if there still is one.
func (s *supervisor) tell(r report) error {
	err := s.daemon.Write(r)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// run starts the command and stays with it until nothing of it is left.
func (s *supervisor) run(o order, logger *log.Logger) drover.Exit {
	stops, err := listenForStops(o.Folder)
	if err != nil {
		return noStart(126, err)
	}
	defer stops.Close()
	began := time.Now()
	c, err := startCommand(o)
	if err != nil {
		logger.Printf("starting the command: %v", err)
		return noStart(startCode(err), err)
	}
	if err := s.tell(report{Started: true}); err != nil {
		logger.Printf("telling the daemon: %v", err)
	}
	w := watch{command: c, order: o, log: logger, stops: stops.grace}
	w.untilEnded()
	return w.exit(began)
}

// noStart is the exit of a command that could not be started.
func noStart(code int, err error) drover.Exit {
	now := drover.TimeOf(time.Now())
	return drover.Exit{Code: code, Cause: drover.CauseNoStart, Text: limit(err.Error()), Started: now, Ended: now}
}

// limit cuts a text for people to what fits a message comfortably.
func limit(text string) string {
	const most = 1024
	if len(text) > most {
		return validTail([]byte(text[:most-3]), false) + "..."
	}
	return text
}

// stopPipe is the reading end of an attempt's stop pipe.
type stopPipe struct {
	file  *os.File
	grace chan time.Duration
	done  chan struct{}
}

// listenForStops opens the pipe for writing too, so that it does not end when a daemon closes it.
func listenForStops(f folder) (*stopPipe, error) {
	file, err := os.OpenFile(f.path("stop"), os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	p := &stopPipe{file: file, grace: make(chan time.Duration), done: make(chan struct{})}
	go p.read()
	return p, nil
}

func (p *stopPipe) read() {
	for lines := json.NewDecoder(p.file); ; {
		var o stopOrder
		if lines.Decode(&o) != nil {
			return
		}
		select {
		case p.grace <- o.Grace:
		case <-p.done:
			return
		}
	}
}

func (p *stopPipe) Close() {
	close(p.done)
	p.file.Close()
}
