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

// Conn is a connection to an instance's runner. Its methods are safe for concurrent use. Those that wait for the
// runner's word need Run to be running.
type Conn struct {
	session *session
	times   Timeouts
	control *process
	lines   *wire.Conn
	hello   wire.Hello
	pongs   chan struct{} // has an element after an answer to a ping

	probeFailed string // what the boot probe's failure was, if it failed

	handling atomic.Bool // a message is being handed on, and what follows it is not read

	transfers, apis *pool

	closing sync.Once
	closed  chan struct{}
	why     error // set before closed is closed

	mu      sync.Mutex
	heard   time.Time                                // guarded by mu
	waiting map[drover.AttemptID]chan<- wire.Message // Starts not yet answered; guarded by mu
	uploads map[string]*upload                       // blobs under way, by hash; guarded by mu
}

// Handler is told what the runner says on its own. Its methods must return soon: the stream waits for them.
type Handler interface {
	// Exited may come before the Start of the same attempt has returned, and more than once. Its words are harmless for
	// people's eyes.
	Exited(wire.Exited)
	// API says that a job wants to speak with the API: see OpenAPI.
	API(wire.API)
	// Log brings a line of the runner's own log, made harmless for people's eyes.
	Log(line string)
	// Notice says that the cloud will take the instance back; one without a cause, that it has thought better of it.
	Notice(drover.Notice)
	// Ailing says what is wrong with the instance; without a text, that it is well again.
	Ailing(text string)
}

// How many bulk channels of each kind there may be. With the control stream they stay below the ten that OpenSSH allows
// by default. Those that may last keep off those that are needed to get on.
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
	c.transfers = newPool(maxTransfers, c)
	c.apis = newPool(maxAPIs, c)
	return c
}

// Hello is what the runner said when the stream began.
func (c *Conn) Hello() wire.Hello { return c.hello }

// ProbeFailed says how the boot probe failed; empty if it passed or was not asked for. There is a Conn all the same
// while the runner has attempts: it is to finish them, and to get no others.
func (c *Conn) ProbeFailed() string { return c.probeFailed }

// LastLines are the last lines of the runner's own log when the stream began, made harmless for people's eyes.
func (c *Conn) LastLines() []string {
	var lines []string
	for _, line := range c.hello.Log[max(0, len(c.hello.Log)-wire.LogLines):] {
		lines = append(lines, printable(line))
	}
	return lines
}

// Fingerprint is that of the host key that was proved.
func (c *Conn) Fingerprint() string { return c.session.fingerprint() }

// Heard is when the runner last said something on the control stream.
func (c *Conn) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Close ends the connection. What runs on the instance goes on.
func (c *Conn) Close() error {
	c.close(net.ErrClosed)
	return nil
}

// close ends the connection for a reason, unless it has ended. It waits for nobody.
func (c *Conn) close(why error) {
	c.closing.Do(func() {
		c.why = why
		close(c.closed)
		// Whatever is lost by closing is told by why.
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

// read hands on what the runner says until the stream ends.
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

// lost says why the control stream has ended with err.
func (c *Conn) lost(err error) error {
	if refusal := c.session.refusal.Load(); refusal != nil {
		return refusal
	}
	if !errors.Is(err, io.EOF) {
		return drover.Errorf(drover.KindUnreachable, "reading the control stream: %v", err)
	}
	// The end of the output comes with the channel's end, or is followed by it at once; a hostile instance must not
	// make us wait.
	select {
	case <-c.control.ended:
		return drover.Errorf(drover.KindUnreachable, "the control stream ended: %s%s", c.control.end(), after(": ", c.control.stderr.lastLines()))
	case <-c.closed:
	case <-time.After(time.Second):
	}
	return drover.Errorf(drover.KindUnreachable, "the control stream ended")
}

// send sends one message. One that cannot be sent in time means that the connection is stuck, and closes it.
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

// broken makes err, met while using the connection, transient: what was asked for may or may not have come to pass.
func (c *Conn) broken(err error) error {
	select {
	case <-c.closed:
		err = c.why
	default:
	}
	return transient("the connection to the instance broke", err)
}

// transient makes any error one that leaves open what came of it.
func transient(doing string, err error) error {
	return drover.Errorf(drover.KindTransient, "%s: %v", doing, err)
}

// Stop asks for an attempt's end; its Exited follows.
func (c *Conn) Stop(id drover.AttemptID, grace time.Duration) error {
	return c.send(wire.Message{Stop: &wire.Stop{ID: id, Grace: grace}})
}

// Forget lets the runner delete what it has of an ended attempt, unless that is of the records with the nonce not,
// which may be empty.
func (c *Conn) Forget(id drover.AttemptID, not string) error {
	return c.send(wire.Message{Forget: &wire.Forget{ID: id, Not: not}})
}
