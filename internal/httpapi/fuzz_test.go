package httpapi_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"drover"
	"drover/internal/httpapi"
)

// ask calls a handler without a network.
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

// sane fails unless the answer is a success or a problem that the caller caused.
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

// FuzzBatch submits arbitrary text: the answer is a receipt or a problem.
func FuzzBatch(f *testing.F) {
	f.Add(hello)
	f.Add(`{"name": "a", "jobs": [{"name": "b", "command": ["x"]}]}`)
	f.Add("{")
	h := handler()
	f.Fuzz(func(t *testing.T, body string) { sane(t, ask(h, http.MethodPost, "/v1/batches", body)) })
}

// FuzzNames uses arbitrary text as ids, cursors and names: the answer is a success or a problem.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"17", "17.3", "-1", "", "..", "/", "9999999999999999999", "%", "i-1\x00", "a&limit=1"} {
		f.Add(s)
	}
	h := handler()
	f.Fuzz(func(t *testing.T, s string) {
		for _, path := range []string{
			"/v1/jobs/" + url.PathEscape(s), "/v1/instances/" + url.PathEscape(s), "/v1/jobs/17/outputs/content?path=" + url.QueryEscape(s),
			"/v1/jobs?after=" + url.QueryEscape(s), "/v1/jobs?label=" + url.QueryEscape(s), "/v1/instances?limit=" + url.QueryEscape(s), "/v1/explain?subject=" + url.QueryEscape(s),
			"/v1/events?recent=true&after=" + url.QueryEscape(s), "/v1/offers?memory=" + url.QueryEscape(s), "/v1/cost?since=" + url.QueryEscape(s), "/v1/cost?by=" + url.QueryEscape(s), "/" + s,
		} {
			if w := ask(h, http.MethodGet, path, ""); w != nil {
				sane(t, w)
			}
		}
	})
}

// FuzzBodies sends arbitrary bodies to the routes that have one: the answer is a success or a problem.
func FuzzBodies(f *testing.F) {
	routes := [...]struct{ method, path string }{
		{http.MethodPatch, "/v1/jobs/17"}, {http.MethodPost, "/v1/jobs/17.3/cancel"}, {http.MethodPost, "/v1/jobs/17/retry"}, {http.MethodPost, "/v1/inputs/missing"},
		{http.MethodPut, "/v1/inputs/" + strings.Repeat("0", 64)}, {http.MethodPost, "/v1/instances/i-1/hold"}, {http.MethodPost, "/v1/tokens"}, {http.MethodDelete, "/v1/tokens/t"},
	}
	for i, body := range []string{
		`{"priority": 5}`, `{"reason": "not wanted"}`, `{"jobs": []}`, `{"hashes": ["` + strings.Repeat("0", 64) + `"]}`, "contents", `{"reason": ""}`,
		`{"user": "ada", "role": "view", "expires": 3600}`, "null", `{"priority": 1e400}`, `[[[[[[`, `{"reason": "\ud800"}`,
	} {
		f.Add(uint8(i), body)
	}
	h := handler()
	f.Fuzz(func(t *testing.T, route uint8, body string) {
		to := routes[int(route)%len(routes)]
		sane(t, ask(h, to.method, to.path, body))
	})
}

// saying is a controller that gives every request the same answer.
type saying struct {
	status int
	kind   string
	body   string
}

func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "123 Odd", StatusCode: s.status, Header: http.Header{"Content-Type": {s.kind}, "Location": {s.body}}, Body: io.NopCloser(strings.NewReader(s.body)), Request: r,
	}, nil
}

// FuzzAnswers gives a client arbitrary answers: each call ends with an answer or with an error that has a text.
func FuzzAnswers(f *testing.F) {
	const stream, problem, plain = "text/event-stream", "application/problem+json", "application/json"
	for _, s := range []saying{
		{200, plain, `{"jobs":{"queued":3},"waiting":[{"count":3,"reason":{"code":"limit"}}]}`}, {200, plain, `[{"id":"17.3","name":"a"}]`}, {200, plain, "null"},
		{200, plain, `{"items":[{"id":"17"}],"next":"x"}`}, {500, problem, `{"kind":"internal","detail":"it broke"}`}, {400, problem, `{}`}, {302, "", "http://example.org"},
		{200, stream, "id: 1-1\ndata: {\"id\":\"1-1\",\"text\":\"hello\"}\n\nevent: end\ndata:\n\n"}, {200, stream, "event: error\ndata: {\"kind\":\"transient\"}\n\n"},
		{200, stream, "data: {\n\n"}, {200, stream, strings.Repeat("data: x\n", 200_000)}, {200, stream, ":" + strings.Repeat("x", 1<<21)},
	} {
		f.Add(s.status, s.kind, s.body)
	}
	f.Fuzz(func(t *testing.T, status int, kind, body string) {
		c, err := httpapi.NewClient("http://127.0.0.1:1", drover.NewSecret("s"), &http.Client{Transport: saying{status, kind, body}})
		if err != nil {
			t.Fatal(err)
		}
		for what, err := range askAll(t, c) {
			if err != nil && drover.AsError(err, "").Message == "" {
				t.Fatalf("%s: an error without a message: %#v", what, err)
			}
		}
	})
}

// askAll makes every kind of call that reads an answer.
func askAll(t *testing.T, c *httpapi.Client) map[string]error {
	errs, ctx := map[string]error{}, t.Context()
	_, errs["status"] = c.Status(ctx)
	_, errs["jobs"] = c.Jobs(ctx, drover.JobFilter{})
	_, errs["job"] = c.Job(ctx, drover.JobID{Number: 17, Index: 3})
	_, errs["instances"] = c.Instances(ctx, drover.InstanceFilter{})
	_, errs["offers"] = c.Offers(ctx, drover.OfferFilter{})
	_, errs["explain"] = c.Explain(ctx, "")
	_, errs["tokens"] = c.Tokens(ctx)
	_, errs["outputs"] = c.Outputs(ctx, drover.JobID{Number: 17, Index: -1})
	_, errs["missing"] = c.MissingInputs(ctx, []string{"x"})
	logs, err := c.Logs(ctx, drover.LogRequest{Job: drover.JobID{Number: 17, Index: -1}})
	if errs["logs"] = err; err == nil {
		_, errs["logs"] = io.Copy(io.Discard, logs)
		logs.Close()
	}
	for _, err := range c.Events(ctx, drover.EventFilter{Recent: true}) {
		errs["events"] = err
	}
	return errs
}
