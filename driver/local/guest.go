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
	"time"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// What the guest's SSH server allows. Whoever is on this host can connect to it, so what is allowed before a login is little.
const (
	backlog    = 128
	maxConns   = 256
	loginTime  = 10 * time.Second // from the connection to the proof of the key
	maxEnvVars = 64
	maxEnvSize = 64 << 10
)

// guest is the inside of an instance: it boots, then serves SSH until it or the outer process dies.
type guest struct {
	launch
	home   string
	reaper *reaper
	key    ssh.PublicKey
	conns  chan struct{} // one element per connection
}

func runGuest(folder string) error {
	lock, socket, alive := inherited(fdLock, "lock"), inherited(fdSocket, "ssh"), inherited(fdAlive, "alive")
	defer lock.Close()
	r, err := newReaper()
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
	// Signals that Drover was started to ignore (nohup, a shell's &) would be ignored by every command here; those that are
	// caught are not.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT)
	ended := make(chan error, 2)
	go func() {
		_, err := io.Copy(io.Discard, alive)
		ended <- err
	}()
	go func() { ended <- g.run(ctx, socket) }()
	return errors.Join(<-ended, r.endTree())
}

// run boots and then serves for as long as it can.
func (g *guest) run(ctx context.Context, socket *os.File) error {
	if err := g.init(); err != nil {
		return err
	}
	if g.NeverBoots {
		socket.Close()
		<-ctx.Done()
		return ctx.Err()
	}
	if err := pause(ctx, g.BootDelay); err != nil {
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

// init starts the init scripts, side by side. They are not waited for, as logins are not held up by them on other clouds.
func (g *guest) init() error {
	for _, text := range g.Init {
		if err := g.runInit(text); err != nil {
			return err
		}
	}
	return nil
}

// runInit starts a script, whose text may be secret and so is in no argument list.
func (g *guest) runInit(text string) error {
	script, err := os.CreateTemp(filepath.Dir(g.home), "init-*")
	if err != nil {
		return err
	}
	defer script.Close()
	// It never has a name while it has a text, which may hold secrets.
	if err := os.Remove(script.Name()); err != nil {
		return fmt.Errorf("write the init command: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	if _, err := script.WriteString(text); err != nil {
		return fmt.Errorf("write the init command: %w", err)
	}
	_, _, err = g.reaper.start("/bin/sh", []string{"sh", "/dev/fd/3"}, g.home, g.Environment, null, os.Stdout, os.Stderr, script)
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

// admit bounds how many connections there are, and for how long one may stay that has not proved its key.
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
	total := 0
	for _, v := range environ {
		total += len(v)
	}
	return len(environ) <= maxEnvVars && total <= maxEnvSize
}

// serveSession is the library's handler, but for the context of the session: it ends with the session's channel, not only with
// the connection, so that a client which gives up one command of many ends that command.
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
