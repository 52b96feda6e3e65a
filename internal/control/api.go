package control

import (
	"context"
	"io"
	"net"
	"sync"

	"drover"
	"drover/internal/engine"
	"drover/internal/logkey"
	"drover/internal/remote"
)

// apiListener passes connections that jobs made to DROVER_API on their instances to an HTTP server here.
type apiListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Accept waits for the next connection.
func (l *apiListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *apiListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr returns a placeholder: there is no network address.
func (l *apiListener) Addr() net.Addr { return apiAddr{"instances"} }

// apiAddr is the origin of a connection that came over SSH.
type apiAddr struct{ instance string }

func (apiAddr) Network() string  { return "ssh" }
func (a apiAddr) String() string { return a.instance }

// carried is a job's connection over its instance's SSH connection. SSH has no deadlines, so a pipe in between provides
// them.
type carried struct {
	net.Conn
	instance string
}

// carry copies between a stream and a connection until one of them ends.
func carry(rw io.ReadWriteCloser, instance string) net.Conn {
	here, there := net.Pipe()
	forward := func(to io.WriteCloser, from io.Reader) {
		defer rw.Close()
		defer there.Close()
		// Each side sees for itself how the other ends.
		_, _ = io.Copy(to, from)
	}
	go forward(rw, there)
	go forward(there, rw)
	return carried{here, instance}
}

// RemoteAddr names the instance.
func (c carried) RemoteAddr() net.Addr { return apiAddr{c.instance} }

// acceptAPI accepts a connection that a job on the instance made.
func (c *Controller) acceptAPI(l *link, conn int64) {
	rw, err := l.conn.OpenAPI(conn)
	if err != nil {
		c.cfg.Log.Debug("a job's connection cannot be accepted", logkey.Instance, l.name, logkey.Error, err)
		return
	}
	select {
	case c.api.conns <- carry(rw, l.name):
	case <-c.api.done:
		rw.Close()
	}
}

// Attempts listens for the connections that jobs make to DROVER_API on their instances, for an HTTP server.
func (c *Controller) Attempts() net.Listener { return &c.api }

// Attempt returns the live attempt that a token names; KindAuthentication if there is none.
func (c *Controller) Attempt(ctx context.Context, token drover.Secret) (drover.AttemptID, error) {
	id, err := c.cfg.Key.VerifyAttemptToken(c.state.Nonce, token.Reveal())
	if err != nil {
		return id, err
	}
	live := false
	err = c.Query(ctx, func(e *engine.Engine) { _, live = e.Where(id) })
	if err == nil && !live {
		err = drover.Errorf(drover.KindAuthentication, "the attempt that this token belongs to has ended")
	}
	return id, err
}

var _ remote.Handler = (*link)(nil)
