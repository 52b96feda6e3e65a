package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"

	"drover"
	"drover/internal/config"
)

// page reads the rows of the table under a heading of the driver's page, without its head.
func page(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/clouds/openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "# "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
			for i := range cells {
				cells[i] = strings.Trim(cells[i], " `")
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) < 3 {
		t.Fatalf("docs/clouds/openstack.md has no table under %q", heading)
	}
	return rows[2:]
}

func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/clouds/openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```yaml\n")[1:]
	for _, part := range parts {
		yaml, _, _ := strings.Cut(part, "```")
		c, err := config.Parse("openstack.md", []byte(yaml), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		var own Config
		own.Default()
		if err := c.Clouds[0].Decode(&own); err != nil {
			t.Error(err)
		}
		if err := own.check(); err != nil {
			t.Error(err)
		}
	}
	if len(parts) != 2 {
		t.Errorf("%d configurations", len(parts))
	}
}

// answered is an error of the cloud's.
func answered(status int, words string) error {
	body := fmt.Sprintf(`{"forbidden": {"code": %d, "message": %q}}`, status, words)
	return gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: []byte(body)}
}

func TestClasses(t *testing.T) {
	rows := page(t, "Errors")
	t.Run("the page shows the table", func(t *testing.T) {
		var shown, want [][]string
		for _, row := range rows {
			shown = append(shown, row[:4])
		}
		for _, c := range classes {
			status := strconv.Itoa(c.status)
			if c.status == 0 {
				status = statusError
			}
			want = append(want, []string{status, c.words, string(c.kind), string(c.scope)})
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("every answer of the page has its class", func(t *testing.T) {
		for _, row := range rows {
			words := "Now: " + strings.ReplaceAll(row[1], "*", " some other ") + ", and so on"
			err := error(refusal("try it", 0, words))
			if row[0] != statusError {
				status, _ := strconv.Atoi(row[0])
				err = classify("try it", fmt.Errorf("call: %w", answered(status, words)))
			}
			e := drover.AsError(err, drover.KindInternal)
			if string(e.Kind) != row[2] || string(e.Scope) != row[3] || e.Message != "try it: "+words {
				t.Errorf("%s: got %+v", row[:2], e)
			}
			if (e.Scope != "") != (e.Market == drover.OnDemand) {
				t.Errorf("%s: market %q", row[:2], e.Market)
			}
		}
	})
}

func TestClassify(t *testing.T) {
	t.Run("a rate limit says when", func(t *testing.T) {
		now := time.Now().Truncate(time.Second)
		for after, want := range map[string]time.Duration{"30": 30 * time.Second, now.Add(time.Minute).UTC().Format(http.TimeFormat): time.Minute, "": limitedFor, "soon": limitedFor} {
			if got := retryAt(http.Header{"Retry-After": {after}}, now).Sub(now); got != want {
				t.Errorf("%q: %v", after, got)
			}
		}
		e := drover.AsError(classify("", answered(http.StatusTooManyRequests, "slow down")), "")
		if e.Kind != drover.KindRateLimit || e.RetryAt < drover.TimeOf(now) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("what tells nothing is transient", func(t *testing.T) {
		for _, err := range []error{answered(418, "teapot"), answered(500, "Unexpected API Error."), errors.New("connection reset by peer")} {
			if got := drover.KindOf(classify("", err)); got != drover.KindTransient {
				t.Errorf("%v: %s", err, got)
			}
		}
	})
	t.Run("what stands before a service may answer with anything", func(t *testing.T) {
		for body, want := range map[string]string{
			"<html><body>Bad gateway</body></html>": "x: Bad Gateway", "": "x: Bad Gateway", "[1]": "x: Bad Gateway", `{"error": {"message": "no"}}`: "x: no",
			`{"message": "no"}`: "x: no",
		} {
			err := classify("x", gophercloud.ErrUnexpectedResponseCode{Actual: http.StatusBadGateway, Body: []byte(body)})
			if drover.KindOf(err) != drover.KindTransient || err.Error() != want {
				t.Errorf("%s: %v", body, err)
			}
		}
	})
	t.Run("a token that cannot be renewed says why, and a region that is none says so", func(t *testing.T) {
		err := classify("do", &gophercloud.ErrUnableToReauthenticate{ErrOriginal: answered(401, "expired"), ErrReauth: answered(401, "no such user")})
		if drover.KindOf(err) != drover.KindAuthentication || err.Error() != "do: sign in again: no such user" {
			t.Error(err)
		}
		if err := classify("do", &gophercloud.ErrEndpointNotFound{}); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
	t.Run("what has a class keeps it, and an ended context stays one", func(t *testing.T) {
		if err := classify("do", drover.Errorf(drover.KindQuota, "x")); drover.KindOf(err) != drover.KindQuota || err.Error() != "do: x" {
			t.Error(err)
		}
		if err := classify("do", fmt.Errorf("canceled: %w", context.Canceled)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if classify("do", nil) != nil {
			t.Error("an error out of nothing")
		}
	})
}

func TestLike(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"debian", "debian", true}, {"debian", "debian-12", false}, {"debian-*", "debian-12", true}, {"*12*", "debian-12-a", true}, {"*12", "debian-12-a", false},
		{"d*n*2", "debian-12", true}, {"d*x*2", "debian-12", false}, {"a*a", "a", false}, {"*", "", true}, {"", "", true}, {"x*", "debian", false},
	} {
		if like(tt.pattern, tt.text) != tt.want {
			t.Errorf("%q, %q: not %v", tt.pattern, tt.text, tt.want)
		}
	}
}
