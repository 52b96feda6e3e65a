package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"drover/internal/backoff"
	"drover/internal/processes"
)

// The limits of the guest's SSH server. Everybody on this host can connect to it, so a client may do little before it
// logs in.
const (
	backlog    = 128
	maxConns   = 256
	loginTime  = 10 * time.Second // from the connection to the proof of the key
	maxEnvVars = 64
	maxEnvSize = 64 << 10
)

// guest is the inner process of an instance: it boots, then serves SSH until it or the outer process dies.
type guest struct {
	launch
	home   string
	reaper *processes.Reaper
	key    ssh.PublicKey
	conns  chan struct{} // one element per connection
}

func runGuest(folder string) error {
	lock, socket, alive := inherited(fdLock, "lock"), inherited(fdSocket, "ssh"), inherited(fdAlive, "alive")
	defer lock.Close()
	r, err := processes.NewReaper()
	if err != nil {
		return err
	}
	l, err := readLaunch()
	if err != nil {
		return err
	}
	os.Stdin.Close()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(l.PublicKey))
	if err != nil {
		return fmt.Errorf("read the public key: %w", err)
	}
	g := &guest{launch: l, home: filepath.Join(folder, homeFolder), reaper: r, key: key, conns: make(chan struct{}, maxConns)}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go r.Run(ctx)
	// If Drover was started with signals ignored (nohup, a shell's &), every command here would ignore them too, unless
	// they are caught.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT)
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(io.Discard, alive)
		ended <- err
	}()
	go func() { ended <- g.run(ctx, socket) }()
	return errors.Join(<-ended, r.EndTree())
}

// run boots and then serves SSH until the end.
func (g *guest) run(ctx context.Context, socket *os.File) error {
	// Init scripts run concurrently, and nothing waits for them, since they do not delay logins on other clouds either.
	for _, text := range g.Init {
		if err := g.init(text); err != nil {
			return err
		}
	}
	if g.NeverBoots {
		socket.Close()
		<-ctx.Done()
		return ctx.Err()
	}
	if err := backoff.For(ctx, g.BootDelay); err != nil {
		return err
	}
	if err := unix.Listen(int(socket.Fd()), backlog); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	listener, err := net.FileListener(socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	socket.Close()
	server, err := g.server()
	if err != nil {
		return err
	}
	return server.Serve(listener)
}

// init starts an init script. Its text may be secret, so it is in no argument list.
func (g *guest) init(text string) error {
	script, err := nameless(filepath.Dir(g.home), []byte(text))
	if err != nil {
		return fmt.Errorf("write the init command: %w", err)
	}
	defer script.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	_, _, err = g.reaper.Start("/bin/sh", []string{"sh", "/dev/fd/3"}, g.home, g.Environment, null, os.Stdout, os.Stderr, script)
	return err
}

func (g *guest) server() (*ssh.Server, error) {
	signer, err := gossh.ParsePrivateKey([]byte(g.HostKey))
	if err != nil {
		return nil, fmt.Errorf("read the host key: %w", err)
	}
	return &ssh.Server{
		Version:                "Drover",
		HostSigners:            []ssh.Signer{signer},
		PublicKeyHandler:       func(_ ssh.Context, key ssh.PublicKey) bool { return ssh.KeysEqual(key, g.key) },
		ConnCallback:           g.admit,
		ChannelHandlers:        map[string]ssh.ChannelHandler{"session": serveSession},
		SessionRequestCallback: func(s ssh.Session, _ string) bool { return tolerable(s.Environ()) },
		PtyCallback:            func(ssh.Context, ssh.Pty) bool { return false },
		Handler:                g.session,
	}, nil
}

// admit limits the number of connections, and how long one may last without authentication.
func (g *guest) admit(ctx ssh.Context, conn net.Conn) net.Conn {
	select {
	case g.conns <- struct{}{}:
	default:
		return nil
	}
	login := time.AfterFunc(loginTime, func() {
		if ctx.Value(ssh.ContextKeyConn) == nil {
			conn.Close()
		}
	})
	context.AfterFunc(ctx, func() {
		login.Stop()
		<-g.conns
	})
	return conn
}

func tolerable(environ []string) bool {
	return len(environ) <= maxEnvVars && len(strings.Join(environ, "")) <= maxEnvSize
}

// serveSession is the library's handler with another context: the context ends with the session's channel, not only
// with the connection. So a client that abandons one of several commands ends that command.
func serveSession(srv *ssh.Server, conn *gossh.ServerConn, ch gossh.NewChannel, ctx ssh.Context) {
	open, closed := context.WithCancel(ctx)
	defer closed()
	ssh.DefaultSessionHandler(srv, conn, ch, sessionContext{ctx, open})
}

type sessionContext struct {
	ssh.Context
	open context.Context
}

func (c sessionContext) Done() <-chan struct{} { return c.open.Done() }
func (c sessionContext) Err() error            { return c.open.Err() }

// hangUpTime is how long a command has to end after its session was closed.
const hangUpTime = time.Second

// exitNoStart is the exit code that shells use for a command that cannot be run.
const exitNoStart = 126

// session runs one command, or a shell if there is none, and reports its end. Like any SSH server it keeps the session
// open until the command has ended and every process that inherited its output has closed it.
func (g *guest) session(s ssh.Session) {
	p, err := g.runCommand(s)
	if err != nil {
		fmt.Fprintf(s.Stderr(), "run the command: %v\n", err)
		s.Exit(exitNoStart)
		return
	}
	go g.forwardSignals(s, p.pid)
	drained := p.pipe(s)
	select {
	case <-drained:
	case <-s.Context().Done():
		g.hangUp(p, drained)
		return
	}
	select {
	case status := <-p.exited:
		report(s, status)
	case <-s.Context().Done():
		g.hangUp(p, drained)
	}
}

// command is a running command, with our ends of its pipes.
type command struct {
	pid            int
	exited         <-chan unix.WaitStatus
	stdin          *os.File
	stdout, stderr *os.File
}

func (g *guest) runCommand(s ssh.Session) (c command, err error) {
	var theirs [3]*os.File
	var ours [3]*os.File
	defer func() {
		closeAll(theirs[:])
		if err != nil {
			closeAll(ours[:])
		}
	}()
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			return c, err
		}
		theirs[i], ours[i] = r, w
		if i > 0 {
			theirs[i], ours[i] = w, r
		}
	}
	args := []string{"sh"}
	if text := s.RawCommand(); text != "" {
		args = append(args, "-c", text)
	}
	pid, exited, err := g.reaper.Start("/bin/sh", args, g.home, g.environ(s.Environ()), theirs[:]...)
	return command{pid, exited, ours[0], ours[1], ours[2]}, err
}

// environ adds the client's variables to the instance's, without replacing any.
func (g *guest) environ(asked []string) []string {
	env := slices.Clone(g.Environment)
	for _, v := range asked {
		name, _, _ := strings.Cut(v, "=")
		has := slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if !has && name != "" && !strings.ContainsRune(v, 0) {
			env = append(env, v)
		}
	}
	return env
}

// pipe connects the command with the session. The channel is closed once all output has been sent, or can no longer be.
func (c command) pipe(s ssh.Session) <-chan struct{} {
	go func() {
		defer c.stdin.Close()
		io.Copy(c.stdin, s) // a command need not read all of it
	}()
	var outputs sync.WaitGroup
	send := func(to io.Writer, from *os.File) {
		outputs.Go(func() {
			defer from.Close()
			io.Copy(to, from) // if the client is gone, an error cannot be reported to anyone
		})
	}
	send(s, c.stdout)
	send(s.Stderr(), c.stderr)
	drained := make(chan struct{})
	go func() {
		outputs.Wait()
		close(drained)
	}()
	return drained
}

// hangUp ends a command to which no client listens. It does not touch processes that have left its session (a
// supervisor).
func (g *guest) hangUp(c command, drained <-chan struct{}) {
	c.stdout.Close()
	c.stderr.Close()
	g.reaper.Signal(c.pid, unix.SIGHUP)
	select {
	case <-c.exited:
	case <-time.After(hangUpTime):
		g.reaper.Signal(c.pid, unix.SIGKILL)
	}
	<-drained
}

// forwardSignals forwards the client's signals. It continues until the channel is closed, since the library blocks
// until a requested signal is received.
func (g *guest) forwardSignals(s ssh.Session, pid int) {
	signals := make(chan ssh.Signal, 8)
	s.Signals(signals)
	for {
		select {
		case name := <-signals:
			if sig := unix.SignalNum("SIG" + string(name)); sig != 0 {
				g.reaper.Signal(pid, sig)
			}
		case <-s.Context().Done():
			return
		}
	}
}

// report sends the client the command's exit code, or the signal that ended it.
func report(s ssh.Session, status unix.WaitStatus) {
	if !status.Signaled() {
		s.Exit(status.ExitStatus())
		return
	}
	end := struct {
		Signal string
		Core   bool
		Text   string
		Lang   string
	}{Signal: strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG"), Core: status.CoreDump()}
	s.SendRequest("exit-signal", false, gossh.Marshal(&end))
	s.Close()
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() // closing nil only returns an error
	}
}
