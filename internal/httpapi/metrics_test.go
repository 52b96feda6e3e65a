package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"drover/internal/httpapi"
)

// covers D19
func TestMetrics(t *testing.T) {
	closed, _ := serve(t, &fake{})
	open, _ := serve(t, &fake{}, func(c *httpapi.Config) { c.Reach.OpenMetrics = true })
	none, _ := serve(t, &fake{}, func(c *httpapi.Config) { c.Metrics = nil })
	for _, c := range []struct {
		name         string
		h            *httpapi.Handler
		from, bearer string
		want         int
	}{
		{"open, from this host", open, "127.0.0.1:4711", "", 200},
		{"open, from this host over IPv6", open, "[::1]:4711", "", 200},
		{"open, from another host", open, "192.0.2.7:4711", "", 401},
		{"open, from another host with a token", open, "192.0.2.7:4711", "view", 200},
		{"open, from a job on an instance", open, "lab-x7k2p-1", "", 401},
		{"open, from a job with its attempt's token", open, "lab-x7k2p-1", "own", 403},
		{"not open, from this host", closed, "127.0.0.1:4711", "", 401},
		{"not open, from this host with a token", closed, "127.0.0.1:4711", "view", 200},
		{"no metrics", none, "127.0.0.1:4711", "view", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/metrics", nil)
			r.RemoteAddr = c.from
			if c.bearer != "" {
				r.Header.Set("Authorization", "Bearer "+c.bearer)
			}
			w := httptest.NewRecorder()
			c.h.ServeHTTP(w, r)
			if w.Code != c.want || w.Code == http.StatusOK && w.Body.String() != "up 1\n" {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
}

func TestMetricsAreOpenOnlyIfOnlyThisHostHasAccess(t *testing.T) {
	for _, c := range []struct {
		listen, url string
		want        bool
	}{
		{"127.0.0.1:8420", "", true},
		{"localhost:8420", "http://127.0.0.1:8420", true},
		{"127.0.0.1:8420", "https://drover.example.org", false},
		{"0.0.0.0:8420", "", false},
		{":8420", "", false},
	} {
		if got := httpapi.ReachOf(c.listen, c.url).OpenMetrics; got != c.want {
			t.Errorf("listening on %s, with the URL %q: open is %v", c.listen, c.url, got)
		}
	}
}
