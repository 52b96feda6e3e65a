package control

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"drover/internal/engine"
)

// covers P1
func TestAHealthCheckTriesAPort(t *testing.T) {
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		case "/slow":
			<-r.Context().Done()
		case "/":
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer pages.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	here, nobody := pages.Listener.Addr().(*net.TCPAddr).Port, closed.Addr().(*net.TCPAddr).Port
	for _, test := range []struct {
		name string
		port int
		path string
		host string
		want string // in the error; empty: it passes
	}{
		{"a connection suffices", here, "", "127.0.0.1", ""},
		{"nobody listens", nobody, "", "127.0.0.1", "refused"},
		{"a page", here, "/", "127.0.0.1", ""},
		{"a redirect passes without being followed", here, "/moved", "127.0.0.1", ""},
		{"a page with an error", here, "/fails", "127.0.0.1", "503"},
		{"a page that takes too long", here, "/slow", "127.0.0.1", "deadline"},
		{"no address yet", here, "/", "", "address is not known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := HealthCheck{Port: test.port, Path: test.path, Timeout: time.Second}
			err := h.try(t.Context(), test.host)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestOnlyNewHealthResultsReachTheEngine feeds results to a checker, and checks what it reports to the engine.
// covers P1
func TestOnlyNewHealthResultsReachTheEngine(t *testing.T) {
	c := &Controller{events: make(chan engine.Event, 10), setup: &setup{Setup: Setup{Pools: map[string]Pool{"web": {Check: &HealthCheck{Failures: 2, Interval: time.Second}}}}}}
	k := &checker{c: c, of: map[int64]*checkedInstance{}, pass: map[string]time.Time{}}
	now := time.Unix(1000, 0)
	list := []engine.Check{{Instance: 1, Pool: "web", Cloud: "c"}, {Instance: 2, Pool: "web", Cloud: "c"}}
	k.follow(list, now)
	comes := func(instance int64, err error, want ...engine.HealthChecked) {
		t.Helper()
		began := now
		now = now.Add(time.Second)
		k.take(context.Background(), checkResult{instance, began, err}, now)
		for _, w := range want {
			select {
			case ev := <-c.events:
				if ev.Body != engine.Body(w) {
					t.Errorf("reported %+v, want %+v", ev.Body, w)
				}
			default:
				t.Errorf("%+v was not reported", w)
			}
		}
		if len(c.events) > 0 {
			t.Errorf("also reported %+v", (<-c.events).Body)
		}
	}
	refused := net.ErrClosed
	comes(1, nil, engine.HealthChecked{Instance: 1})
	comes(2, nil, engine.HealthChecked{Instance: 2})
	list[0].Passed, list[1].Passed = true, true
	k.follow(list, now)
	comes(1, nil)     // the engine already knows
	comes(1, refused) // one failure is too few
	comes(1, refused, engine.HealthChecked{Instance: 1, Text: refused.Error()})
	list[0].Passed, list[0].Fails = false, true
	k.follow(list, now)
	comes(1, refused)
	comes(2, nil)
	comes(1, refused) // another instance was seen to pass
	comes(1, refused, engine.HealthChecked{Instance: 1, Text: refused.Error(), Others: true})
	list[0].Vouched = true
	k.follow(list, now)
	comes(1, refused)
	comes(1, nil, engine.HealthChecked{Instance: 1})
	k.follow(nil, now)
	comes(1, nil) // the instance is gone
}
