package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/wire"
)

// Connect takes all the steps to a Conn, once. Its errors are of these kinds: KindHostKey if the host key is not the
// instance's, KindAuthentication if the instance rejects our login, KindUnsupported if it is incompatible, KindConflict
// if its runner refuses us, KindUnreachable for the network, and KindTransient otherwise, for example for a failed boot
// probe. If the boot probe fails while the runner has attempts, Connect succeeds: see [Conn.ProbeFailed].
func Connect(ctx context.Context, t Target) (*Conn, error) {
	return visit(ctx, t, func(s *session) (*Conn, error) {
		s.target.LoggedIn()
		if s.target.BootProbe != "" {
			return s.probed()
		}
		return s.control()
	})
}

// visit dials, logs in and verifies the host key. Then it takes the steps, and ends the connection if they fail.
func visit[T any](ctx context.Context, t Target, steps func(*session) (T, error)) (result T, err error) {
	t = t.withDefaults()
	raw, err := t.dial(ctx)
	if err != nil {
		return result, err
	}
	d := newDeadlines(ctx, raw, step{"SSH handshake", drover.KindUnreachable, t.Timeouts.Handshake})
	s, err := t.login(ctx, raw, d)
	if err == nil {
		err = s.prove()
	}
	var reached T
	if err == nil {
		reached, err = steps(s)
	}
	if late := d.end(); err == nil {
		err = late
	}
	if err != nil {
		raw.Close()
		return result, err
	}
	return reached, nil
}

func (t Target) dial(ctx context.Context) (net.Conn, error) {
	dial := step{"connecting to " + t.Address, drover.KindUnreachable, t.Timeouts.Dial}
	ctx, cancel := context.WithTimeoutCause(ctx, dial.limit, fmt.Errorf("no answer within %v", dial.limit))
	defer cancel()
	raw, err := t.Dial(ctx, "tcp", t.Address)
	switch {
	case err == nil:
		return raw, nil
	case ctx.Err() != nil:
		return nil, dial.fail(context.Cause(ctx))
	default:
		return nil, dial.fail(err)
	}
}

// probed opens the control stream of an instance that must pass its boot probe. An instance that fails it may still run
// earlier attempts, or have their results. So its runner is updated and contacted anyway; probed returns the
// failure only if that does not work or the runner has no attempts.
func (s *session) probed() (*Conn, error) {
	if err := s.deploy(); err != nil {
		return nil, err
	}
	failure := s.bootProbe()
	s.target.Probed(failure == nil)
	c, err := s.control()
	if failure == nil {
		return c, err
	}
	if err != nil || len(c.hello.Attempts) == 0 {
		return nil, failure
	}
	c.probeFailed = failure.Error()
	return c, nil
}

// begin begins a step on the instance itself, whose errors are transient.
func (s *session) begin(doing string, limit time.Duration) {
	s.deadlines.begin(step{doing, drover.KindTransient, limit})
}

// prove verifies the host key, if that is still to be done. A third party cannot relay our login, so what we read over
// the connection comes from the instance itself.
func (s *session) prove() error {
	if s.first != nil {
		if err := s.proveByOutput(); err != nil {
			return err
		}
	}
	if !s.unproved {
		return nil
	}
	return s.proveBySecret()
}

// proveByOutput runs the command on the instance and calls VerifyHostKey again, with the command's output.
func (s *session) proveByOutput() error {
	shown, err := s.show("running the command that verifies the host key", "the command that verifies host key %s failed: %s", shell(outputScript, s.first.Command))
	if err != nil {
		return err
	}
	if refusal := s.judge(s.key, s.verify(s.key, append([]byte{}, shown...))); refusal != nil {
		return refusal
	}
	return nil
}

// proveBySecret reads the planted secret back. Until its init command has run, an instance does not have it.
func (s *session) proveBySecret() error {
	shown, err := s.show("reading back the installed secret", "the secret that verifies host key %s is not installed yet: %s", shell(readScript, s.target.Proof.Path, s.target.Proof.Variable))
	if err != nil {
		return err
	}
	planted := []byte(s.target.Proof.Secret.Reveal())
	if len(planted) == 0 || subtle.ConstantTimeCompare(bytes.TrimSpace(shown), planted) == 0 {
		return drover.Errorf(drover.KindHostKey, "host key %s is not verified: the installed secret is a different one", s.fingerprint())
	}
	return nil
}

// show runs a command and returns what it printed. failed is the error's text if the command fails.
func (s *session) show(doing, failed, command string) ([]byte, error) {
	s.begin(doing, s.target.Timeouts.Command)
	p, out, err := run(s.conn, command, nil)
	if err != nil && (p == nil || p.vanished()) {
		return nil, s.deadlines.fail(err)
	}
	if err != nil {
		return nil, drover.Errorf(drover.KindTransient, failed, s.fingerprint(), p.stderr.lastLines())
	}
	_, shown, _ := bytes.Cut(out.bytes(), []byte(presentWord+"\n"))
	return shown, nil
}

func (s *session) fingerprint() string { return ssh.FingerprintSHA256(s.key) }

// control opens the control stream. It deploys the runner first if it is missing.
func (s *session) control() (*Conn, error) {
	c, err := s.tryControl()
	if !errors.Is(err, errAbsent) {
		return c, err
	}
	if err := s.upload(); err != nil {
		return nil, err
	}
	if c, err = s.tryControl(); errors.Is(err, errAbsent) {
		return nil, s.deadlines.fail(errors.New("it was deployed but is missing"))
	}
	return c, err
}

var errAbsent = errors.New("the runner is missing")

// tryControl starts the runner and sends Hello at once, which saves a round trip. It returns errAbsent if the runner is
// missing.
func (s *session) tryControl() (*Conn, error) {
	s.begin("starting the runner", s.target.Timeouts.Hello)
	p, err := launch(s.ctx, s.conn, s.target.runnerShell(controlScript, append(s.target.place(), s.target.Fleet, s.target.Instance, strconv.FormatBool(s.compared))...))
	if err != nil {
		return nil, s.deadlines.fail(err)
	}
	in := bufio.NewReaderSize(p, 4096) // large enough for wire.NewConn to use this buffer itself
	lines := wire.NewConn(in, p)
	ours := wire.Hello{Version: wire.Version, Epoch: s.target.Epoch, Fleet: s.target.Fleet, Instance: s.target.Instance, Apart: s.target.Apart}
	// If it cannot be sent, the read below shows why.
	sent := lines.Write(wire.Message{Hello: &ours})
	present, err := readVerdict(in)
	if err == nil && !present {
		p.Close()
		return nil, errAbsent
	}
	if err != nil {
		return nil, s.deadlines.fail(p.broken(errors.Join(err, sent)))
	}
	theirs, err := readHello(lines)
	if err != nil {
		return nil, s.deadlines.fail(p.broken(err))
	}
	if err := judgeHello(ours, theirs); err != nil {
		return nil, err
	}
	return newConn(s, p, lines, theirs), nil
}

// broken returns why reading from the command failed with err: if the output ended, how the command ended.
func (p *process) broken(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if ended := p.wait(); ended != nil {
		return ended
	}
	return err
}

func readHello(lines *wire.Conn) (wire.Hello, error) {
	var m wire.Message
	if err := lines.Read(&m); err != nil {
		return wire.Hello{}, err
	}
	if m.Hello == nil {
		return wire.Hello{}, errors.New("the runner's first message is not a Hello")
	}
	// An entry without an attempt id can be neither trusted nor recorded.
	m.Hello.Attempts = slices.DeleteFunc(m.Hello.Attempts, func(a wire.Attempt) bool { return a.ID == (drover.AttemptID{}) })
	for _, a := range m.Hello.Attempts {
		if a.Exit != nil {
			*a.Exit = harmlessExit(*a.Exit)
		}
	}
	return *m.Hello, nil
}

// judgeHello returns why the runner cannot serve this controller; nil if it can.
func judgeHello(ours, theirs wire.Hello) error {
	switch {
	case theirs.Version != wire.Version:
		return drover.Errorf(drover.KindUnsupported, "the runner speaks version %d of the protocol, not %d", theirs.Version, wire.Version)
	case theirs.Unfit:
		return drover.Errorf(drover.KindUnsupported, "the runner rejects the connection: %s", cmp.Or(printable(theirs.Error), "it gave no reason"))
	case theirs.Error != "":
		return drover.Errorf(drover.KindConflict, "the runner refuses this controller: %s", cmp.Or(printable(theirs.Error), "it gave no reason"))
	case theirs.Fleet != ours.Fleet || theirs.Instance != ours.Instance:
		return drover.Errorf(drover.KindConflict, "the runner that answered belongs to instance %q of fleet %q",
			printable(theirs.Instance), printable(theirs.Fleet))
	}
	return nil
}
