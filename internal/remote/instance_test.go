package remote

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"drover"
	"drover/internal/deadman"
	"drover/internal/runner"
)

// TestMain lets the test binary act as the runner that a test deploys, and as all the runner's processes.
func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "drover-runner") {
		os.Exit(runner.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) == 2 && os.Args[1] == crowdCommand {
		os.Exit(beCrowd())
	}
	os.Exit(m.Run())
}

// testKey returns the fleet key of every test.
func testKey() FleetKey { return FleetKey{drover.NewSecret(strings.Repeat("k", fleetKeySize))} }

// fakeInstance is an SSH server in this process. exec runs its commands.
type fakeInstance struct {
	config ssh.ServerConfig
	exec   func(command string, ch ssh.Channel) (exit int)
	over   chan struct{} // closed at the end of the test, for what hangs until then
	room   int           // channels at once; 0: any number

	mu     sync.Mutex
	open   int // channels; guarded, like the rest, by mu
	logins int // attempts to log in with a key
	execs  []string
}

func newFakeInstance(t testing.TB, name string) *fakeInstance {
	t.Helper()
	i := &fakeInstance{over: make(chan struct{})}
	t.Cleanup(func() { close(i.over) })
	host, err := testKey().HostKey(name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(host.Private.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	i.config.AddHostKey(signer)
	allowed := testKey().LoginKey().PublicKey().Marshal()
	i.config.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.logins++
		if !bytes.Equal(key.Marshal(), allowed) {
			return nil, io.EOF
		}
		return nil, nil
	}
	return i
}

// commands returns the commands that were run so far.
func (i *fakeInstance) commands() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.execs...)
}

func (i *fakeInstance) serve(raw net.Conn) {
	defer raw.Close()
	_, channels, requests, err := ssh.NewServerConn(raw, &i.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for open := range channels {
		if !i.admit() {
			open.Reject(ssh.ConnectionFailed, "open failed")
			continue
		}
		ch, reqs, err := open.Accept()
		if err != nil {
			return
		}
		go i.serveChannel(ch, reqs)
	}
}

func (i *fakeInstance) admit() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.room > 0 && i.open == i.room {
		return false
	}
	i.open++
	return true
}

// channels returns how many channels are open.
func (i *fakeInstance) channels() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open
}

func (i *fakeInstance) serveChannel(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.open--
	}()
	for r := range requests {
		if r.Type != "exec" {
			r.Reply(false, nil)
			continue
		}
		r.Reply(true, nil)
		var command struct{ Text string }
		ssh.Unmarshal(r.Payload, &command)
		i.mu.Lock()
		i.execs = append(i.execs, command.Text)
		i.mu.Unlock()
		go func() {
			code := i.exec(command.Text, ch)
			ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
			ch.Close()
		}()
	}
}

// dial connects to the instance over a pipe in memory.
func (i *fakeInstance) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := bufferedPipe()
	go i.serve(theirs)
	return ours, nil
}

// realShell returns an exec that runs commands under a real shell in the given home, which prints a greeting at login.
func realShell(home string) func(string, ssh.Channel) int {
	return func(command string, ch ssh.Channel) int {
		cmd := exec.Command("/bin/sh", "-c", "echo Welcome; printf 'to this host '; "+command)
		cmd.Dir, cmd.Stdout, cmd.Stderr = home, ch, ch.Stderr()
		cmd.Env = append(os.Environ(), deadman.PowerOffVariable+"=/bin/false") // so that nothing powers off this host
		in, err := cmd.StdinPipe()
		if err != nil || cmd.Start() != nil {
			return 126
		}
		go func() {
			io.Copy(in, ch)
			in.Close()
		}()
		if cmd.Wait() != nil && cmd.ProcessState == nil {
			return 126
		}
		return cmd.ProcessState.ExitCode()
	}
}

// runnerOf returns a Runner with the given content.
func runnerOf(content []byte) Runner {
	r, err := NewRunner(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		panic(err) // it is in memory
	}
	return r
}

// target returns the Target of a fake instance.
func target(i *fakeInstance, name string) Target {
	return Target{
		Address: "instance.test:22",
		User:    "admin",
		Signers: []ssh.Signer{testKey().LoginKey()},
		Dial:    i.dial,
		VerifyHostKey: func(_ context.Context, key ssh.PublicKey, _ []byte) error {
			if want, err := testKey().HostKey(name); err != nil || !bytes.Equal(want.Public, key.Marshal()) {
				return drover.Errorf(drover.KindHostKey, "it was %s", want.Fingerprint)
			}
			return nil
		},
		Fleet:    "test",
		Instance: name,
		Epoch:    1,
		Runner:   runnerOf([]byte("#!/bin/sh\nexit 9\n")),
		LoggedIn: func() {},
		Probed:   func(bool) {},
	}
}

// bufferedPipe returns a network connection in memory that buffers writes, as SSH needs.
func bufferedPipe() (net.Conn, net.Conn) {
	a, b := newStream(), newStream()
	return pipeEnd{a, b}, pipeEnd{b, a}
}

type stream struct {
	mu     sync.Mutex
	more   *sync.Cond
	text   []byte
	closed bool
}

func newStream() *stream {
	s := &stream{}
	s.more = sync.NewCond(&s.mu)
	return s
}

type pipeEnd struct{ in, out *stream }

// pipeSize is how many unread bytes a pipe buffers, about as many as a network does.
const pipeSize = 64 << 10

func (p pipeEnd) Read(b []byte) (int, error) {
	s := p.in
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.text) == 0 && !s.closed {
		s.more.Wait()
	}
	if len(s.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.text)
	s.text = s.text[n:]
	s.more.Broadcast()
	return n, nil
}

func (p pipeEnd) Write(b []byte) (n int, err error) {
	s := p.out
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(b) {
		for len(s.text) >= pipeSize && !s.closed {
			s.more.Wait()
		}
		if s.closed {
			return n, net.ErrClosed
		}
		part := b[n:min(len(b), n+pipeSize-len(s.text))]
		s.text = append(s.text, part...)
		n += len(part)
		s.more.Broadcast()
	}
	return n, nil
}

func (p pipeEnd) Close() error {
	for _, s := range []*stream{p.in, p.out} {
		s.mu.Lock()
		s.closed = true
		s.more.Broadcast()
		s.mu.Unlock()
	}
	return nil
}

func (pipeEnd) LocalAddr() net.Addr              { return pipeAddr{} }
func (pipeEnd) RemoteAddr() net.Addr             { return pipeAddr{} }
func (pipeEnd) SetDeadline(time.Time) error      { return nil }
func (pipeEnd) SetReadDeadline(time.Time) error  { return nil }
func (pipeEnd) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
