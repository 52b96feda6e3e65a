package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drover"
	"drover/internal/httpapi"
)

func TestWithin(t *testing.T) {
	t.Run("a write can be read at once, and closing ends the request", func(t *testing.T) {
		gone := make(chan struct{})
		f := &fake{log: func(ctx context.Context) io.ReadCloser {
			r, w := io.Pipe()
			go func() {
				fmt.Fprintln(w, "one")
				<-ctx.Done()
				close(gone)
				w.Close()
			}()
			return r
		}}
		log, err := httpapi.Within(serveWithin(f), drover.NewSecret("operate")).Logs(t.Context(), drover.LogRequest{Job: element, Stream: drover.Stdout, Follow: true})
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(log).ReadString('\n')
		if line != "one\n" || err != nil {
			t.Errorf("%q, %v", line, err)
		}
		log.Close()
		<-gone
	})
	t.Run("a token allows the same as over the network", func(t *testing.T) {
		c := httpapi.Within(serveWithin(&fake{}), drover.NewSecret("view"))
		if _, err := c.Cancel(t.Context(), whole, ""); drover.KindOf(err) != drover.KindForbidden {
			t.Error(err)
		}
		if _, err := httpapi.Within(serveWithin(&fake{}), drover.NewSecret("expired")).Status(t.Context()); drover.KindOf(err) != drover.KindAuthentication {
			t.Error(err)
		}
	})
	t.Run("a panic becomes an error", func(t *testing.T) {
		if _, err := httpapi.Within(serveWithin(panicking{}), drover.NewSecret("view")).Status(t.Context()); drover.KindOf(err) != drover.KindInternal {
			t.Error(err)
		}
	})
}

func TestPages(t *testing.T) {
	pages := func(c *httpapi.Config) {
		c.Pages = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page ", r.URL.Path) })
		c.Login = func(token drover.Secret) (string, error) { return "/login?code=for-" + token.Reveal(), nil }
	}
	_, s := serve(t, &fake{}, pages)
	for _, c := range []struct{ method, path, token, want string }{
		{"GET", "/", "", "page /"},
		{"GET", "/jobs/1", "", "page /jobs/1"},
		{"POST", "/jobs/1/cancel", "", "page /jobs/1/cancel"},
		{"GET", "/jobs/../x", "", "this needs a token"},
		{"GET", "/", "Bearer view", "the API has no path /"},
		{"GET", "/v1/nothing", "", "this needs a token"},
		{"PUT", "/jobs", "", "this needs a token"},
		{"GET", "/v1/jobs", "", "this needs a token"},
	} {
		t.Run(c.method+" "+c.path+" "+c.token, func(t *testing.T) {
			r := httptest.NewRequest(c.method, "http://127.0.0.1/", nil)
			r.URL.Path = c.path
			if c.token != "" {
				r.Header.Set("Authorization", c.token)
			}
			w := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	t.Run("a link logs in with the caller's token", func(t *testing.T) {
		link, err := client(t, s.URL, "submit").Login(t.Context())
		if err != nil || link != s.URL+"/login?code=for-submit" {
			t.Errorf("%q, %v", link, err)
		}
	})
	t.Run("without pages, there is no link", func(t *testing.T) {
		_, s := serve(t, &fake{}, func(c *httpapi.Config) { c.Login = nil })
		if _, err := client(t, s.URL, "admin").Login(t.Context()); drover.KindOf(err) != drover.KindUnsupported {
			t.Error(err)
		}
	})
}
