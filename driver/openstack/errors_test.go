package openstack

import (
	"fmt"
	"net/http"
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
