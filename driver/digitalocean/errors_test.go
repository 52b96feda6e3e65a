package digitalocean

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/godo"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// covers C5
func TestErrors(t *testing.T) {
	drivertest.Errors(t, "digitalocean", &errs, func(a kit.Answer) error {
		return &godo.ErrorResponse{Response: &http.Response{StatusCode: a.Status, Header: http.Header{"Retry-After": {"5"}}}, Message: a.Message, RequestID: "r"}
	})
	t.Run("a 404 response that is not DigitalOcean's is transient", func(t *testing.T) {
		html := &http.Response{StatusCode: 404, Header: http.Header{"Content-Type": {"text/html"}}}
		if err := errs.Classify("", &godo.ErrorResponse{Response: html, Message: "<html>"}); drover.KindOf(err) != drover.KindTransient {
			t.Error(err)
		}
	})
	for status, kind := range map[int]drover.ErrorKind{404: drover.KindInvalid, 500: drover.KindTransient, 302: drover.KindTransient} {
		t.Run(fmt.Sprintf("the create call fails with %d", status), func(t *testing.T) {
			f := newFake(t)
			f.refuse = func(r *http.Request) (int, string) {
				if r.Method == "POST" && r.URL.Path == "/v2/droplets" {
					return status, "the reason"
				}
				return 0, ""
			}
			if e := drivertest.Refused(t, f.open(t), request("a")); e.Kind != kind || !strings.Contains(e.Message, "the reason") || !strings.Contains(e.Message, "create instance a") {
				t.Errorf("classified as %s: %v", e.Kind, e)
			}
		})
	}
}

// covers L18
func TestNoCallIsRetried(t *testing.T) {
	f := newFake(t)
	drivertest.Once(t, f, request("a"), func(t *testing.T, n *drivertest.Network) driver.Cloud {
		c, err := open(options(t, f.config(), "fleet"), n)
		drivertest.Must(t, err)
		return c
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	reset := fmt.Sprint(now.Add(20 * time.Minute).Unix())
	for name, c := range map[string]struct {
		header http.Header
		after  time.Duration // 0: not given
	}{
		"the minute's limit":   {header("retry-after", "29", "ratelimit-reset", reset), 29 * time.Second},
		"the hour's limit":     {header("ratelimit-reset", reset), 20 * time.Minute},
		"no header":            {header(), 0},
		"a past time":          {header("ratelimit-reset", "1402425459"), 0},
		"a distant time":       {header("ratelimit-reset", "99999999999"), 0},
		"not a number":         {header("retry-after", "soon", "ratelimit-reset", "later"), 0},
		"a negative wait":      {header("retry-after", "-5"), 0},
		"a wait of many years": {header("retry-after", "999999999"), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retryAfter(c.header, now); got != c.after {
				t.Errorf("got %v, want %v", got, c.after)
			}
		})
	}
}

func TestNoAnswerIsTransient(t *testing.T) {
	f := newFake(t)
	c := f.open(t)
	f.Close()
	drivertest.ListFails(t, c, drover.KindTransient)
}

func TestPageShowsListLag(t *testing.T) { drivertest.ShowsLag(t, "DigitalOcean", listLag) }
