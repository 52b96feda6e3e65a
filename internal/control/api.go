package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
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

// serveAPI answers jobs until ctx ends. A job sees itself and how its fleet does, with the token of its attempt and nothing else.
func (c *Controller) serveAPI(ctx context.Context) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /v1/status", c.asAttempt(c.serveStatus))
	mux.HandleFunc("GET /v1/jobs/{id}", c.asAttempt(c.serveJob))
	mux.HandleFunc("/", c.asAttempt(serveNothing))
	s := &http.Server{Handler: mux, MaxHeaderBytes: 16 << 10}
	go func() {
		<-ctx.Done()
		s.Close()
	}()
	if err := s.Serve(c.api); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		c.cfg.Log.Error("serving jobs", "error", err)
	}
}

type attemptHandler func(w http.ResponseWriter, r *http.Request, id drover.AttemptID) error

// asAttempt lets in who bears the token of an attempt that is live, and writes errors as problem documents (RFC 9457).
func (c *Controller) asAttempt(handle attemptHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := c.bearer(r)
		if err == nil {
			err = handle(w, r, id)
		}
		if err != nil {
			problem(w, drover.AsError(err, drover.KindInternal))
		}
	}
}

// bearer is the live attempt whose token the request bears.
func (c *Controller) bearer(r *http.Request) (drover.AttemptID, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	id, err := c.cfg.Key.VerifyAttemptToken(c.state.Nonce, token)
	if err != nil {
		return id, drover.Errorf(drover.KindAuthentication, "no valid token").WithHint("send Authorization: Bearer $DROVER_TOKEN")
	}
	live := false
	err = c.Query(r.Context(), func(e *engine.Engine) { live = e.Live(id) })
	if err == nil && !live {
		err = drover.Errorf(drover.KindAuthentication, "the attempt that this token was for has ended")
	}
	return id, err
}

func problem(w http.ResponseWriter, err *drover.Error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(err.Kind.HTTPStatus())
	json.NewEncoder(w).Encode(map[string]any{
		"type": "about:blank", "title": string(err.Kind), "status": err.Kind.HTTPStatus(), "detail": err.Message,
	})
}

func serveNothing(_ http.ResponseWriter, r *http.Request, _ drover.AttemptID) error {
	return drover.Errorf(drover.KindNotFound, "there is no %s %s", r.Method, r.URL.Path)
}

func (c *Controller) serveStatus(w http.ResponseWriter, r *http.Request, _ drover.AttemptID) error {
	var s engine.Status
	if err := c.Query(r.Context(), func(e *engine.Engine) { s = e.Status() }); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(s)
}

func (c *Controller) serveJob(w http.ResponseWriter, r *http.Request, self drover.AttemptID) error {
	id, err := drover.ParseJobID(r.PathValue("id"))
	if err != nil {
		return drover.Errorf(drover.KindInvalid, "%v", err)
	}
	if id != self.Job {
		return drover.Errorf(drover.KindForbidden, "this token shows job %v alone", self.Job)
	}
	job, err := c.cfg.Store.Job(r.Context(), c.clock.now(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(job)
}

var _ remote.Handler = (*link)(nil)
