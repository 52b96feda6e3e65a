package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
	"drover/internal/httpapi"
)

func TestNewClient(t *testing.T) {
	for base, want := range map[string]string{
		"http://127.0.0.1:8420":          "",
		"http://127.0.0.1:8420/":         "",
		"http://[::1]:8420":              "",
		"http://localhost":               "",
		"https://drover.example.org":     "",
		"https://proxy.example.org/lab":  "",
		"127.0.0.1:8420":                 "is not the URL of a controller",
		"ftp://x":                        "is not the URL of a controller",
		"":                               "is not the URL of a controller",
		"https://x?y=z":                  "is not the URL of a controller",
		"https://user:hunter2@x":         "contains a user name or password",
		"http://drover.example.org":      "in plain text",
		"http://127.0.0.1.example.org":   "in plain text",
		"http://localhost.example.org:1": "in plain text",
	} {
		_, err := httpapi.NewClient(base, drover.NewSecret("s3cret"), nil)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", base, err)
		case want != "" && (drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: %v, want %s", base, err, want)
		}
	}
	t.Run("without a token, plain http is accepted", func(t *testing.T) {
		if _, err := httpapi.NewClient("http://drover.example.org", drover.Secret{}, nil); err != nil {
			t.Error(err)
		}
	})
}

// otherServer returns a client of a server that is not a controller.
func otherServer(t *testing.T, serve http.HandlerFunc) *httpapi.Client {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	return client(t, s.URL, "admin")
}

func TestClientErrors(t *testing.T) {
	t.Run("a server that does not run is unreachable, and the error has its URL", func(t *testing.T) {
		s := httptest.NewServer(nil)
		c := client(t, s.URL, "admin")
		s.Close()
		_, err := c.Status(t.Context())
		if e := drover.AsError(err, ""); e.Kind != drover.KindUnreachable || e.Hint == "" || !strings.HasPrefix(e.Message, "the controller at "+s.URL+" cannot be reached: ") || strings.Count(e.Message, s.URL) != 1 {
			t.Errorf("got %v", err)
		}
		for _, err := range c.Events(t.Context(), drover.EventFilter{}) {
			if drover.KindOf(err) != drover.KindUnreachable {
				t.Errorf("following events: %v", err)
			}
		}
	})
	t.Run("redirects are not followed, so the token goes nowhere else", func(t *testing.T) {
		var elsewhere atomic.Int32
		there := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
		defer there.Close()
		c := otherServer(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, there.URL, http.StatusTemporaryRedirect)
		})
		if _, err := c.Status(t.Context()); drover.KindOf(err) != drover.KindInvalid || !strings.Contains(err.Error(), there.URL) {
			t.Errorf("got %v", err)
		}
		if elsewhere.Load() != 0 {
			t.Error("it was followed")
		}
	})
	for status, kind := range map[int]drover.ErrorKind{
		401: drover.KindAuthentication, 403: drover.KindForbidden, 404: drover.KindNotFound, 418: drover.KindInvalid, 429: drover.KindRateLimit,
		500: drover.KindInternal, 502: drover.KindUnreachable, 503: drover.KindTransient, 504: drover.KindUnreachable,
	} {
		t.Run("another server's error has the kind "+string(kind), func(t *testing.T) {
			c := otherServer(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", status) })
			if _, err := c.Status(t.Context()); drover.KindOf(err) != kind || strings.Contains(err.Error(), "<html>") {
				t.Errorf("%d: %v", status, err)
			}
		})
	}
	t.Run("an answer that is not JSON is an error", func(t *testing.T) {
		c := otherServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") })
		if _, err := c.Status(t.Context()); drover.KindOf(err) != drover.KindUnreachable {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a proxy that refuses a large body is named as the cause", func(t *testing.T) {
		c := otherServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
		err := c.PutInput(t.Context(), zeros, strings.NewReader("large"))
		if e := drover.AsError(err, ""); e.Kind != drover.KindInvalid || !strings.HasPrefix(e.Message, "the proxy at ") || !strings.Contains(e.Hint, "limit") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a log that breaks off is an error", func(t *testing.T) {
		_, s := serve(t, &fake{log: func(context.Context) io.ReadCloser {
			return io.NopCloser(io.MultiReader(strings.NewReader("a part"), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}})
		got, err := text(client(t, s.URL, "view").Logs(t.Context(), drover.LogRequest{Job: whole}))
		if got != "a part" || drover.KindOf(err) != drover.KindUnreachable {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("the caller can cancel", func(t *testing.T) {
		_, s := serve(t, &fake{log: endless})
		ctx, cancel := context.WithCancel(t.Context())
		log, err := client(t, s.URL, "view").Logs(ctx, drover.LogRequest{Job: whole, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.ReadAll(log); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("contents that cannot be read are not the controller's fault", func(t *testing.T) {
		_, s := serve(t, &fake{})
		err := client(t, s.URL, "admin").PutInput(t.Context(), zeros, iotest.ErrReader(errors.New("the disk is gone")))
		if !strings.Contains(err.Error(), "reading an input: the disk is gone") || drover.KindOf(err) == drover.KindUnreachable {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a key that does not fit in a header is refused", func(t *testing.T) {
		_, s := serve(t, &fake{})
		if _, err := client(t, s.URL, "admin").Submit(t.Context(), drover.Submission{Batch: batch(), Key: "a\nb"}); drover.KindOf(err) != drover.KindInvalid {
			t.Errorf("got %v", err)
		}
	})
}

// TestRetry breaks the first connections before there is an answer.
func TestRetry(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken int32
		ask    func(c *httpapi.Client) error
		asked  int32
		ok     bool
	}{
		{"a read is repeated once", 1, func(c *httpapi.Client) error { _, err := c.Status(t.Context()); return err }, 2, true},
		{"a read is repeated only once", 2, func(c *httpapi.Client) error { _, err := c.Status(t.Context()); return err }, 2, false},
		{"a change is not repeated", 1, func(c *httpapi.Client) error { _, err := c.Cancel(t.Context(), whole, ""); return err }, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Int32
			cl := otherServer(t, func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) <= c.broken {
					conn, _, err := w.(http.Hijacker).Hijack()
					if err == nil {
						conn.(*net.TCPConn).SetLinger(0)
						conn.Close()
					}
					return
				}
				io.WriteString(w, "{}")
			})
			err := c.ask(cl)
			if (err == nil) != c.ok || !c.ok && drover.KindOf(err) != drover.KindUnreachable || asked.Load() != c.asked {
				t.Errorf("asked %d times: %v", asked.Load(), err)
			}
		})
	}
}

// TestEventsGoOn interrupts a stream of events several times.
func TestEventsGoOn(t *testing.T) {
	var seen []string
	c := otherServer(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Query().Get("after")+"|"+r.Header.Get("Last-Event-ID"))
		switch len(seen) {
		case 1:
			io.WriteString(w, ": hello\n\nid: 1\ndata: {\"id\": \"1\"}\n\nid: 2\ndata: {\"id\": \"2\"}\n\nid: 3\ndata: {\"id\"")
		case 2:
			http.Error(w, "away", http.StatusBadGateway)
		case 3:
			io.WriteString(w, "id: 9\ndata: {\"id\": \"9\", \"missed\": 6}\n\n")
		case 4:
			io.WriteString(w, "event: error\ndata: {\"kind\": \"invalid\", \"detail\": \"no\"}\n\n")
		}
	})
	var got []drover.Event
	var last error
	for e, err := range c.Events(t.Context(), drover.EventFilter{After: "0"}) {
		if last = err; err == nil {
			got = append(got, e)
		}
	}
	if diff := cmp.Diff([]drover.Event{{ID: "1"}, {ID: "2"}, {ID: "9", Missed: 6}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0|", "2|2", "2|2", "9|9"}, seen); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
	if drover.KindOf(last) != drover.KindInvalid {
		t.Errorf("it ended with %v", last)
	}
}

func TestEventsEnd(t *testing.T) {
	_, s := serve(t, &fake{quiet: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for e, err := range client(t, s.URL, "view").Events(ctx, drover.EventFilter{}) {
		t.Errorf("got %+v, %v after the context ended", e, err)
	}
}

func TestLastEventID(t *testing.T) {
	f := &fake{}
	_, s := serve(t, f)
	got := do(t, s.URL, "GET", "/v1/events?after=1&last=1", "Bearer view", "", "Last-Event-ID: 7")
	if f.asked[1] != (drover.EventFilter{After: "7"}) {
		t.Errorf("asked %+v", f.asked)
	}
	if !strings.HasSuffix(got.text, "event: end\ndata: {}\n\n") || strings.Count(got.text, "\nid: ") != 2 {
		t.Errorf("got %s", got.text)
	}
}
