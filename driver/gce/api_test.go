package gce

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers L18
func TestNoCallIsRetried(t *testing.T) {
	drivertest.Once(t, newFake(), requestFor("one"), func(t *testing.T, n *drivertest.Network) driver.Cloud { return imitate(t, n, "") })
}

// answering is a network with one answer to every request.
type answering func(*http.Request) *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

func TestUnreadableAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string // empty for an endless answer
		kind   drover.ErrorKind
		words  string
	}{
		"stops reading an endless answer":                        {200, "", drover.KindTransient, kit.ErrTooLarge.Error()},
		"refuses a truncated answer":                             {200, `{"name": "o`, drover.KindTransient, "unexpected end of JSON input"},
		"refuses an answer that is not Google's":                 {200, "<html>", drover.KindTransient, "invalid character"},
		"classifies an error that is not Google's by its status": {403, "<html>", drover.KindAuthentication, "HTTP 403: Forbidden"},
		"follows no redirect":                                    {302, "elsewhere", drover.KindTransient, "HTTP 302: Found"},
	} {
		t.Run(name, func(t *testing.T) {
			c := imitate(t, answering(func(*http.Request) *http.Response {
				body := io.Reader(strings.NewReader(tt.body))
				if tt.body == "" {
					body = endless{}
				}
				return &http.Response{StatusCode: tt.status, Header: http.Header{"Location": {"https://example.com"}}, Body: io.NopCloser(body)}
			}), "")
			for _, err := range []error{c.Destroy(t.Context(), "us-central1-a/one"), c.SetTags(t.Context(), "us-central1-a/one", nil)} {
				if drover.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("%s: %v", drover.KindOf(err), err)
				}
			}
		})
	}
}

func TestEmptyAnswers(t *testing.T) {
	f := newFake()
	c := imitate(t, f, "")
	in, _ := drivertest.Create(t, c, requestFor("one"))
	f.hollow = true
	for name, call := range map[string]func(context.Context) error{
		"create":    func(ctx context.Context) error { _, _, err := c.Create(ctx, requestFor("two")); return err },
		"list":      func(ctx context.Context) error { _, err := c.List(ctx, nil); return err },
		"describe":  func(ctx context.Context) error { _, err := c.Describe(ctx, in.ID); return err },
		"tag":       func(ctx context.Context) error { return c.SetTags(ctx, in.ID, in.Tags) },
		"stop":      func(ctx context.Context) error { return c.Stop(ctx, in.ID) },
		"start":     func(ctx context.Context) error { return c.Start(ctx, in.ID) },
		"destroy":   func(ctx context.Context) error { return c.Destroy(ctx, in.ID) },
		"offerings": func(ctx context.Context) error { _, err := c.Offerings(ctx); return err },
		"types":     func(ctx context.Context) error { _, err := c.fetchTypes(ctx); return err },
		"prices":    func(ctx context.Context) error { _, err := c.fetchPrices(ctx); return err },
		"images":    func(ctx context.Context) error { _, err := c.FindImages(ctx, "one", ""); return err },
		"leftovers": func(ctx context.Context) error { _, err := c.Leftovers(ctx, "fleet"); return err },
		"attribute": func(ctx context.Context) error { _, err := c.Attribute(ctx, "one"); return err },
	} {
		if err := errs.Classify(name, call(t.Context())); drover.KindOf(err) != drover.KindTransient {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endless is an answer that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A project in an organization's domain has a colon in its name, and a zone could be anything.
func TestNamesAreEscaped(t *testing.T) {
	var paths []string
	c := imitate(t, answering(func(r *http.Request) *http.Response {
		paths = append(paths, r.URL.EscapedPath())
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"kind": "compute#any"}`))}
	}), "")
	c.api.project = "example.com:lab/1"
	drivertest.Must(t, c.Stop(t.Context(), "us-central1-a/one"))
	_, err := c.preemptions(t.Context(), "a?b")
	drivertest.Must(t, err)
	_, err = c.FindImages(t.Context(), "example.com:images/family/one", "")
	drivertest.Must(t, err)
	want := []string{
		"/compute/v1/projects/example.com%3Alab%2F1/zones/us-central1-a/instances/one/stop", "/compute/v1/projects/example.com%3Alab%2F1/zones/a%3Fb/operations",
		"/compute/v1/projects/example.com%3Aimages/global/images",
	}
	if got := strings.Join(paths, " "); got != strings.Join(want, " ") {
		t.Error(got)
	}
}

func TestRequestsAreSigned(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"access_token": "secret", "token_type": "Bearer", "expires_in": 3600, "error": "invalid_grant"}`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account(t, server.URL))
	t.Setenv("GOOGLE_CLOUD_PROJECT", "")
	var sent http.Header
	network := answering(func(r *http.Request) *http.Response {
		sent = r.Header
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"kind": "compute#any"}`))}
	})
	signing := func(universe string) *cloud { return imitate(t, &credentials{universe: universe, next: network}, "") }

	t.Run("with the credentials' token, for the project that pays", func(t *testing.T) {
		drivertest.Must(t, signing("googleapis.com").Stop(t.Context(), "us-central1-a/one"))
		if sent.Get("Authorization") != "Bearer secret" || len(sent["X-Goog-User-Project"]) > 0 || sent.Get("X-Goog-Api-Version") != computeVersion {
			t.Errorf("%v", sent)
		}
		t.Setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "payer")
		drivertest.Must(t, signing("googleapis.com").Stop(t.Context(), "us-central1-a/one"))
		if sent.Get("X-Goog-User-Project") != "payer" {
			t.Errorf("%v", sent)
		}
	})
	t.Run("no request is sent without a token, or with one for another universe", func(t *testing.T) {
		sent, status = nil, http.StatusBadRequest
		for _, c := range []*cloud{signing("googleapis.com"), signing("example.com")} {
			if err := c.Stop(t.Context(), "us-central1-a/one"); drover.KindOf(err) != drover.KindAuthentication || sent != nil {
				t.Errorf("%v, after %v", err, sent)
			}
		}
	})
	t.Run("a key that Google refuses is read again, since it may have been replaced", func(t *testing.T) {
		file := account(t, server.URL)
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		c := signing("googleapis.com")
		if err := c.Stop(t.Context(), "us-central1-a/one"); drover.KindOf(err) != drover.KindAuthentication {
			t.Error(err)
		}
		good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token": "new", "token_type": "Bearer", "expires_in": 3600}`)
		}))
		t.Cleanup(good.Close)
		drivertest.Must(t, os.Rename(account(t, good.URL), file))
		drivertest.Must(t, c.Stop(t.Context(), "us-central1-a/one"))
		if sent.Get("Authorization") != "Bearer new" {
			t.Errorf("%v", sent)
		}
	})
	t.Run("the project defaults to the credentials'", func(t *testing.T) {
		a, err := connect(t.Context(), Config{}, nil, nil)
		if err != nil || a.project != "lab-3" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

// account writes the key of a service account, whose tokens come from the server, to a file and returns its name.
func account(t *testing.T, server string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	drivertest.Must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	drivertest.Must(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "lab-3", "client_email": "drover@example.com", "token_uri": server,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	drivertest.Must(t, err)
	file := t.TempDir() + "/account.json"
	drivertest.Must(t, os.WriteFile(file, text, 0o600))
	return file
}
