package openstack

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"

	"drover"
	"drover/driver/drivertest"
	"drover/driver/kit"
)

// answered returns the cloud's error for a call.
func answered(status int, words string) error {
	body := fmt.Sprintf(`{"forbidden": {"code": %d, "message": %q}}`, status, words)
	return gophercloud.ErrUnexpectedResponseCode{Actual: status, Body: []byte(body)}
}

// covers C5
func TestErrors(t *testing.T) {
	drivertest.ShowsLag(t, "OpenStack", listLag)
	drivertest.Errors(t, "openstack", &errs, func(a kit.Answer) error {
		if a.Code == statusError {
			return nil // this is a server's state, not an answer to a call
		}
		return answered(a.Status, a.Message)
	})
	t.Run("a proxy's answer of any form is a transient error", func(t *testing.T) {
		for body, want := range map[string]string{
			"<html><body>Bad gateway</body></html>": "x: HTTP 502: Bad Gateway", "": "x: HTTP 502: Bad Gateway", "[1]": "x: HTTP 502: Bad Gateway", `{"error": {"message": "no"}}`: "x: HTTP 502: no",
			`{"message": "no"}`: "x: HTTP 502: no",
		} {
			err := errs.Classify("x", gophercloud.ErrUnexpectedResponseCode{Actual: http.StatusBadGateway, Body: []byte(body)})
			if drover.KindOf(err) != drover.KindTransient || err.Error() != want {
				t.Errorf("%s: %v", body, err)
			}
		}
	})
	t.Run("Nova's refusals of a request are not taken for a missing permission or a conflict that ends by itself", func(t *testing.T) {
		for says, want := range map[string]drover.ErrorKind{
			"403 Only volume-backed servers are allowed for flavors with zero disk.":                                drover.KindUnsupported,
			"403 It is not allowed to create an interface on external network b8a5e0b3-eff3-4c25-9824-6fe43d9b6ea1": drover.KindInvalid,
			"403 Maximum number of metadata items exceeds 2":                                                        drover.KindQuota,
			"403 Policy doesn't allow os_compute_api:servers:create to be performed.":                               drover.KindAuthentication,
			"409 Multiple security_group matches found for name 'ssh', use an ID to be more specific.":              drover.KindInvalid,
			"409 Instance f7b1b1dd-0dfe-4a17-85bb-3d5b79f67eeb is locked":                                           drover.KindTransient,
			"400 marker [11111111-1111-1111-1111-111111111111] not found":                                           drover.KindTransient,
		} {
			status, words, _ := strings.Cut(says, " ")
			n, _ := strconv.Atoi(status)
			got := drover.AsError(errs.Classify("x", answered(n, words)), "")
			if got.Kind != want || got.Hint == "" && n == http.StatusConflict {
				t.Errorf("%s: %+v", says, got)
			}
		}
	})
	t.Run("the error of a token that cannot be renewed has the reason, and a missing service is invalid", func(t *testing.T) {
		err := errs.Classify("do", &gophercloud.ErrUnableToReauthenticate{ErrOriginal: answered(401, "expired"), ErrReauth: answered(401, "no such user")})
		if drover.KindOf(err) != drover.KindAuthentication || err.Error() != "do: HTTP 401: no such user" {
			t.Error(err)
		}
		if err := errs.Classify("do", &gophercloud.ErrEndpointNotFound{}); drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
}
