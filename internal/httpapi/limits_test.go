package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drover"
	"drover/internal/httpapi"
)

func TestRates(t *testing.T) {
	slow := httpapi.Rate{PerSecond: 0.01, Burst: 2}
	_, s := serve(t, &fake{}, func(c *httpapi.Config) { c.Limits.Requests, c.Limits.Attempts, c.Limits.Tries = slow, slow, slow })
	for _, token := range []string{"Bearer view", "Bearer own", "Bearer wrong", "", "Bearer admin"} {
		t.Run("are counted separately for "+token, func(t *testing.T) {
			want := []int{200, 200, 429}
			switch token {
			case "Bearer wrong":
				want = []int{401, 401, 429}
			case "": // from the same address as the wrong token
				want = []int{429}
			}
			for i, status := range want {
				got := do(t, s.URL, "GET", "/v1/status", token, "")
				if got.StatusCode != status {
					t.Fatalf("request %d: %d, want %d: %s", i, got.StatusCode, status, got.text)
				}
				if status == 429 && (got.Header.Get("Retry-After") == "" || got.problem(t).Kind != drover.KindRateLimit) {
					t.Errorf("got %v %s", got.Header, got.text)
				}
			}
		})
	}
}

func TestStreams(t *testing.T) {
	f := &fake{log: endless, quiet: true}
	h, s := serve(t, f, func(c *httpapi.Config) { c.Limits.Streams, c.Limits.AllStreams = 2, 3 })
	open := func(token string) (io.ReadCloser, error) {
		return client(t, s.URL, token).Logs(t.Context(), drover.LogRequest{Job: whole, Stream: drover.Stdout, Follow: true})
	}
	var opened []io.ReadCloser
	for _, c := range []struct {
		token string
		kind  drover.ErrorKind
	}{{"view", ""}, {"view", ""}, {"view", drover.KindRateLimit}, {"admin", ""}, {"operate", drover.KindRateLimit}} {
		stream, err := open(c.token)
		if (err == nil) != (c.kind == "") || err != nil && drover.KindOf(err) != c.kind {
			t.Fatalf("%s: %v, want %q", c.token, err, c.kind)
		}
		if err == nil {
			opened = append(opened, stream)
		}
	}
	t.Run("a closed stream makes room for another", func(t *testing.T) {
		opened[0].Close()
		eventually(t, func() bool {
			stream, err := open("operate")
			opened[0] = stream
			return err == nil
		})
	})
	t.Run("Close ends them with an error", func(t *testing.T) {
		h.Close()
		for _, stream := range opened {
			if _, err := io.Copy(io.Discard, stream); drover.KindOf(err) != drover.KindUnreachable {
				t.Errorf("the stream ended with %v", err)
			}
		}
		if _, err := open("submit"); drover.KindOf(err) != drover.KindTransient {
			t.Errorf("opening another: %v", err)
		}
	})
	t.Run("the server can shut down while one is open", func(t *testing.T) {
		_, s := serve(t, f)
		if _, err := client(t, s.URL, "view").Logs(t.Context(), drover.LogRequest{Job: whole, Follow: true}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := s.Config.Shutdown(ctx); err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
}

// TestRequestsAtOnce sends one user's requests whose bodies never arrive. Other users do not have to wait.
func TestRequestsAtOnce(t *testing.T) {
	_, s := serve(t, &fake{}, func(c *httpapi.Config) { c.Limits.AtOnce, c.Limits.AllAtOnce = 2, 3 })
	hang := func() net.Conn {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST /v1/inputs/missing HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer submit\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", s.Listener.Addr())
		// The server requests the body only once the request is under way.
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatalf("the server answers %q, %v", line, err)
		}
		return conn
	}
	first := hang()
	hang()
	refused := func(token string) bool {
		_, err := client(t, s.URL, token).Jobs(t.Context(), drover.JobFilter{})
		return drover.KindOf(err) == drover.KindRateLimit
	}
	if !refused("submit") {
		t.Error("a user's third request is not refused")
	}
	if refused("operate") {
		t.Error("another user is refused as well")
	}
	first.Close()
	eventually(t, func() bool { return !refused("submit") })
}

func TestAttemptsStreamsCountForTheirUser(t *testing.T) {
	_, s := serve(t, &fake{log: endless}, func(c *httpapi.Config) { c.Limits.Streams, c.Limits.AllStreams = 2, 4 })
	open := func(token string, job drover.JobID) error {
		_, err := client(t, s.URL, token).Logs(t.Context(), drover.LogRequest{Job: job, Stream: drover.Stdout, Follow: true})
		return err
	}
	for _, c := range []struct {
		what, token string
		job         drover.JobID
		kind        drover.ErrorKind
	}{
		{"an attempt's", "own", own.Job, ""},
		{"another attempt's, of the same user", "other", other.Job, ""},
		{"a third for that user", "own", own.Job, drover.KindRateLimit},
		{"the user's own", "submit", whole, drover.KindRateLimit},
		{"another user's", "admin", whole, ""},
	} {
		if err := open(c.token, c.job); drover.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %q", c.what, err, c.kind)
		}
	}
}

// TestStreamsFlow checks that each write arrives before the next one is made.
func TestStreamsFlow(t *testing.T) {
	from, to := io.Pipe()
	events := make(chan drover.Event)
	f := &fake{
		log: func(context.Context) io.ReadCloser { return from },
		events: func(yield func(drover.Event, error) bool) {
			for e := range events {
				if !yield(e, nil) {
					return
				}
			}
		},
	}
	_, s := serve(t, f)
	c := client(t, s.URL, "view")
	log, err := c.Logs(t.Context(), drover.LogRequest{Job: whole, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, want := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(to, want); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(log, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	next, stop := iter.Pull2(c.Events(t.Context(), drover.EventFilter{}))
	defer stop()
	for _, id := range []string{"1", "2"} {
		go func() { events <- drover.Event{ID: id} }()
		if e, err, ok := next(); !ok || err != nil || e.ID != id {
			t.Fatalf("got %+v, %v, %v", e, err, ok)
		}
	}
	close(events)
}

// TestClientThatDoesNotRead serves a client that requests a stream and then does not read it, with a fake clock.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := &noisy{closed: make(chan struct{})}
		conn, ended := bubble(t, &fake{log: func(context.Context) io.ReadCloser { return reader }})
		began := time.Now()
		request(t, conn, "GET /v1/jobs/1/logs?follow=true")
		<-reader.closed
		if took := time.Since(began); took < 30*time.Second || took > 35*time.Second {
			t.Errorf("it was dropped after %v", took)
		}
		ended()
	})
}

// TestClientThatDoesNotSend serves a client that announces contents and does not send them.
func TestClientThatDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		conn, ended := bubble(t, &fake{put: func(_ string, contents io.Reader) error {
			_, err := io.ReadAll(contents)
			failed <- err
			return err
		}})
		began := time.Now()
		request(t, conn, "PUT /v1/inputs/"+zeros, "Content-Length: 1000")
		if err := <-failed; err == nil {
			t.Error("the contents arrived")
		}
		if took := time.Since(began); took < 30*time.Second || took > 35*time.Second {
			t.Errorf("it was dropped after %v", took)
		}
		ended()
	})
}

// TestQuietEvents watches a fleet in which nothing happens.
func TestQuietEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, ended := bubble(t, &fake{quiet: true})
		request(t, conn, "GET /v1/events")
		var read strings.Builder
		go io.Copy(&read, conn)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(read.String(), ": still here\n\n"); n < 200 {
			t.Errorf("it sent %d signs of life in an hour", n)
		}
		ended()
	})
}

// TestTokenRevokedWhileWatching revokes the token of a client that watches events.
func TestTokenRevokedWhileWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revoked atomic.Bool
		conn, ended := bubble(t, &fake{quiet: true}, func(c *httpapi.Config) {
			c.Authenticate = func(ctx context.Context, token drover.Secret) (drover.Identity, error) {
				if revoked.Load() {
					token = drover.NewSecret("revoked")
				}
				return authenticate(ctx, token)
			}
		})
		request(t, conn, "GET /v1/events", "Connection: close")
		over := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, conn)
			over <- err
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		revoked.Store(true)
		began := time.Now()
		if err := <-over; err != nil || time.Since(began) > 15*time.Second {
			t.Errorf("it continued for %v: %v", time.Since(began), err)
		}
		ended()
	})
}

// bubble serves a Service over one connection in memory. The returned function ends it.
func bubble(t *testing.T, svc drover.Service, change ...func(*httpapi.Config)) (net.Conn, func()) {
	t.Helper()
	cfg := httpapi.Config{Service: svc, Authenticate: authenticate, Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&cfg)
	}
	h := httpapi.New(cfg)
	near, far := net.Pipe()
	l := &oneConn{conn: make(chan net.Conn, 1), done: make(chan struct{})}
	l.conn <- far
	s := httpapi.Server(h)
	go s.Serve(l)
	return near, func() {
		near.Close()
		s.Close()
		h.Close()
		synctest.Wait()
	}
}

func request(t *testing.T, conn net.Conn, line string, headers ...string) {
	t.Helper()
	text := line + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin\r\n"
	for _, h := range headers {
		text += h + "\r\n"
	}
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		t.Fatal(err)
	}
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn chan net.Conn
	done chan struct{}
	once sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.IPAddr{} }

// noisy is a log that never ends.
type noisy struct {
	once   sync.Once
	closed chan struct{}
}

func (n *noisy) Read(b []byte) (int, error) { return len(b), nil }

func (n *noisy) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// endless returns a log that is empty, never ends, and ignores the context.
func endless(context.Context) io.ReadCloser {
	r, _ := io.Pipe()
	return r
}

// eventually waits until a condition holds.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition never held")
		}
	}
}
