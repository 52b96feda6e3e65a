package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"drover"
	"drover/internal/wire"
)

// Conn is a connection to an instance's runner. Its methods are safe for concurrent use. Those that wait for a message
// from the runner need Run to be running.
type Conn struct {
	session *session
	times   Timeouts
	control *process
	lines   *wire.Conn
	hello   wire.Hello
	pongs   chan struct{} // receives an element for each pong

	probeFailed string // how the boot probe failed; empty if it did not

	handling atomic.Bool // the Handler has a message, and the next is not read

	transfers, apis *pool

	closing sync.Once
	closed  chan struct{}
	why     error // set before closed is closed

	mu      sync.Mutex
	heard   time.Time                                // guarded by mu
	waiting map[drover.AttemptID]chan<- wire.Message // Starts not yet answered; guarded by mu
	uploads map[string]*upload                       // blobs that are being sent, by hash; guarded by mu
}

// Handler receives the messages that the runner sends unasked. Its methods must return soon: the stream waits for them.
type Handler interface {
	// Exited may be called before the Start of the same attempt has returned, and more than once. Its texts are safe to
	// show.
	Exited(wire.Exited)
	// API reports that a job has connected to the API: see OpenAPI.
	API(wire.API)
	// Log reports a line of the runner's own log, safe to show.
	Log(line string)
	// Notice reports that the cloud will reclaim the instance; without a cause, that the cloud has withdrawn its
	// notice.
	Notice(drover.Notice)
	// Ailing reports what is wrong with the instance; without a text, that it is healthy again.
	Ailing(text string)
}

// The most bulk channels of each kind. With the control stream they stay below the ten that OpenSSH allows by default.
// Jobs' connections to the API, which may last, have their own limit, so that they cannot block transfers.
const (
	maxTransfers = 4
	maxAPIs      = 2
)

func newConn(s *session, control *process, lines *wire.Conn, hello wire.Hello) *Conn {
	c := &Conn{
		session: s,
		times:   s.target.Timeouts,
		control: control,
		lines:   lines,
		hello:   hello,
		pongs:   make(chan struct{}, 1),
		closed:  make(chan struct{}),
		heard:   time.Now(),
		waiting: make(map[drover.AttemptID]chan<- wire.Message),
		uploads: make(map[string]*upload),
	}
	c.transfers = &pool{conn: c, slots: make(chan struct{}, maxTransfers)}
	c.apis = &pool{conn: c, slots: make(chan struct{}, maxAPIs)}
	return c
}

// Hello returns the runner's Hello.
func (c *Conn) Hello() wire.Hello { return c.hello }

// ProbeFailed returns how the boot probe failed; empty if it passed or was not requested. Connect returns a Conn
// despite a failed probe if the runner has attempts: it may finish them, but must get no others.
func (c *Conn) ProbeFailed() string { return c.probeFailed }

// LastLines returns the last lines of the runner's own log when the stream began, safe to show.
func (c *Conn) LastLines() []string {
	var lines []string
	for _, line := range c.hello.Log[max(0, len(c.hello.Log)-wire.LogLines):] {
		lines = append(lines, printable(line))
	}
	return lines
}

// Fingerprint returns the fingerprint of the verified host key.
func (c *Conn) Fingerprint() string { return c.session.fingerprint() }

// Heard returns when the runner last sent a message on the control stream.
func (c *Conn) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Close ends the connection. Attempts on the instance continue.
func (c *Conn) Close() error {
	c.close(net.ErrClosed)
	return nil
}

// close ends the connection with a reason, unless it has ended. It does not wait.
func (c *Conn) close(why error) {
	c.closing.Do(func() {
		c.why = why
		close(c.closed)
		// Errors that closing causes are reported as why.
		_ = c.session.raw.Close()
	})
}

// Run reads the control stream and probes the instance until either fails or ctx ends; then the connection is closed.
// It never returns nil.
func (c *Conn) Run(ctx context.Context, h Handler) error {
	unhook := context.AfterFunc(ctx, func() { c.close(context.Cause(ctx)) })
	defer unhook()
	var probing sync.WaitGroup
	probing.Go(c.probe)
	c.close(c.lost(c.read(h)))
	probing.Wait()
	return c.why
}

// read handles the runner's messages until the stream ends.
func (c *Conn) read(h Handler) error {
	for {
		var m wire.Message
		if err := c.lines.Read(&m); err != nil {
			return err
		}
		c.mu.Lock()
		c.heard = time.Now()
		c.mu.Unlock()
		c.handling.Store(true)
		c.handle(m, h)
		c.handling.Store(false)
	}
}

func (c *Conn) handle(m wire.Message, h Handler) {
	switch {
	case m.Exited != nil && m.Exited.ID != (drover.AttemptID{}):
		h.Exited(wire.Exited{ID: m.Exited.ID, Exit: harmlessExit(m.Exited.Exit), Proof: m.Exited.Proof})
	case m.API != nil:
		h.API(*m.API)
	case m.Log != nil:
		h.Log(printable(m.Log.Line))
	case m.Notice != nil:
		h.Notice(sanitizeNotice(*m.Notice))
	case m.Ailing != nil:
		h.Ailing(printable(m.Ailing.Text))
	case m.Started != nil:
		c.answer(m.Started.ID, m)
	case m.Missing != nil:
		c.answer(m.Missing.ID, m)
	case m.Refused != nil:
		c.answer(m.Refused.ID, m)
	case m.Pong != nil:
		select {
		case c.pongs <- struct{}{}:
		default:
		}
	}
}

// lost returns why the control stream has ended with err.
func (c *Conn) lost(err error) error {
	if refusal := c.session.refusal.Load(); refusal != nil {
		return refusal
	}
	if !errors.Is(err, io.EOF) {
		return drover.Errorf(drover.KindUnreachable, "reading the control stream: %v", err)
	}
	// The channel normally ends with the output or at once after it; a hostile instance must not make us wait.
	select {
	case <-c.control.ended:
		return drover.Errorf(drover.KindUnreachable, "the control stream ended: %s%s", c.control.end(), afterColon(c.control.stderr.lastLines()))
	case <-c.closed:
	case <-time.After(time.Second):
	}
	return drover.Errorf(drover.KindUnreachable, "the control stream ended")
}

// send sends one message. If that takes too long, the connection is stuck, and send closes it.
func (c *Conn) send(m wire.Message) error {
	stuck := time.AfterFunc(c.times.Probe, func() {
		c.close(drover.Errorf(drover.KindUnreachable, "a message to the instance could not be sent within %v", c.times.Probe))
	})
	defer stuck.Stop()
	if err := c.lines.Write(m); err != nil {
		return c.broken(err)
	}
	return nil
}

// broken makes an error in using the connection transient: the request may or may not have been carried out.
func (c *Conn) broken(err error) error {
	select {
	case <-c.closed:
		err = c.why
	default:
	}
	return transient("the connection to the instance broke", err)
}

// transient makes err one after which the outcome is unknown.
func transient(doing string, err error) error {
	return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
}

// Stop requests an attempt's end; its Exited follows.
func (c *Conn) Stop(id drover.AttemptID, grace time.Duration) error {
	return c.send(wire.Message{Stop: &wire.Stop{ID: id, Grace: grace}})
}

// Forget lets the runner delete an ended attempt, unless it belongs to the records with the nonce not, which may be
// empty.
func (c *Conn) Forget(id drover.AttemptID, not string) error {
	return c.send(wire.Message{Forget: &wire.Forget{ID: id, Not: not}})
}
