package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover"
)

// access is what a route must require of a token, specified independently of the code.
type access struct {
	method, path string
	role         drover.Role
	attempt      bool // an attempt may use it, for its own job
	status       int  // on success
	query, body  string
}

func accesses() []access {
	const (
		nobody drover.Role = ""
		small              = "name: a\njobs: [{name: b, command: [x]}]\n"
	)
	return []access{
		{"POST", "/v1/batches", "submit", false, 201, "", small},
		{"GET", "/v1/jobs", "view", false, 200, "", ""},
		{"GET", "/v1/jobs/{id}", "view", true, 200, "", ""},
		{"POST", "/v1/jobs/prune", "operate", false, 200, "", `{"before": "2026-01-01T00:00:00Z"}`},
		{"PATCH", "/v1/jobs/{id}", "submit", false, 200, "", `{"priority": 3}`},
		{"POST", "/v1/jobs/{id}/cancel", "submit", false, 200, "", ""},
		{"POST", "/v1/jobs/{id}/retry", "submit", false, 200, "", ""},
		{"GET", "/v1/jobs/{id}/explain", "view", true, 200, "", ""},
		{"GET", "/v1/jobs/{id}/logs", "view", true, 200, "", ""},
		{"GET", "/v1/jobs/{id}/outputs", "view", true, 200, "", ""},
		{"GET", "/v1/jobs/{id}/outputs/content", "view", true, 200, "?path=a", ""},
		{"POST", "/v1/inputs/missing", "submit", false, 200, "", `[]`},
		{"PUT", "/v1/inputs/{hash}", "submit", false, 204, "", "contents"},
		{"POST", "/v1/queue/pause", "operate", false, 200, "", `{"reason": "a new image"}`},
		{"POST", "/v1/queue/resume", "operate", false, 200, "", ""},
		{"GET", "/v1/instances", "view", false, 200, "", ""},
		{"GET", "/v1/instances/{id}", "view", false, 200, "", ""},
		{"POST", "/v1/instances/{id}/drain", "operate", false, 200, "", ""},
		{"POST", "/v1/instances/{id}/hold", "operate", false, 200, "", ""},
		{"POST", "/v1/instances/{id}/release", "operate", false, 200, "", ""},
		{"POST", "/v1/instances/{id}/kill", "operate", false, 200, "", ""},
		{"GET", "/v1/pools", "view", false, 200, "", ""},
		{"PUT", "/v1/pools/{name}/size", "operate", false, 200, "", `{"size": 3, "reason": "a launch"}`},
		{"GET", "/v1/offers", "view", false, 200, "", ""},
		{"GET", "/v1/cost", "view", false, 200, "", ""},
		{"GET", "/v1/summary", "view", false, 200, "", ""},
		{"GET", "/v1/explain", "view", false, 200, "", ""},
		{"GET", "/v1/status", "view", true, 200, "", ""},
		{"GET", "/v1/events", "view", false, 200, "?recent=true", ""},
		{"POST", "/v1/config/diff", "admin", false, 200, "?name=a.yaml", "version: 1"},
		{"GET", "/v1/dump", "admin", false, 200, "", ""},
		{"GET", "/v1/tokens", "admin", false, 200, "", ""},
		{"POST", "/v1/tokens", "admin", false, 201, "", `{"user": "u", "role": "view"}`},
		{"DELETE", "/v1/tokens/{id}", "admin", false, 204, "", ""},
		{"POST", "/v1/login", "view", false, 200, "", ""},
		{"GET", "/openapi.json", "view", false, 200, "", ""},
		{"GET", "/metrics", "view", false, 200, "", ""},
		{"GET", "/livez", nobody, true, 200, "", ""},
		{"GET", "/readyz", nobody, true, 200, "", ""},
	}
}

// TestAccess calls every route with every kind of token.
func TestAccess(t *testing.T) {
	_, s := serve(t, &fake{})
	t.Run("the table has every route and no other", func(t *testing.T) {
		var doc struct{ Paths map[string]map[string]any }
		answer := do(t, s.URL, "GET", "/openapi.json", "Bearer view", "")
		if err := json.Unmarshal([]byte(answer.text), &doc); err != nil {
			t.Fatal(err)
		}
		served, listed := map[string]bool{}, map[string]bool{}
		for path, item := range doc.Paths {
			for method := range item {
				served[strings.ToUpper(method)+" "+path] = true
			}
		}
		for _, a := range accesses() {
			listed[a.method+" "+a.path] = true
		}
		if diff := cmp.Diff(listed, served); diff != "" {
			t.Errorf("(-table +served)\n%s", diff)
		}
	})
	for _, a := range accesses() {
		t.Run(a.method+" "+a.path, func(t *testing.T) {
			for header, want := range a.expected() {
				got := do(t, s.URL, a.method, strings.NewReplacer("{id}", "17.3", "{hash}", zeros).Replace(a.path)+a.query, header, a.body)
				if got.StatusCode != want {
					t.Errorf("with %q: %d, want %d\n%s", header, got.StatusCode, want, got.text)
				}
				a.checkRefusal(t, header, got)
			}
		})
	}
}

// expected returns the expected status for each Authorization header.
func (a access) expected() map[string]int {
	want := map[string]int{}
	for _, bad := range []string{"", "Bearer", "Bearer ", "Basic dTpw", "Bearer a b", "Bearer ü", "view", "Bearer wrong", "Bearer expired", "Bearer revoked"} {
		want[bad] = 401
	}
	for _, role := range drover.Roles() {
		want["Bearer "+string(role)] = 403
		if role.Allows(a.role) {
			want["Bearer "+string(role)] = a.status
		}
	}
	want["Bearer own"], want["Bearer other"] = 403, 403
	if a.attempt {
		want["Bearer own"] = a.status
	}
	if a.attempt && !strings.Contains(a.path, "{id}") {
		want["Bearer other"] = a.status
	}
	if a.role == "" {
		for header := range want {
			want[header] = a.status
		}
	}
	return want
}

// checkRefusal checks that a refusal names what is missing.
func (a access) checkRefusal(t *testing.T, header string, got reply) {
	t.Helper()
	says := map[string]string{
		"": "the request has none", "Basic dTpw": "malformed", "Bearer": "malformed", "Bearer a b": "malformed",
		"Bearer wrong": "there is no such token", "Bearer expired": "this token has expired", "Bearer revoked": "this token has revoked",
	}[header]
	switch got.StatusCode {
	case 401:
		if got.Header.Get("WWW-Authenticate") != `Bearer realm="drover"` || got.problem(t).Kind != drover.KindAuthentication {
			t.Errorf("with %q: %v %s", header, got.Header, got.text)
		}
	case 403:
		if header != "Bearer own" && header != "Bearer other" {
			says = "needs the role " + string(a.role)
		}
	}
	if got.StatusCode >= 400 && !strings.Contains(got.problem(t).Detail, says) {
		t.Errorf("with %q, the refusal lacks %q: %s", header, says, got.text)
	}
}

// covers D8
func TestAttemptsSeeTheirOwnJob(t *testing.T) {
	_, s := serve(t, &fake{})
	for path, want := range map[string]int{
		"/v1/jobs/17.3":      200,
		"/v1/jobs/17":        200, // the array that contains it
		"/v1/jobs/17.4":      403,
		"/v1/jobs/18":        403,
		"/v1/jobs/17.3%00":   403,
		"/v1/jobs/17.3/logs": 200,
		"/v1/jobs/18.3/logs": 403,
		"/v1/nothing":        404,
		"/v1/jobs":           403,
	} {
		if got := do(t, s.URL, "GET", path, "Bearer own", ""); got.StatusCode != want {
			t.Errorf("%s: %d, want %d: %s", path, got.StatusCode, want, got.text)
		}
	}
}

func TestJobsOfOthers(t *testing.T) {
	f := &fake{}
	_, s := serve(t, f)
	changes := map[string][2]string{"cancel": {"POST", "/v1/jobs/5/cancel"}, "retry": {"POST", "/v1/jobs/5/retry"}, "priority": {"PATCH", "/v1/jobs/5"}}
	for name, c := range changes {
		t.Run(name+" needs an operator, and a submitter changes nothing", func(t *testing.T) {
			f.asked = nil
			got := do(t, s.URL, c[0], c[1], "Bearer submit", `{"priority": 1}`)
			if name != "priority" {
				got = do(t, s.URL, c[0], c[1], "Bearer submit", "")
			}
			if got.StatusCode != 403 || !strings.Contains(got.text, "needs the role operate") {
				t.Errorf("a submitter: %d %s", got.StatusCode, got.text)
			}
			for _, asked := range f.asked {
				if asked == name {
					t.Error("it was done")
				}
			}
			body := ""
			if name == "priority" {
				body = `{"priority": 1}`
			}
			if got := do(t, s.URL, c[0], c[1], "Bearer operate", body); got.StatusCode != 200 {
				t.Errorf("an operator: %d %s", got.StatusCode, got.text)
			}
		})
	}
	t.Run("a job that does not exist is not found", func(t *testing.T) {
		if got := do(t, s.URL, "POST", "/v1/jobs/404/cancel", "Bearer submit", ""); got.StatusCode != 404 {
			t.Errorf("got %d %s", got.StatusCode, got.text)
		}
	})
}

func TestSubmitters(t *testing.T) {
	f := &fake{}
	_, s := serve(t, f)
	for _, c := range []struct {
		name, token, query, want string
		status                   int
	}{
		{"a submission belongs to its token's user", "submit", "", "submiter", 201},
		{"users may name themselves", "submit", "?user=submiter", "submiter", 201},
		{"an operator cannot submit for others", "operate", "?user=me", "", 403},
		{"an administrator can submit for others", "admin", "?user=me", "me", 201},
		{"an administrator cannot submit for an invalid user name", "admin", "?user=../x", "", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.asked = nil
			got := do(t, s.URL, "POST", "/v1/batches"+c.query, "Bearer "+c.token, "name: a\njobs: [{name: b, command: [x]}]")
			if got.StatusCode != c.status {
				t.Fatalf("got %d %s", got.StatusCode, got.text)
			}
			if c.status == 201 && f.asked[1].(drover.Submission).Batch.User != c.want {
				t.Errorf("it belongs to %q", f.asked[1].(drover.Submission).Batch.User)
			}
		})
	}
}

// reply is an answer with its body.
type reply struct {
	*http.Response
	text string
}

// shown is a problem document as any client would decode it.
type shown struct {
	Type, Title, Detail, Hint string
	Status                    int
	Kind                      drover.ErrorKind
	RetryAt                   string `json:"retry_at"`
	Errors                    []struct {
		Line, Column            int
		Location, Message, Hint string
	}
}

func (r reply) problem(t *testing.T) (p shown) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.text), &p); err != nil || r.Header.Get("Content-Type") != "application/problem+json" || p.Status != r.StatusCode || p.Type != "about:blank" || p.Kind == "" || p.Title == "" {
		t.Fatalf("not a problem document with status %d: %v %s", r.StatusCode, r.Header, r.text)
	}
	return p
}

// do makes a request as curl would. Headers are given as "Name: value".
func do(t *testing.T, base, method, path, authorization, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	for _, h := range headers {
		switch name, value, _ := strings.Cut(h, ": "); name {
		case "":
		case "Host":
			r.Host = value
		default:
			r.Header.Add(name, value)
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer, string(text)}
}
