package notice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

// scripted returns its answers in turn, then repeats the last.
type scripted []any // *drover.Notice or error

func (s *scripted) Notice(context.Context) (*drover.Notice, error) {
	next := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	if err, failed := next.(error); failed {
		return nil, err
	}
	return next.(*drover.Notice), nil
}

func (*scripted) Pause() time.Duration { return time.Second }

func TestWatch(t *testing.T) {
	watch := func(t *testing.T, long time.Duration, answers ...any) (told []*drover.Notice, logged int) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			source := scripted(answers)
			Watch(ctx, &source, func(n *drover.Notice) { told = append(told, n) }, func(string, ...any) { logged++ })
		})
		return told, logged
	}
	var none *drover.Notice
	spot, other := &drover.Notice{Cause: "spot"}, &drover.Notice{Cause: "spot", Deadline: 7}
	down := errors.New("no route")

	t.Run("the first answer is passed on, and then each change", func(t *testing.T) {
		told, _ := watch(t, time.Minute, none, none, spot, &drover.Notice{Cause: "spot"}, other, none)
		if diff := cmp.Diff([]*drover.Notice{nil, spot, other, nil}, told); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("an error changes no notice, and is logged once", func(t *testing.T) {
		told, logged := watch(t, time.Minute, spot, down, down, down, spot)
		if len(told) != 1 || logged != 1 {
			t.Errorf("passed on %v, logged %d times", told, logged)
		}
	})
	t.Run("a source that keeps failing is asked less often", func(t *testing.T) {
		asked := 0
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			Watch(ctx, counted{&asked}, func(*drover.Notice) {}, func(string, ...any) {})
		})
		if asked < 100 || asked > 130 {
			t.Errorf("asked %d times in an hour", asked)
		}
	})
}

// counted counts its calls, which all fail.
type counted struct{ n *int }

func (counted) Pause() time.Duration { return time.Second }

func (c counted) Notice(context.Context) (*drover.Notice, error) {
	*c.n++
	return nil, errors.New("no")
}

// server is a fake metadata server with a page at each path.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	has   map[string]string // guarded by mu
	asked []*http.Request   // guarded by mu
}

// newServer serves pages, except where guard returns another answer.
func newServer(t *testing.T, guard func(*http.Request) (status int, body string)) *server {
	s := &server{has: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r)
		status, body := guard(r)
		page, ok := s.has[r.URL.Path]
		switch {
		case status != 0:
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		case ok:
			fmt.Fprint(w, page)
		default:
			w.WriteHeader(404)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) set(path, page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has[path] = page
	if page == "" {
		delete(s.has, path)
	}
}

func opened(t *testing.T, open func(string) (Source, error), base string) Source {
	t.Helper()
	source, err := open(base)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// wantNotice checks that the source returns the notice, or nil.
func wantNotice(t *testing.T, s Source, want *drover.Notice) {
	t.Helper()
	got, err := s.Notice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func wantError(t *testing.T, s Source, with string) {
	t.Helper()
	n, err := s.Notice(t.Context())
	if err == nil || !strings.Contains(err.Error(), with) {
		t.Errorf("got %v, %v; want an error with %q", n, err, with)
	}
}

// covers D12
func TestEC2(t *testing.T) {
	const token = "AQAEAbc123=="
	tokens := 0
	aws := newServer(t, func(r *http.Request) (int, string) {
		switch {
		case r.URL.Path == ec2TokenPath && r.Method == "PUT" && r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") == "21600":
			tokens++
			return 200, token
		case r.Header.Get("X-aws-ec2-metadata-token") != token:
			return 401, ""
		}
		return 0, ""
	})
	s := opened(t, NewEC2, aws.URL)
	wantNotice(t, s, nil)
	aws.set("/latest/meta-data/events/recommendations/rebalance", `{"noticeTime": "2027-01-02T03:04:05Z"}`)
	wantNotice(t, s, nil) // a recommendation is not a notice
	aws.set(ec2ActionPath, `{"action": "terminate", "time": "2027-01-02T03:04:05Z"}`)
	wantNotice(t, s, &drover.Notice{Cause: "spot interruption (terminate)", Deadline: drover.TimeOf(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC))})
	aws.set(ec2ActionPath, `{"action": "hibernate"}`)
	wantNotice(t, s, &drover.Notice{Cause: "spot interruption (hibernate)"})
	aws.set(ec2ActionPath, "")
	wantNotice(t, s, nil)
	if tokens != 1 {
		t.Errorf("%d tokens were requested", tokens)
	}
	s.(*ec2).token = "expired"
	wantError(t, s, "401")
	wantNotice(t, s, nil)
	for _, bad := range []string{"{}", "<html>", `{"action": 3}`} {
		aws.set(ec2ActionPath, bad)
		wantError(t, s, "spot instance action")
	}
}

// covers D12
func TestGCE(t *testing.T) {
	var waited []string
	google := newServer(t, func(r *http.Request) (int, string) {
		if r.Header.Get("Metadata-Flavor") != "Google" {
			return 403, "Missing Metadata-Flavor:Google header."
		}
		return 0, ""
	})
	inner := google.Config.Handler
	etag := 0
	google.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		etag++
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("ETag", fmt.Sprintf("tag %d", etag))
		waited = append(waited, r.URL.Query().Get("last_etag"))
		inner.ServeHTTP(w, r)
	})
	google.set(gcePath+gcePreempted, "FALSE\n")
	google.set(gcePath+gceEvent, "NONE")
	s := opened(t, NewGCE, google.URL)
	wantNotice(t, s, nil)
	wantNotice(t, s, nil)
	if waited[0] != "" || waited[2] != "tag 1" {
		t.Errorf("it waited for changes since %q", waited)
	}
	google.set(gcePath+gceEvent, "MIGRATE_ON_HOST_MAINTENANCE")
	wantNotice(t, s, nil)
	for _, c := range []struct {
		path, said, cause string
		warning           time.Duration
	}{
		{gceEvent, "TERMINATE_ON_HOST_MAINTENANCE", "terminated for host maintenance", time.Minute},
		{gcePreempted, "TRUE", "preempted", 30 * time.Second},
	} {
		google.set(gcePath+c.path, c.said)
		first, err := s.Notice(t.Context())
		if err != nil || first.Cause != c.cause {
			t.Fatalf("%+v, %v", first, err)
		}
		if left := time.Until(first.Deadline.Std()); left > c.warning || left < c.warning-5*time.Second {
			t.Errorf("%s is due in %v", c.cause, left)
		}
		wantNotice(t, s, first) // its deadline is unchanged
	}
	google.set(gcePath+gcePreempted, "FALSE")
	google.set(gcePath+gceEvent, "NONE")
	wantNotice(t, s, nil)
	google.Config.Handler = inner
	wantError(t, s, "not the metadata server")
}

// covers D12
func TestAzure(t *testing.T) {
	microsoft := newServer(t, func(r *http.Request) (int, string) {
		if r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "" {
			return 400, `{"error": "Bad request"}`
		}
		return 0, ""
	})
	s := opened(t, NewAzure, microsoft.URL)
	wantError(t, s, "name")
	microsoft.set("/metadata/instance/compute/name", "lab-1")
	events := func(list ...string) {
		microsoft.set("/metadata/scheduledevents", `{"DocumentIncarnation": 1, "Events": [`+strings.Join(list, ",")+`]}`)
	}
	event := func(kind, resource, when string) string {
		return fmt.Sprintf(`{"EventId": "x", "EventType": %q, "ResourceType": "VirtualMachine", "Resources": ["other", %q], "EventStatus": "Scheduled", "NotBefore": %q}`, kind, resource, when)
	}
	const soon, later = "Mon, 04 Jan 2027 18:29:47 GMT", "Mon, 04 Jan 2027 19:29:47 GMT"
	at := drover.TimeOf(time.Date(2027, 1, 4, 18, 29, 47, 0, time.UTC))
	for _, c := range []struct {
		name   string
		events []string
		want   *drover.Notice
	}{
		{"nothing is scheduled", nil, nil},
		{"another instance is preempted", []string{event("Preempt", "lab-2", soon)}, nil},
		{"this instance only pauses", []string{event("Freeze", "lab-1", soon), event("Reboot", "lab-1", soon), event("Redeploy", "lab-1", soon)}, nil},
		{"this instance is preempted, whatever the case of its name", []string{event("Preempt", "LAB-1", soon)}, &drover.Notice{Cause: "scheduled event: preempt", Deadline: at}},
		{"the soonest event counts", []string{event("Terminate", "lab-1", later), event("Preempt", "lab-1", soon)}, &drover.Notice{Cause: "scheduled event: preempt", Deadline: at}},
		{"the event has begun", []string{event("Terminate", "lab-1", "")}, &drover.Notice{Cause: "scheduled event: terminate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			events(c.events...)
			wantNotice(t, s, c.want)
		})
	}
	microsoft.set("/metadata/scheduledevents", "<html>")
	wantError(t, s, "scheduled events")
}

// covers D12
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notices")
	s := opened(t, NewFile, path)
	wantNotice(t, s, nil)
	for text, want := range map[string]*drover.Notice{
		`{"cause": "spot"}`: {Cause: "spot"},
		`{"cause": "spot", "deadline": "2027-01-02T03:04:05Z"}`: {Cause: "spot", Deadline: drover.TimeOf(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC))},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wantNotice(t, s, want)
	}
	for _, bad := range []string{"", "{}", "]", `{"cause": "` + strings.Repeat("x", maxAnswer)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		wantError(t, s, "notices")
	}
}

func TestOpen(t *testing.T) {
	t.Setenv(FileVariable, "/x")
	for _, kind := range []string{"ec2", "gce", "azure", "file"} {
		if _, err := Open(kind); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := Open("sky"); err == nil {
		t.Error("a source named sky was opened")
	}
	if _, err := NewFile(""); err == nil {
		t.Error("a source without a file was opened")
	}
	for _, base := range []string{"http://metadata.google.internal", "http://10.0.0.1", "https://169.254.169.254", "169.254.169.254", ":"} {
		if _, err := NewEC2(base); err == nil {
			t.Errorf("%s is accepted", base)
		}
	}
}

func TestMetadata(t *testing.T) {
	t.Run("a hanging server is given up in time", func(t *testing.T) {
		hang := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
		defer s.Close()
		defer close(hang)
		m, err := newMetadata(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.ask(t.Context(), 20*time.Millisecond, "GET", "/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	t.Run("an answer in pieces is read whole", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, piece := range []string{"one ", "two"} {
				fmt.Fprint(w, piece)
				w.(http.Flusher).Flush()
			}
		}))
		defer s.Close()
		m, err := newMetadata(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := m.ask(t.Context(), time.Second, "GET", "/"); err != nil || string(a.body) != "one two" {
			t.Errorf("%q, %v", a.body, err)
		}
	})
	for name, text := range map[string]string{
		"no answer":                          "",
		"another protocol":                   "SSH-2.0-x\r\n\r\n",
		"a body cut short":                   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
		"a body too long":                    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
		"a body too long, of unknown length": "HTTP/1.0 200 OK\r\n\r\n" + strings.Repeat("x", maxAnswer+1),
		"a chunk too long":                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n",
		"chunks without an end":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx",
		"a header without an end":            "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxAnswer),
	} {
		t.Run(name+" is an error", func(t *testing.T) {
			if a, err := readAnswer(strings.NewReader(text)); err == nil {
				t.Errorf("%d %.40q", a.status, a.body)
			}
		})
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n{\"action\": \"terminate\", \"time\": \"2027-01-02T03:04:05Z\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readAnswer(bytes.NewReader(data))
		if len(a.body) > maxAnswer {
			t.Errorf("a body of %d bytes", len(a.body))
		}
		if err != nil {
			return
		}
		if n, err := ec2Notice(a.body); err == nil && n.Cause == "" {
			t.Error("a notice without a cause")
		}
	})
}
