package digitalocean

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
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
		for _, answer := range []*godo.ErrorResponse{{Response: html, Message: "<html>"}, {Response: &http.Response{StatusCode: 404}}} {
			if err := errs.Classify("", answer); drover.KindOf(err) != drover.KindTransient {
				t.Error(err)
			}
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
	synctest.Test(t, func(t *testing.T) {
		reset := fmt.Sprint(time.Now().Add(20 * time.Minute).Unix())
		for name, c := range map[string]struct {
			status              int
			retryAfter, resetAt string
			want                time.Duration // 0: not given
		}{
			"the minute's limit":   {429, "29", reset, 29 * time.Second},
			"the hour's limit":     {429, "", reset, 20 * time.Minute},
			"no header":            {429, "", "", 0},
			"a past time":          {429, "", "402425459", 0},
			"a distant time":       {429, "", "99999999999", 0},
			"not a number":         {429, "soon", "later", 0},
			"a negative wait":      {429, "-5", "", 0},
			"a wait of many years": {429, "999999999", reset, time.Hour},
			"an overload":          {503, "5", reset, 5 * time.Second},
			"an internal error":    {500, "", reset, 0},
			"a locked Droplet":     {422, "", reset, 0},
		} {
			h := http.Header{"Retry-After": {c.retryAfter}, "Ratelimit-Reset": {c.resetAt}}
			if a, _ := read(&godo.ErrorResponse{Response: &http.Response{StatusCode: c.status, Header: h}}); a.Retry != c.want {
				t.Errorf("%s: got %v, want %v", name, a.Retry, c.want)
			}
		}
	})
}

func TestNoAnswerIsTransient(t *testing.T) {
	f := newFake(t)
	c := f.open(t)
	f.Close()
	drivertest.ListFails(t, c, drover.KindTransient)
}

func TestPageShowsListLag(t *testing.T) { drivertest.ShowsLag(t, "DigitalOcean", listLag) }
