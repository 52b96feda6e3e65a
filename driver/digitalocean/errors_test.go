package digitalocean

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver"
	"drover/driver/drivertest"
)

func TestThePageHasTheTableOfErrors(t *testing.T) {
	var rows [][]string
	for _, m := range meanings {
		status, kind := fmt.Sprint(m.status), string(m.kind)
		if m.status == 0 {
			status = "any other"
		}
		if m.kind == drover.KindNotFound {
			kind = "not_found; of a create invalid"
		}
		rows = append(rows, []string{status, m.says, kind, string(m.scope)})
	}
	page := drivertest.ReadPage(t, "digitalocean")
	page.Shows(t, "Errors", rows)
	page.Sourced(t, "Errors")
}

func TestWhatEveryDriverTellsApart(t *testing.T) { drivertest.Classifies(t, failed) }

func TestNothingIsTriedTwice(t *testing.T) {
	f := newFake(t)
	drivertest.Once(t, f, request("a"), func(t *testing.T, n *drivertest.Network) driver.Cloud {
		c, err := openThrough(n, options(t, f.config(), "lab"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		status  int
		message string
		kind    drover.ErrorKind
		scope   drover.Scope
	}{
		{401, "Unable to authenticate you", drover.KindAuthentication, ""},
		{403, "You do not have access for the attempted action.", drover.KindAuthentication, ""},
		{404, "The resource you were accessing could not be found.", drover.KindInvalid, ""},
		{429, "API Rate limit exceeded.", drover.KindRateLimit, ""},
		{422, "creating this/these droplet(s) will exceed your droplet limit", drover.KindQuota, drover.ScopeAll},
		{422, "This size is currently restricted", drover.KindQuota, drover.ScopeType},
		{422, "Size is not available in this region.", drover.KindCapacity, drover.ScopeType},
		{422, "Region is not available", drover.KindCapacity, drover.ScopeZone},
		{422, "The image you specified is not available in the selected region", drover.KindInvalid, ""},
		{422, "Droplet already has a pending event.", drover.KindTransient, ""},
		{422, "59891906 are invalid key identifiers for Droplet creation.", drover.KindTransient, ""},
		{422, "Name is too long", drover.KindInvalid, ""},
		{400, "bad", drover.KindInvalid, ""},
		{500, "Server Error", drover.KindTransient, ""},
		{503, "Service Unavailable", drover.KindTransient, ""},
		{302, "elsewhere", drover.KindTransient, ""},
	} {
		t.Run(fmt.Sprintf("a create is answered %d %s", c.status, c.message), func(t *testing.T) {
			f := newFake(t)
			f.refuse = func(r *http.Request) (int, string) {
				if r.Method == "POST" && r.URL.Path == "/v2/droplets" {
					return c.status, c.message
				}
				return 0, ""
			}
			_, _, err := f.open(t).Create(context.Background(), request("a"))
			e := drover.AsError(err, drover.KindInternal)
			if e.Kind != c.kind || e.Scope != c.scope || !strings.Contains(e.Message, c.message) || !strings.Contains(e.Message, "creating a") {
				t.Errorf("taken for %s, scope %q: %v", e.Kind, e.Scope, e)
			}
		})
	}
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
		after  time.Duration // 0: it does not say
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
			want := drover.Time(0)
			if c.after != 0 {
				want = drover.TimeOf(now.Add(c.after))
			}
			if got := retryAt(c.header, now); got != want {
				t.Errorf("%v, not %v", got, want)
			}
		})
	}
}

func TestWhatDoesNotAnswerIsTransient(t *testing.T) {
	f := newFake(t)
	c := f.open(t)
	f.Close()
	_, err := c.List(context.Background(), map[string]string{driver.TagFleet: "lab"})
	if drover.KindOf(err) != drover.KindTransient {
		t.Error(err)
	}
}

func TestThePageHasTheListLag(t *testing.T) { drivertest.ShowsLag(t, "DigitalOcean", listLag) }
