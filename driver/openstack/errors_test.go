package openstack

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"drover"
	"drover/driver/drivertest"
)

// answered is an error of the cloud's.
func answered(status int, words string) error {
	body := fmt.Sprintf(`{"forbidden": {"code": %d, "message": %q}}`, status, words)
	return gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: []byte(body)}
}

func TestClasses(t *testing.T) {
	page := drivertest.ReadPage(t, "openstack")
	t.Run("the page shows the table", func(t *testing.T) {
		var want [][]string
		for _, c := range classes {
			status := strconv.Itoa(c.status)
			if c.status == 0 {
				status = statusError
			}
			want = append(want, []string{status, c.words, string(c.kind), string(c.scope)})
		}
		page.Shows(t, "Errors", want)
		page.Sourced(t, "Errors")
	})
	t.Run("every answer of the page has its class", func(t *testing.T) {
		for _, row := range page.Rows(t, "Errors") {
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
	drivertest.Classifies(t, classify)
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
	t.Run("an answer that tells nothing is transient", func(t *testing.T) {
		for _, err := range []error{answered(418, "teapot"), answered(500, "Unexpected API Error.")} {
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
}

func TestThePageHasTheListLag(t *testing.T) { drivertest.ShowsLag(t, "OpenStack", listLag) }
