package httpapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"drover/internal/httpapi"
)

// ask has a handler answer without a network.
func ask(h *httpapi.Handler, method, path, body string) *httptest.ResponseRecorder {
	u, err := url.Parse(path)
	if err != nil {
		return nil
	}
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL, r.RequestURI = u, u.String()
	r.Header.Set("Authorization", "Bearer admin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// sane fails unless an answer is a success, or a problem that is not the controller's.
func sane(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w == nil || w.Code < 300 {
		return
	}
	var p struct{ Kind, Detail string }
	if err := json.Unmarshal(w.Body.Bytes(), &p); w.Code >= 500 || err != nil || p.Kind == "" || p.Detail == "" {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
}

func handler() *httpapi.Handler {
	return httpapi.New(httpapi.Config{Service: &fake{}, Authenticate: authenticate, Log: slog.New(slog.DiscardHandler), Limits: lax})
}

// FuzzBatch: whatever is submitted, the answer is a receipt or a problem.
func FuzzBatch(f *testing.F) {
	f.Add(hello)
	f.Add(`{"name": "a", "jobs": [{"name": "b", "command": ["x"]}]}`)
	f.Add("{")
	h := handler()
	f.Fuzz(func(t *testing.T, body string) { sane(t, ask(h, http.MethodPost, "/v1/batches", body)) })
}

// FuzzNames: whatever stands for an id, a cursor or a name, the answer is one.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"17", "17.3", "-1", "", "..", "/", "9999999999999999999", "%", "i-1\x00", "a&limit=1"} {
		f.Add(s)
	}
	h := handler()
	f.Fuzz(func(t *testing.T, s string) {
		for _, path := range []string{
			"/v1/jobs/" + url.PathEscape(s), "/v1/instances/" + url.PathEscape(s), "/v1/jobs/17/outputs/content?path=" + url.QueryEscape(s),
			"/v1/jobs?after=" + url.QueryEscape(s), "/v1/jobs?label=" + url.QueryEscape(s), "/v1/instances?limit=" + url.QueryEscape(s), "/v1/explain?subject=" + url.QueryEscape(s),
			"/v1/events?recent=true&after=" + url.QueryEscape(s), "/v1/offers?memory=" + url.QueryEscape(s), "/" + s,
		} {
			if w := ask(h, http.MethodGet, path, ""); w != nil {
				sane(t, w)
			}
		}
	})
}
