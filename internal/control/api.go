package control

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"drover"
	"drover/internal/engine"
	"drover/internal/remote"
)

// apiListener hands connections that jobs made to DROVER_API on their instances to an HTTP server here.
type apiListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newAPIListener() *apiListener {
	return &apiListener{conns: make(chan net.Conn), done: make(chan struct{})}
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

// Addr is that of no network.
func (l *apiListener) Addr() net.Addr { return apiAddr{} }

type apiAddr struct{}

func (apiAddr) Network() string { return "ssh" }
func (apiAddr) String() string  { return "instance" }

// apiConn is a job's connection, carried over its instance's SSH connection.
type apiConn struct{ io.ReadWriteCloser }

func (apiConn) LocalAddr() net.Addr              { return apiAddr{} }
func (apiConn) RemoteAddr() net.Addr             { return apiAddr{} }
func (apiConn) SetDeadline(time.Time) error      { return nil }
func (apiConn) SetReadDeadline(time.Time) error  { return nil }
func (apiConn) SetWriteDeadline(time.Time) error { return nil }

// acceptAPI takes up a connection that a job on the instance made.
func (c *Controller) acceptAPI(l *link, conn int64) {
	rw, err := l.conn.OpenAPI(conn)
	if err != nil {
		c.cfg.Log.Debug("taking up a job's connection", "instance", l.name, "error", err)
		return
	}
	select {
	case c.api.conns <- apiConn{rw}:
	case <-c.api.done:
		rw.Close()
	}
}

// Attempts are the connections that jobs make to DROVER_API on their instances, for an HTTP server to answer.
func (c *Controller) Attempts() net.Listener { return c.api }

// Attempt is the live attempt that a token names: KindAuthentication if there is none.
func (c *Controller) Attempt(ctx context.Context, token drover.Secret) (drover.AttemptID, error) {
	id, err := c.cfg.Key.VerifyAttemptToken(c.state.Nonce, token.Reveal())
	if err != nil {
		return id, err
	}
	live := false
	err = c.Query(ctx, func(e *engine.Engine) { live = e.Live(id) })
	if err == nil && !live {
		err = drover.Errorf(drover.KindAuthentication, "the attempt that this token was for has ended")
	}
	return id, err
}

var _ remote.Handler = (*link)(nil)
