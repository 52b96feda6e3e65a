package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"drover"
	"drover/internal/httpapi"
)

const hello = "name: hello\njobs:\n  - name: greet\n    array: 20\n    command: [echo, hello]\n"

// TestSubmitByHand submits batches as curl would.
func TestSubmitByHand(t *testing.T) {
	f := &fake{}
	_, s := serve(t, f)
	for _, kind := range []string{"", "application/yaml", "text/yaml; charset=utf-8", "application/json"} {
		t.Run("accepts a batch file unchanged, with the content type "+kind, func(t *testing.T) {
			f.asked = nil
			got := do(t, s.URL, "POST", "/v1/batches", "Bearer submit", hello, "Content-Type: "+kind, "Idempotency-Key: k")
			if got.StatusCode != 201 || !strings.HasPrefix(got.Header.Get("Location"), "/v1/jobs?batch=") {
				t.Fatalf("got %d %v %s", got.StatusCode, got.Header, got.text)
			}
			asked := f.asked[1].(drover.Submission)
			if asked.Key != "k" || asked.Batch.Name != "hello" || asked.Batch.Jobs[0].Array.Size() != 20 {
				t.Errorf("asked %+v", asked)
			}
		})
	}
	t.Run("a fault has its position", func(t *testing.T) {
		got := do(t, s.URL, "POST", "/v1/batches", "Bearer submit", strings.Replace(hello, "command", "comand", 1), "Content-Type: application/yaml")
		p := got.problem(t)
		last := p.Errors[len(p.Errors)-1]
		if got.StatusCode != 400 || p.Kind != drover.KindInvalid || last.Line != 5 || last.Column != 5 || last.Location != "body" || last.Hint != "did you mean command?" || !strings.Contains(last.Message, "comand") {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("reports truncated JSON as such", func(t *testing.T) {
		got := do(t, s.URL, "POST", "/v1/batches", "Bearer submit", `{"jobs":[{"name":"x"`, "Content-Type: application/json")
		if got.StatusCode != 400 || !strings.Contains(got.problem(t).Detail, "unexpected end of JSON input") {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("another content type is refused", func(t *testing.T) {
		got := do(t, s.URL, "POST", "/v1/batches", "Bearer submit", hello, "Content-Type: application/x-www-form-urlencoded")
		if got.StatusCode != 415 || got.problem(t).Kind != drover.KindInvalid {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("an empty body is refused", func(t *testing.T) {
		if got := do(t, s.URL, "POST", "/v1/batches", "Bearer submit", ""); got.StatusCode != 400 || got.problem(t).Kind != drover.KindInvalid {
			t.Errorf("got %s", got.text)
		}
	})
}

// TestVerbsByHand sends instances verbs as curl would.
// covers D5
func TestVerbsByHand(t *testing.T) {
	f := &fake{}
	_, s := serve(t, f)
	for _, c := range []struct{ name, query, body, want string }{
		{"no body is needed", "", "", ""},
		{"the reason may be in the query", "?reason=the+disk", "", "the disk"},
		{"the reason may be in the body", "", `{"reason": "the disk"}`, "the disk"},
		{"the reason in the body takes precedence", "?reason=a", `{"reason": "b"}`, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.asked = nil
			got := do(t, s.URL, "POST", "/v1/instances/i-1/drain"+c.query, "Bearer operate", c.body)
			if diff := cmp.Diff([]any{"instruct", "i-1", drover.VerbDrain, c.want}, f.asked); got.StatusCode != 200 || diff != "" {
				t.Errorf("got %d %s\n%s", got.StatusCode, got.text, diff)
			}
		})
	}
}

// TestRefusals checks that the answer to a faulty request is a problem that names the fault.
func TestRefusals(t *testing.T) {
	_, s := serve(t, &fake{}, func(c *httpapi.Config) { c.Limits.Input = 10 })
	for _, c := range []struct {
		name, method, path, body, header string
		status                           int
		kind                             drover.ErrorKind
		says                             string
	}{
		{"an unknown path", "GET", "/v1/machines", "", "", 404, drover.KindNotFound, "the API has no path /v1/machines"},
		{"an empty part in a path", "GET", "//v1/jobs", "", "", 404, drover.KindNotFound, "the API has no path //v1/jobs"},
		{"dots in a path", "GET", "/v1/../v1/jobs", "", "", 404, drover.KindNotFound, "the API has no path"},
		{"an unsupported method", "DELETE", "/v1/jobs/17", "", "", 405, drover.KindUnsupported, "accepts GET, PATCH, not DELETE"},
		{"malformed JSON", "POST", "/v1/instances/i/drain", "{", "", 400, drover.KindInvalid, "body"},
		{"an unknown key", "POST", "/v1/instances/i/drain", `{"raeson": "x"}`, "", 400, drover.KindInvalid, "raeson"},
		{"a form as the body", "POST", "/v1/instances/i/drain", "reason=x", "Content-Type: application/x-www-form-urlencoded", 415, drover.KindInvalid, "unknown content type"},
		{"an invalid job id", "GET", "/v1/jobs/x", "", "", 400, drover.KindInvalid, "is not a job id"},
		{"a limit that is not a number", "GET", "/v1/jobs?limit=x", "", "", 400, drover.KindInvalid, "query.limit: invalid integer"},
		{"an unknown job state", "GET", "/v1/jobs?state=bogus", "", "", 400, drover.KindInvalid, "query.state"},
		{"an unknown instance state", "GET", "/v1/instances?state=queued", "", "", 400, drover.KindInvalid, "query.state"},
		{"a negative limit", "GET", "/v1/jobs?limit=-1", "", "", 400, drover.KindInvalid, "query.limit"},
		{"a label without a value", "GET", "/v1/jobs?label=x", "", "", 400, drover.KindInvalid, "has no value"},
		{"a label with two values", "GET", "/v1/jobs?label=x=1&label=x=2", "", "", 400, drover.KindInvalid, `the label "x" is given twice`},
		{"an unknown stream", "GET", "/v1/jobs/1/logs?stream=x", "", "", 400, drover.KindInvalid, "query.stream"},
		{"an invalid time", "GET", "/v1/cost?since=yesterday", "", "", 400, drover.KindInvalid, `"yesterday" is not a time`},
		{"a time too far in the future", "GET", "/v1/cost?until=9999-01-01T00:00:00Z", "", "", 400, drover.KindInvalid, `is not a time`},
		{"results older than any computer", "POST", "/v1/jobs/prune", `{"before": "1600-01-01T00:00:00Z"}`, "", 400, drover.KindInvalid, `is not a time`},
		{"an invalid size", "GET", "/v1/offers?memory=4GB", "", "", 400, drover.KindInvalid, `"4GB" is not a size`},
		{"an unknown architecture", "GET", "/v1/offers?arch=arm", "", "", 400, drover.KindInvalid, "query.arch"},
		{"an unknown level", "GET", "/v1/events?level=loud", "", "", 400, drover.KindInvalid, "query.level"},
		{"an output without a path", "GET", "/v1/jobs/1/outputs/content", "", "", 400, drover.KindInvalid, "query.path"},
		{"an invalid hash", "PUT", "/v1/inputs/abc", "x", "", 400, drover.KindInvalid, "path.hash"},
		{"a missing priority", "PATCH", "/v1/jobs/1", "{}", "", 400, drover.KindInvalid, "priority"},
		{"too many hashes", "POST", "/v1/inputs/missing", "[" + strings.Repeat(`"a",`, 10_000) + `"a"]`, "", 400, drover.KindInvalid, "body"},
		{"a batch that is too large", "POST", "/v1/batches", strings.Repeat("#", 8<<20+1), "", 413, drover.KindInvalid, "larger than 8Mi"},
		{"a body that is too large", "POST", "/v1/tokens", strings.Repeat(" ", 64<<10+1), "", 413, drover.KindInvalid, "larger than 64Ki"},
		{"an input that is too large", "PUT", "/v1/inputs/" + zeros, "more than ten bytes", "", 413, drover.KindInvalid, "larger than 10"},
		{"a key that is too long", "POST", "/v1/batches", hello, "Idempotency-Key: " + strings.Repeat("k", 256), 400, drover.KindInvalid, "header.Idempotency-Key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := do(t, s.URL, c.method, c.path, "Bearer admin", c.body, c.header)
			p := got.problem(t)
			if got.StatusCode != c.status || p.Kind != c.kind || !strings.Contains(p.Detail, c.says) {
				t.Errorf("got %s", got.text)
			}
			if c.status == 405 && got.Header.Get("Allow") != "GET, PATCH" {
				t.Errorf("Allow is %q", got.Header.Get("Allow"))
			}
		})
	}
	t.Run("the problem does not repeat the request", func(t *testing.T) {
		if got := do(t, s.URL, "POST", "/v1/tokens", "Bearer admin", `{"user": "u", "role": {"hunter2": 1}}`); got.StatusCode != 400 || strings.Contains(got.text, "hunter2") {
			t.Errorf("got %s", got.text)
		}
	})
	t.Run("HEAD is refused", func(t *testing.T) {
		if got := do(t, s.URL, "HEAD", "/v1/events", "Bearer view", ""); got.StatusCode != 405 {
			t.Errorf("got %d", got.StatusCode)
		}
	})
}

func TestUnknownParametersAreRefused(t *testing.T) {
	f := &fake{}
	_, s := serve(t, f)
	for _, c := range []struct{ method, path, message, hint string }{
		{"GET", "/v1/jobs?stat=failed&limit=2", `GET /v1/jobs has no parameter "stat"`, "it takes job, batch, user, mine, state, label, elements, tried, since, match, newest, after, limit"},
		{"POST", "/v1/jobs/1/cancel?why=x", `POST /v1/jobs/{id}/cancel has no parameter "why"`, "it takes reason"},
		{"GET", "/v1/jobs?state=failed&state=cancelled", `the parameter "state" is given 2 times`, "give it once, with several values separated by commas if it takes a list"},
		{"GET", "/v1/status?full=1", `GET /v1/status has no parameter "full"`, "it takes no parameters"},
		{"GET", "/v1/events?jop=1", `GET /v1/events has no parameter "jop"`, "it takes after, job, instance, level, recent, last"},
		{"GET", "/v1/jobs?a;b", "the query string is malformed: invalid semicolon separator in query", "it takes job, batch, user, mine, state, label, elements, tried, since, match, newest, after, limit"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			f.asked = nil
			got := do(t, s.URL, c.method, c.path, "Bearer submit", "")
			if p := got.problem(t); got.StatusCode != 400 || p.Kind != drover.KindInvalid || p.Detail != c.message || p.Hint != c.hint || f.asked != nil {
				t.Errorf("got %s, and called %v", got.text, f.asked)
			}
		})
	}
	t.Run("a probe may add any parameter", func(t *testing.T) {
		if got := do(t, s.URL, "GET", "/readyz?verbose", "", ""); got.StatusCode != 200 {
			t.Errorf("got %s", got.text)
		}
	})
}

func TestHeaders(t *testing.T) {
	_, s := serve(t, &fake{})
	for path, kind := range map[string]string{
		"/v1/jobs":        "application/json",
		"/v1/jobs/1/logs": "text/plain; charset=utf-8",
		"/v1/jobs/1/outputs/content?path=a/b%22%0A.html": "application/octet-stream",
		"/v1/events?recent=true":                         "text/event-stream",
		"/v1/dump":                                       "application/json",
		"/openapi.json":                                  "application/openapi+json",
		"/livez":                                         "text/plain; charset=utf-8",
		"/nothing":                                       "application/problem+json",
	} {
		t.Run(path+" is not cached, sniffed or open to other sites", func(t *testing.T) {
			got := do(t, s.URL, "GET", path, "Bearer admin", "", "Origin: https://elsewhere.example")
			want := map[string]string{"Content-Type": kind, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": ""}
			for name, value := range want {
				if got.Header.Get(name) != value {
					t.Errorf("%s is %q, want %q", name, got.Header.Get(name), value)
				}
			}
			if strings.Contains(got.text, "$schema") || got.Header.Get("Link") != "" && strings.Contains(got.Header.Get("Link"), "describedby") {
				t.Errorf("it links to schemas: %v %s", got.Header, got.text)
			}
			if disposition := got.Header.Get("Content-Disposition"); strings.Contains(path, "content") && !strings.HasPrefix(disposition, "attachment; filename") {
				t.Errorf("Content-Disposition is %q", disposition)
			}
		})
	}
	t.Run("a list links to its next page", func(t *testing.T) {
		got := do(t, s.URL, "GET", "/v1/jobs?state=failed&limit=2", "Bearer view", "")
		if want := `</v1/jobs?after=17.3&limit=2&state=failed>; rel="next"`; got.Header.Get("Link") != want {
			t.Errorf("got %q, want %q", got.Header.Get("Link"), want)
		}
	})
	t.Run("a refusal for rate says when to retry", func(t *testing.T) {
		e := drover.Errorf(drover.KindRateLimit, "slowly")
		e.RetryAt = drover.TimeOf(time.Now().Add(90 * time.Second))
		_, s := serve(t, &fake{err: e})
		got := do(t, s.URL, "GET", "/v1/status", "Bearer view", "")
		if after := got.Header.Get("Retry-After"); got.StatusCode != 429 || after != "90" || got.problem(t).RetryAt == "" {
			t.Errorf("got %d, after %s: %s", got.StatusCode, after, got.text)
		}
	})
}

func TestHosts(t *testing.T) {
	h, s := serve(t, &fake{}, func(c *httpapi.Config) { c.Reach = httpapi.ReachOf("127.0.0.1:8420", "https://drover.example.org") })
	for host, want := range map[string]int{
		"127.0.0.1:8420": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:8420": 200, "drover.example.org": 200,
		"evil.example": 403, "127.0.0.1.evil.example:8420": 403, "localhost.": 403,
	} {
		if got := do(t, s.URL, "GET", "/livez", "", "", "Host: "+host); got.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, got.StatusCode, want)
		}
	}
	h.Move(httpapi.ReachOf("127.0.0.1:8420", "https://elsewhere.example.org"))
	for host, want := range map[string]int{"elsewhere.example.org": 200, "drover.example.org": 403} {
		if got := do(t, s.URL, "GET", "/livez", "", "", "Host: "+host); got.StatusCode != want {
			t.Errorf("after Move, %s: %d, want %d", host, got.StatusCode, want)
		}
	}
	if hosts := httpapi.ReachOf("0.0.0.0:8420", "https://drover.example.org").Hosts; hosts != nil {
		t.Errorf("off loopback, only the hosts %v are accepted", hosts)
	}
}

func TestReadinessShowsTheNotice(t *testing.T) {
	notice := ""
	_, s := serve(t, &fake{}, func(c *httpapi.Config) { c.Notice = func() string { return notice } })
	for text, want := range map[string]string{"": "ok\n", "the file is refused": "ok\nthe file is refused\n"} {
		notice = text
		if got := do(t, s.URL, "GET", "/readyz", "", ""); got.StatusCode != 200 || got.text != want {
			t.Errorf("%d, %q; want %q", got.StatusCode, got.text, want)
		}
	}
}

func TestPanics(t *testing.T) {
	var log strings.Builder
	_, s := serve(t, panicking{&fake{}}, logTo(&log))
	got := do(t, s.URL, "GET", "/v1/status", "Bearer view", "")
	if got.StatusCode != 500 || got.problem(t).Kind != drover.KindInternal || strings.Contains(got.text, "out of cheese") {
		t.Errorf("got %s", got.text)
	}
	s.Close()
	if !strings.Contains(log.String(), "out of cheese") || !strings.Contains(log.String(), "fake_test.go") {
		t.Errorf("the log lacks the panic or its place: %s", log.String())
	}
}

func TestLog(t *testing.T) {
	var log strings.Builder
	_, s := serve(t, &fake{}, logTo(&log))
	do(t, s.URL, "GET", "/v1/explain?subject=secret-subject", "Bearer admin", "")
	do(t, s.URL, "GET", "/v1/status", "Bearer secret-token", "")
	s.Close()
	if strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "path=/v1/explain status=200") || !strings.Contains(log.String(), "path=/v1/status status=401") {
		t.Errorf("the log is %s", log.String())
	}
}

func TestReady(t *testing.T) {
	err := errors.New("the store is asleep")
	h, s := serve(t, &fake{}, func(c *httpapi.Config) {
		c.Ready = func(ctxt) error { return err }
	})
	if got := do(t, s.URL, "GET", "/readyz", "", ""); got.StatusCode != 503 || strings.Contains(got.text, "store") {
		t.Errorf("not ready: %s", got.text)
	}
	client, bad := httpapi.NewClient(s.URL, drover.NewSecret("view"), nil)
	if bad != nil {
		t.Fatal(bad)
	}
	if err := client.Ready(t.Context()); drover.KindOf(err) != drover.KindTransient {
		t.Errorf("a client gets %v", err)
	}
	err = nil
	if err := client.Ready(t.Context()); err != nil {
		t.Errorf("a client gets %v", err)
	}
	if got := do(t, s.URL, "GET", "/readyz", "", ""); got.StatusCode != 200 || got.text != "ok\n" {
		t.Errorf("ready: %s", got.text)
	}
	h.Close()
	if got := do(t, s.URL, "GET", "/readyz", "", ""); got.StatusCode != 503 {
		t.Errorf("after Close: %s", got.text)
	}
}

// TestDescription checks answers against the description of the API.
func TestDescription(t *testing.T) {
	_, s := serve(t, &fake{})
	text := do(t, s.URL, "GET", "/openapi.json", "Bearer view", "").text
	var doc struct {
		OpenAPI    string
		Info       struct{ Version string }
		Servers    []struct{ URL string }
		Components struct{ Schemas map[string]any }
		Paths      map[string]map[string]struct {
			Security  []map[string]any
			Responses map[string]struct {
				Content map[string]struct{ Schema any }
			}
		}
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "#/components/schemas/", "#/$defs/")), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.2.3" || len(doc.Servers) != 1 {
		t.Errorf("OpenAPI %s, version %s, %d servers", doc.OpenAPI, doc.Info.Version, len(doc.Servers))
	}
	known := map[string]*jsonschema.Resolved{} // shared by many answers
	resolve := func(schema any) (*jsonschema.Resolved, error) {
		key := fmt.Sprint(schema)
		if resolved, ok := known[key]; ok {
			return resolved, nil
		}
		whole, err := json.Marshal(map[string]any{"allOf": []any{schema}, "$defs": doc.Components.Schemas})
		if err != nil {
			return nil, err
		}
		var parsed jsonschema.Schema
		if err := json.Unmarshal(whole, &parsed); err != nil {
			return nil, err
		}
		resolved, err := parsed.Resolve(nil)
		known[key] = resolved
		return resolved, err
	}
	valid := func(schema any, answer string) error {
		resolved, err := resolve(schema)
		if err != nil {
			return err
		}
		var value any
		if err := json.Unmarshal([]byte(answer), &value); err != nil {
			return err
		}
		return resolved.Validate(value)
	}
	for _, a := range accesses() {
		op := doc.Paths[a.path][strings.ToLower(a.method)]
		got := do(t, s.URL, a.method, strings.NewReplacer("{id}", "17.3", "{hash}", zeros).Replace(a.path)+a.query, "Bearer admin", a.body)
		kind, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
		answer, ok := op.Responses[got.Status[:3]]
		switch {
		case !ok, got.StatusCode != 204 && answer.Content[kind].Schema == nil:
			t.Errorf("%s %s: %s of type %q is not described", a.method, a.path, got.Status, kind)
		case kind == "application/json":
			if err := valid(answer.Content[kind].Schema, got.text); err != nil {
				t.Errorf("%s %s: the response does not match its schema: %v\n%s", a.method, a.path, err, got.text)
			}
		}
		if len(op.Security) == 0 || (len(op.Security[0]) == 0) != (a.role == "") {
			t.Errorf("%s %s: the described security is %v", a.method, a.path, op.Security)
		}
		refused := do(t, s.URL, a.method, "/v1/nothing", "", "")
		if err := valid(op.Responses["default"].Content["application/problem+json"].Schema, refused.text); err != nil {
			t.Errorf("%s %s: an error response does not match its schema: %v", a.method, a.path, err)
		}
	}
	for schema, value := range map[string]any{"Offer": drover.Offer{}, "Costs": drover.Costs{Lines: []drover.CostLine{}}, "File": drover.File{Path: "a\xff"}} {
		answer, err := json.Marshal(value)
		if err == nil {
			err = valid(map[string]any{"$ref": "#/$defs/" + schema}, string(answer))
		}
		if err != nil {
			t.Errorf("%s does not match its schema: %v\n%s", schema, err, answer)
		}
	}
	for _, leaked := range []string{"ErrorModel", "ErrorDetail"} {
		if strings.Contains(text, leaked) {
			t.Errorf("it mentions %s", leaked)
		}
	}
}
