package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"drover"
	"drover/internal/wire"
)

// maxQueued is how many messages wait for a slow controller before it is disconnected. The answer to its next Hello has
// everything that it missed.
const maxQueued = 1024

// helloRoom is how much of a Hello the attempts may fill. If space is short, their exits are sent without output, which
// GetLog returns.
const helloRoom = wire.MaxLine - 64<<10

// session is a control stream of an accepted controller.
type session struct {
	conn  net.Conn
	queue chan wire.Message
	done  chan struct{}
}

// send queues a message. It never waits.
func (s *session) send(m wire.Message) {
	select {
	case s.queue <- m:
	default:
		s.conn.Close()
	}
}

// write sends what is queued until the session is done.
func (s *session) write(lines *wire.Conn) {
	for {
		select {
		case m := <-s.queue:
			if lines.Write(m) != nil {
				s.conn.Close()
				return
			}
		case <-s.done:
			return
		}
	}
}

// serveControl serves a control stream from its Hello to its end.
func (d *daemon) serveControl(conn net.Conn, lines *wire.Conn) {
	var m wire.Message
	if lines.Read(&m) != nil || m.Hello == nil || conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	s := &session{conn: conn, queue: make(chan wire.Message, maxQueued), done: make(chan struct{})}
	if err := d.admitController(s, *m.Hello); err != nil {
		d.log.Printf("rejecting a controller: %v", err)
		var always unfit
		// The channel closes whether or not the controller receives the reason.
		lines.Write(wire.Message{Hello: &wire.Hello{Version: wire.Version, Epoch: d.knownEpoch(), Fleet: d.identity.Fleet,
			Instance: d.identity.Instance, Error: err.Error(), Unfit: errors.As(err, &always)}})
		return
	}
	defer d.closeSession(s)
	go s.write(lines)
	for {
		var m wire.Message
		if err := lines.Read(&m); err != nil {
			return
		}
		if !d.handle(s, m) {
			return
		}
	}
}

// unfit is why the instance can never serve the controller.
type unfit struct{ error }

// admitController makes s the control stream if its Hello is acceptable, and answers it. It disconnects the previous
// one.
func (d *daemon) admitController(s *session, h wire.Hello) error {
	if h.Version != wire.Version {
		return fmt.Errorf("this runner speaks version %d of the protocol, not %d", wire.Version, h.Version)
	}
	if who := (identity{h.Fleet, h.Instance}); who != d.identity {
		return fmt.Errorf("this is instance %q of fleet %q, not %q of %q", d.identity.Instance, d.identity.Fleet, h.Instance, h.Fleet)
	}
	if h.Apart {
		if err := d.keepsApart(); err != nil {
			return unfit{fmt.Errorf("users' jobs cannot be isolated here: %w", err)}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.Epoch < d.epoch {
		return fmt.Errorf("epoch %d is over: a controller with epoch %d has connected", h.Epoch, d.epoch)
	}
	if h.Epoch > d.epoch {
		if err := writeEpoch(h.Epoch); err != nil {
			return fmt.Errorf("storing the epoch: %w", err)
		}
		d.epoch = h.Epoch
	}
	if d.session != nil {
		d.session.conn.Close()
	}
	d.session = s
	s.send(wire.Message{Hello: d.helloLocked()})
	d.hearLocked()
	d.hearer.Store(s)
	for _, conn := range d.api.waitingConns() {
		s.send(wire.Message{API: &wire.API{Conn: conn}})
	}
	return nil
}

// helloLocked returns the answer to a controller's Hello.
func (d *daemon) helloLocked() *wire.Hello {
	h := &wire.Hello{Version: wire.Version, Epoch: d.epoch, Fleet: d.identity.Fleet, Instance: d.identity.Instance,
		Attempts: d.listLocked(), Log: lastLines(logFile), Heard: d.watchdog.heard}
	if d.interruption != nil {
		h.Notice = &wire.Notice{Notice: d.interruption.Notice}
	}
	if d.health.ailing != "" {
		h.Ailing = &wire.Ailing{Text: d.health.ailing}
	}
	return h
}

func (d *daemon) knownEpoch() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.epoch
}

func (d *daemon) closeSession(s *session) {
	close(s.done)
	d.hearer.CompareAndSwap(s, nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session == s {
		d.session = nil
	}
}

// listLocked returns all attempts, cut to what fits in a Hello.
func (d *daemon) listLocked() []wire.Attempt {
	room := helloRoom / max(1, len(d.attempts))
	list := make([]wire.Attempt, 0, len(d.attempts))
	for id, a := range d.attempts {
		list = append(list, wire.Attempt{ID: id, Exit: fitExit(a.exit, room), Proof: a.proof})
	}
	return list
}

// fitExit drops the output, and if need be the text, from an exit that would take more than room bytes of JSON.
func fitExit(e *drover.Exit, room int) *drover.Exit {
	if e == nil || fits(*e, room) {
		return e
	}
	short := *e
	short.Stdout, short.Stderr = "", ""
	if !fits(short, room) {
		short.Text = ""
	}
	return &short
}

// fits reports whether the exit, with what surrounds it in a Hello, takes at most room bytes of JSON.
func fits(e drover.Exit, room int) bool {
	text, err := json.Marshal(e)
	return err == nil && len(text)+64 <= room
}

// sendLocked sends m to the controller, if one is connected.
func (d *daemon) sendLocked(m wire.Message) {
	if d.session != nil {
		d.session.send(m)
	}
}

// announce offers a job's connection to the controller.
func (d *daemon) announce(conn int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sendLocked(wire.Message{API: &wire.API{Conn: conn}})
}

// handle carries out a message. It returns false if the session is no longer the control stream: a message in transit
// when another controller took over has no effect. It also returns false for a Start that names no attempt, since that
// could not be answered.
func (d *daemon) handle(s *session, m wire.Message) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session != s || m.Start != nil && m.Start.ID == (drover.AttemptID{}) {
		return false
	}
	d.hearLocked()
	switch {
	case m.Start != nil:
		d.startLocked(*m.Start)
	case m.Stop != nil:
		d.stopLocked(*m.Stop)
	case m.Forget != nil:
		if a := d.attempts[m.Forget.ID]; a != nil && (m.Forget.Not == "" || a.store != m.Forget.Not) {
			d.forgetLocked(m.Forget.ID)
		}
	case m.Orders != nil:
		d.takeLocked(*m.Orders)
	case m.Ping != nil:
		s.send(wire.Message{Pong: m.Ping})
	}
	return true
}
