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
	for status, kind := range map[int]drover.ErrorKind{404: drover.KindInvalid, 500: drover.KindTransient, 302: drover.KindTransient} {
		t.Run(fmt.Sprintf("a create is answered %d", status), func(t *testing.T) {
			f := newFake(t)
			f.refuse = func(r *http.Request) (int, string) {
				if r.Method == "POST" && r.URL.Path == "/v2/droplets" {
					return status, "said so"
				}
				return 0, ""
			}
			if e := drivertest.Refused(t, f.open(t), request("a")); e.Kind != kind || !strings.Contains(e.Message, "said so") || !strings.Contains(e.Message, "creating a") {
				t.Errorf("taken for %s: %v", e.Kind, e)
			}
		})
	}
}

// covers L18
func TestNothingIsTriedTwice(t *testing.T) {
	f := newFake(t)
	drivertest.Once(t, f, request("a"), func(t *testing.T, n *drivertest.Network) driver.Cloud {
		c, err := open(options(t, f.config(), "fleet"), n)
		drivertest.Must(t, err)
		return c
	})
}

func TestARateLimitSaysUntilWhen(t *testing.T) {
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
		"too many a minute":     {header("retry-after", "29", "ratelimit-reset", reset), 29 * time.Second},
		"too many an hour":      {header("ratelimit-reset", reset), 20 * time.Minute},
		"nothing is said":       {header(), 0},
		"a time that is past":   {header("ratelimit-reset", "1402425459"), 0},
		"a time that is far":    {header("ratelimit-reset", "99999999999"), 0},
		"no number":             {header("retry-after", "soon", "ratelimit-reset", "later"), 0},
		"a negative retry":      {header("retry-after", "-5"), 0},
		"a retry in many years": {header("retry-after", "999999999"), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := retryAfter(c.header, now); got != c.after {
				t.Errorf("%v, not %v", got, c.after)
			}
		})
	}
}

func TestWhatDoesNotAnswerIsTransient(t *testing.T) {
	f := newFake(t)
	c := f.open(t)
	f.Close()
	drivertest.ListFails(t, c, drover.KindTransient)
}

func TestThePageHasTheListLag(t *testing.T) { drivertest.ShowsLag(t, "DigitalOcean", listLag) }
