package benchfleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// The words by which a controller's scripts report whether the runner is present.
const (
	presentWord = "drover-runner-present"
	absentWord  = "drover-runner-absent"
)

// runner is what runs on an instance: it accepts the deployment of a runner, and plays that runner.
type runner struct {
	name  string
	room  drover.MilliCPU
	tally *tally

	mu       sync.Mutex
	deployed map[string]bool           // hashes of deployed runners; guarded by mu
	attempts map[drover.AttemptID]*run // not yet forgotten; guarded by mu
	control  *wire.Conn                // the latest control stream; guarded by mu
	closed   bool                      // guarded by mu
}

// run is one attempt.
type run struct {
	limits drover.Resources
	proof  string
	began  drover.Time
	exit   *drover.Exit // once it has ended
	timer  *time.Timer
}

func newRunner(name string, vcpus int, t *tally) *runner {
	return &runner{
		name: name, room: drover.MilliCPU(vcpus) * 1000, tally: t, deployed: map[string]bool{}, attempts: map[drover.AttemptID]*run{},
	}
}

// execute carries out a command and returns its exit code. Anything that is not a controller's script is a boot probe,
// which passes.
func (r *runner) execute(command string, channel ssh.Channel) uint32 {
	s, ok := readScript(command)
	switch {
	case !ok || len(s.args) == 0:
	case s.runs(` control --dir`):
		if r.present(s.arg(3), channel) {
			r.serveControl(wire.NewConn(channel, channel))
		}
	case s.runs(` bulk --dir`):
		fmt.Fprintln(channel, presentWord)
		serveBulk(wire.NewConn(channel, channel), channel)
	case s.runs(`cat >"$new"`):
		return r.deploy(s.arg(3), channel)
	default:
		r.present(s.arg(3), channel)
	}
	return 0
}

// present reports whether a runner with this hash was deployed.
func (r *runner) present(hash string, w io.Writer) bool {
	r.mu.Lock()
	there := r.deployed[hash]
	r.mu.Unlock()
	word := absentWord
	if there {
		word = presentWord
	}
	_, err := fmt.Fprintln(w, word)
	return there && err == nil
}

// deploy receives a runner and checks its hash.
func (r *runner) deploy(hash string, content io.Reader) uint32 {
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil || hex.EncodeToString(sum.Sum(nil)) != hash {
		return 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deployed[hash] = true
	return 0
}

// serveControl serves a control stream until it ends.
func (r *runner) serveControl(lines *wire.Conn) {
	var m wire.Message
	if lines.Read(&m) != nil || m.Hello == nil || lines.Write(r.hello(*m.Hello, lines)) != nil {
		return
	}
	for {
		var m wire.Message
		if lines.Read(&m) != nil {
			return
		}
		r.handle(m)
	}
}

// hello makes a stream the current one, and returns the first message, with all attempts.
func (r *runner) hello(theirs wire.Hello, lines *wire.Conn) wire.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.control = lines
	ours := wire.Hello{Version: wire.Version, Epoch: theirs.Epoch, Fleet: theirs.Fleet, Instance: r.name}
	for id, a := range r.attempts {
		ours.Attempts = append(ours.Attempts, wire.Attempt{ID: id, Exit: a.exit, Proof: a.proof})
	}
	return wire.Message{Hello: &ours}
}

func (r *runner) handle(m wire.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Start != nil:
		r.startLocked(*m.Start)
	case m.Stop != nil:
		r.exitLocked(m.Stop.ID, drover.Exit{Code: 143, Signal: "terminated", Cause: drover.CauseStopped})
	case m.Forget != nil:
		delete(r.attempts, m.Forget.ID)
	case m.Ping != nil:
		r.sayLocked(wire.Message{Pong: m.Ping})
	}
}

// startLocked starts an attempt, or repeats the report of one that was started.
func (r *runner) startLocked(s wire.Start) {
	a := r.attempts[s.ID]
	known := a != nil
	if !known {
		a = &run{limits: s.Limits, proof: s.Proof, began: drover.TimeOf(time.Now())}
		r.attempts[s.ID] = a
		r.tally.started(s.ID, r.overfullLocked())
	}
	r.sayLocked(wire.Message{Started: &wire.Started{ID: s.ID}})
	switch {
	case a.exit != nil:
		r.sayLocked(wire.Message{Exited: &wire.Exited{ID: s.ID, Exit: *a.exit, Proof: a.proof}})
	case known:
	case r.tally.work == 0:
		r.exitLocked(s.ID, drover.Exit{})
	default:
		a.timer = time.AfterFunc(r.tally.work, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.exitLocked(s.ID, drover.Exit{})
		})
	}
}

// overfullLocked reports whether the attempts here exceed the room.
func (r *runner) overfullLocked() bool {
	var used drover.MilliCPU
	for _, a := range r.attempts {
		if a.exit == nil {
			used += a.limits.CPU
		}
	}
	return used > r.room
}

func (r *runner) exitLocked(id drover.AttemptID, exit drover.Exit) {
	a := r.attempts[id]
	if a == nil || a.exit != nil || r.closed {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	exit.Started, exit.Ended = a.began, drover.TimeOf(time.Now())
	a.exit = &exit
	r.tally.ended(a.limits.CPU, exit.Ended.Sub(exit.Started))
	r.sayLocked(wire.Message{Exited: &wire.Exited{ID: id, Exit: exit, Proof: a.proof}})
}

// sayLocked sends a message to the controller. A disconnected controller gets the report when it is back.
func (r *runner) sayLocked(m wire.Message) { _ = r.control.Write(m) }

// close stops all attempts without a report.
func (r *runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, a := range r.attempts {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
}

// serveBulk answers on a bulk channel: no attempt here writes output or leaves files.
func serveBulk(lines *wire.Conn, raw io.Writer) {
	for {
		var r wire.Request
		if lines.Read(&r) != nil {
			return
		}
		var err error
		switch r.Op {
		case wire.GetLog:
			err = lines.Write(wire.Reply{})
		case wire.GetOutputs:
			if err = lines.Write(wire.Reply{}); err == nil {
				err = wire.ChunkWriter{W: raw}.Close()
			}
			if err == nil {
				err = lines.Write(wire.Reply{})
			}
		default:
			err = lines.Write(wire.Reply{Error: "the benchmark's runner does not support this"})
		}
		if err != nil {
			return
		}
	}
}
